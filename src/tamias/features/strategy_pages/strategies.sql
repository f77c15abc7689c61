-- Strategies and the visits that they ordered.

-- name: strategies
-- The newest strategies, with their crawls.
SELECT strategy.crawl, crawl.name, strategy.name, strategy.state, strategy.problem,
       (extract(epoch FROM strategy.in_force_at) * 1000)::int8
FROM strategy JOIN crawl ON crawl.crawl = strategy.crawl ORDER BY strategy.number DESC LIMIT %(limit)b::int4

-- name: visits
-- The newest visits of crawls but that of watched resources, in their order, and whether they brought statements.
-- Those that found nothing new are none.
SELECT newest.crawl, newest.started_at, newest.quads > 0
FROM (SELECT capture.* FROM capture WHERE capture.bucket = %(bucket)b::int2
      ORDER BY capture.capture DESC LIMIT %(most)b::int4) AS newest
WHERE newest.crawl <> %(watch)b::int4 AND newest.outcome <> %(unchanged)b::int2
