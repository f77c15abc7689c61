-- New URLs of a crawl with a budget: they wait (due 9223372036854775806) until their share is released, best first.
-- The rules of frontier.sql hold.

-- name: find_waiting
-- The best of those that wait in a bucket.
SELECT url.qid, url.uid, url.score FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775806
ORDER BY url.score DESC LIMIT %(most)b::int4

-- name: count_waiting
-- How many wait, as far as it matters.
SELECT count(*) FROM (
    SELECT FROM url
    WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775806
    LIMIT %(most)b::int4) AS waiting

-- name: find_first_visit
-- Whether a URL of a bucket is due that was never visited.
SELECT FROM queue JOIN url
  ON url.bucket = %(bucket)b::int2 AND url.qid = queue.qid AND url.crawl = queue.crawl AND url.lane = queue.lane
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4 AND queue.active
  AND queue.next_due <= %(now)b::int8 AND url.due <= %(now)b::int8 AND url.status = 0
LIMIT 1

-- name: release
-- They are due now. The hosts are locked before.
UPDATE url SET due = %(now)b::int8
FROM unnest(%(qid)b::int8[], %(uid)b::int8[]) AS chosen (qid, uid)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = chosen.qid AND url.crawl = %(crawl)b::int4
  AND url.uid = chosen.uid AND url.due = 9223372036854775806
RETURNING url.qid, url.crawl, url.lane, url.due, url.score, false
