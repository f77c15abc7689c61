-- Crawls side by side: their state and their limit. The table of crawls has no bucket.

-- name: crawl_rows
-- All crawls: number, name, state, limit, what they were told.
SELECT crawl.crawl, crawl.name, crawl.state, crawl.most_done, crawl.policy FROM crawl ORDER BY crawl.crawl

-- name: set_state
-- A crawl goes on, or is paused.
UPDATE crawl SET state = %(state)b::text WHERE crawl.crawl = %(crawl)b::int4

-- name: change_state
-- The same, if it was in one of some states.
UPDATE crawl SET state = %(state)b::text
WHERE crawl.crawl = %(crawl)b::int4 AND crawl.state = ANY(%(before)b::text[])

-- name: next_run
-- The user of a crawl lets it go on: limits of a run count from here.
UPDATE crawl SET run = crawl.run + 1 WHERE crawl.crawl = %(crawl)b::int4

-- name: set_most_done
-- A crawl is paused when so many of its URLs are done; null takes the limit away.
UPDATE crawl SET most_done = %(limit)b::int8 WHERE crawl.crawl = %(crawl)b::int4

-- name: forget_crawl
-- Removes a crawl whose queues are removed. The first two are always there.
DELETE FROM crawl WHERE crawl.crawl = %(crawl)b::int4 AND crawl.crawl > 2

-- name: forget_budget
-- Removes what a crawl that goes on may still spend.
DELETE FROM visit_budget WHERE visit_budget.crawl = %(crawl)b::int4

-- name: forget_shares
-- Removes what its workers have taken of a limit.
DELETE FROM visit_share WHERE visit_share.crawl = %(crawl)b::int4

-- name: limited_crawls
-- The crawls that go on and have a limit, and all crawls.
SELECT coalesce(array_agg(crawl.crawl) FILTER (WHERE crawl.most_done IS NOT NULL AND crawl.state IN ('active', 'service')), '{}'),
       array_agg(crawl.crawl)
FROM crawl

-- name: have_queues
-- A queue of one of some crawls in a bucket, if there is one.
SELECT queue.qid FROM queue
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = ANY(%(crawls)b::int4[]) LIMIT 1

-- name: count_done
-- How many URLs of a crawl are done in a bucket.
SELECT coalesce(sum(queue.known - queue.open), 0)::int8 FROM queue
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4

-- name: pause_queues
-- Pauses queues of a crawl on locked hosts, or ends the pause.
UPDATE queue
SET paused = %(paused)b::bool,
    active = NOT %(paused)b::bool
             AND (queue.most_done IS NULL OR queue.known - queue.open < queue.most_done)
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4 AND queue.qid = ANY(%(qid)b::int8[])
