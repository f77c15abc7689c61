-- Known URLs that somebody wants visited now. The rules of frontier.sql hold; the hosts are locked before.

-- name: forget_answers
-- Nothing is known of what these URLs answered: their next visit asks for all, and reads it.
UPDATE url SET status = 0, etag = NULL, last_modified = NULL
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS wanted (qid, crawl, uid)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = wanted.qid AND url.crawl = wanted.crawl AND url.uid = wanted.uid

-- name: make_urls_due
-- Makes known URLs due now, except those that are due already or that a client holds.
UPDATE url
SET due = %(now)b::int8
FROM (SELECT url.qid, url.crawl, url.uid, url.due
      FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS wanted (qid, crawl, uid)
      JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = wanted.qid AND url.crawl = wanted.crawl
              AND url.uid = wanted.uid
      WHERE url.due > %(now)b::int8 AND (url.held_until IS NULL OR url.held_until <> url.due)) AS later
WHERE url.bucket = %(bucket)b::int2 AND url.qid = later.qid AND url.crawl = later.crawl AND url.uid = later.uid
  AND url.due = later.due
RETURNING url.qid, url.crawl, url.lane, url.score, later.due = 9223372036854775807
