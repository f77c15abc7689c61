-- Known URLs that nobody wants visited any more. The rules of frontier.sql hold; the hosts are locked before.

-- name: retire_urls
-- Makes URLs due never; what is being visited at this moment is settled by its visit.
UPDATE url
SET due = 9223372036854775807
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS unwanted (qid, crawl, uid)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = unwanted.qid AND url.crawl = unwanted.crawl
  AND url.uid = unwanted.uid AND url.due < 9223372036854775807
RETURNING url.qid, url.crawl, url.lane

-- name: count_retired
-- Takes them out of the count of open URLs.
UPDATE queue SET open = queue.open - retired.urls
FROM (SELECT each.qid, each.crawl, each.lane, count(*) AS urls
      FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(lane)b::int4[]) AS each (qid, crawl, lane)
      GROUP BY each.qid, each.crawl, each.lane) AS retired
WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = retired.qid AND queue.crawl = retired.crawl
  AND queue.lane = retired.lane
