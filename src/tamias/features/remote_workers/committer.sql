-- What the service asks when workers without a database deliver.

-- name: known_captures
-- Which of these captures are committed already.
SELECT capture.capture FROM capture
WHERE capture.bucket = %(bucket)b::int2 AND capture.capture = ANY(%(captures)b::uuid[])

-- name: lent_url
-- The URL of a host, as long as a lease of it holds.
SELECT url.url FROM url JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = url.qid
WHERE url.bucket = %(bucket)b::int2 AND url.qid = %(qid)b::int8 AND url.crawl = %(crawl)b::int4
  AND url.uid = %(uid)b::int8 AND host.token = %(token)b::int8
