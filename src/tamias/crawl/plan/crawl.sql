-- A crawl as a whole: what it may do, and what became of its URLs.

-- name: read_policy
-- What a crawl may do.
SELECT crawl.policy, crawl.run FROM crawl WHERE crawl.crawl = %(crawl)b::int4

-- name: read_mark
-- What tells whether that is still the same, and whether the crawl goes on.
SELECT md5(crawl.run || crawl.policy::text), crawl.state FROM crawl WHERE crawl.crawl = %(crawl)b::int4

-- name: handed_over
-- The crawls that the service is to work on.
SELECT crawl.crawl FROM crawl
WHERE crawl.crawl <> 2
  AND (crawl.state = 'service' OR crawl.state = 'active' AND crawl.policy @> '{"in_service": true}'::jsonb)

-- name: has_open
-- Whether a crawl has URLs left in a bucket.
SELECT EXISTS (SELECT FROM queue
               WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4 AND queue.open > 0)

-- name: has_inserted
-- Whether people have inserted URLs for a crawl that nobody has taken yet.
SELECT EXISTS (SELECT FROM inbox WHERE inbox.crawl = %(crawl)b::int4 AND inbox.problem IS NULL)

-- name: make_shares
-- The row of a crawl whose visits nobody has limited before.
INSERT INTO visit_share (crawl, run, shares) VALUES (%(crawl)b::int4, -1, '{}') ON CONFLICT DO NOTHING

-- name: lock_shares
-- The run that visits were taken for last, and how many each worker has taken.
SELECT visit_share.run, visit_share.shares FROM visit_share WHERE visit_share.crawl = %(crawl)b::int4
FOR NO KEY UPDATE

-- name: write_shares
-- The same, from now on.
UPDATE visit_share SET run = %(run)b::int4, shares = %(shares)b::jsonb WHERE visit_share.crawl = %(crawl)b::int4

-- name: write_policy
-- The same, from now on.
UPDATE crawl SET policy = %(policy)b::jsonb WHERE crawl.crawl = %(crawl)b::int4

-- name: count_failed
-- URLs of a crawl that failed and will not be tried again. Reads all URLs: for the end of a crawl.
SELECT count(*) FROM url
WHERE url.crawl = %(crawl)b::int4 AND url.status = 5 AND url.due = 9223372036854775807
  AND NOT coalesce(url.tags && ARRAY['kind=probe', 'kind=context', 'kind=robots'], false)

-- name: has_page
-- Whether a crawl has read an HTML page since a time.
SELECT count(*) FROM (
    SELECT FROM capture
    WHERE capture.capture >= (lpad(to_hex(%(since)b::int8), 12, '0') || repeat('0', 20))::uuid
      AND capture.crawl = %(crawl)b::int4 AND capture.outcome = 1 AND capture.found_type = 'text/html' LIMIT 1) AS page

-- name: count_first_visits
-- URLs that a worker was the first to visit. Reads all captures: for the rare case that the worker cannot tell.
SELECT count(*) FROM (
    SELECT DISTINCT ON (capture.bucket, capture.qid, capture.crawl, capture.uid) capture.worker
    FROM capture ORDER BY capture.bucket, capture.qid, capture.crawl, capture.uid, capture.capture) AS first
WHERE first.worker = %(worker)b::text

-- part: state_of_url
-- How the latest visit ended, why, whether the URL is done with, and what cut its links.
SELECT url.url, url.status,
       coalesce((SELECT capture.reason FROM capture
        WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = url.qid AND capture.crawl = url.crawl
          AND capture.uid = url.uid
        ORDER BY capture.capture DESC LIMIT 1), ''),
       url.due = 9223372036854775807, url.cut

-- name: states_of
-- Known ones of some URLs. Those that brought something come first.
{state_of_url}
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS seed (qid, crawl, uid)
JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = seed.qid AND url.crawl = seed.crawl AND url.uid = seed.uid
ORDER BY url.status > 2, url.url LIMIT %(most)b::int4

-- name: outcomes_of_seeds
-- All seeds of a crawl. Reads all its URLs: for the end of a run that was given no seeds.
{state_of_url}
FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.depth = 0
  AND NOT coalesce(url.tags && ARRAY['kind=probe', 'kind=context', 'kind=robots'], false)
ORDER BY url.status > 2, url.url LIMIT %(most)b::int4
