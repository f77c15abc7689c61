-- Visited URLs that are opened again because what cut them is gone. The rules of frontier.sql hold.

-- name: find_cut
-- A page of the URLs of a crawl that are done with, of which something was cut for one of these reasons.
SELECT url.qid, url.uid FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775807
  AND url.cut & %(reasons)b::int2 <> 0 AND (url.qid, url.uid) > (%(after_qid)b::int8, %(after_uid)b::int8)
ORDER BY url.qid, url.uid LIMIT %(page)b::int4

-- name: reopen_urls
-- Makes URLs due now that are done with, to be read once more (576: REOPENED and WIDENED of tamias.model.cut).
-- The hosts are locked before.
UPDATE url
SET due = %(now)b::int8, cut = url.cut | 576
FROM unnest(%(qid)b::int8[], %(uid)b::int8[]) AS wanted (qid, uid)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = wanted.qid AND url.crawl = %(crawl)b::int4
  AND url.uid = wanted.uid AND url.due = 9223372036854775807
RETURNING url.qid, url.crawl, url.lane, url.due, url.score, true

-- name: count_cut
-- On how many hosts `find_cut` finds URLs, and how many. Reads all URLs of the crawl: for its end, and a dry run.
SELECT count(DISTINCT url.qid), count(*) FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775807
  AND url.cut & %(reasons)b::int2 <> 0

-- name: count_by_visit
-- The same of `find_by_visit`.
SELECT count(*) FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775807
  AND url.status <> 0 AND (%(outcome)b::int2 IS NULL OR url.status = %(outcome)b::int2)
  AND (%(match)b::text IS NULL OR url.url ~ %(match)b::text)
  AND (%(reason)b::text IS NULL OR strpos(
      (SELECT capture.reason FROM capture
       WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = url.qid AND capture.crawl = url.crawl
         AND capture.uid = url.uid
       ORDER BY capture.capture DESC LIMIT 1), %(reason)b::text) > 0)
  AND (%(media_type)b::text IS NULL OR EXISTS (
      SELECT FROM capture
      WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = url.qid AND capture.crawl = url.crawl
        AND capture.uid = url.uid AND capture.found_type ~ %(media_type)b::text))
  AND NOT coalesce(url.tags && ARRAY['kind=probe', 'kind=context', 'kind=robots'], false)

-- name: find_by_visit
-- A page of the URLs of a crawl that are done with, by how their latest visit ended; what is null matches all.
SELECT url.qid, url.uid FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775807
  AND url.status <> 0 AND (%(outcome)b::int2 IS NULL OR url.status = %(outcome)b::int2)
  AND (%(match)b::text IS NULL OR url.url ~ %(match)b::text)
  AND (%(reason)b::text IS NULL OR strpos(
      (SELECT capture.reason FROM capture
       WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = url.qid AND capture.crawl = url.crawl
         AND capture.uid = url.uid
       ORDER BY capture.capture DESC LIMIT 1), %(reason)b::text) > 0)
  AND (%(media_type)b::text IS NULL OR EXISTS (
      SELECT FROM capture
      WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = url.qid AND capture.crawl = url.crawl
        AND capture.uid = url.uid AND capture.found_type ~ %(media_type)b::text))
  AND NOT coalesce(url.tags && ARRAY['kind=probe', 'kind=context', 'kind=robots'], false)
  AND (url.qid, url.uid) > (%(after_qid)b::int8, %(after_uid)b::int8)
ORDER BY url.qid, url.uid LIMIT %(page)b::int4
