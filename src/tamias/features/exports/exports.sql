-- What exports read.

-- name: nodes
-- Every URL that a link leads from or to, once.
SELECT link.from_url FROM link JOIN crawl ON crawl.crawl = link.crawl
WHERE %(crawl)b::text IS NULL OR crawl.name = %(crawl)b::text
UNION
SELECT link.to_url FROM link JOIN crawl ON crawl.crawl = link.crawl
WHERE %(crawl)b::text IS NULL OR crawl.name = %(crawl)b::text
ORDER BY 1

-- name: edges
-- Every link with what is kept of it.
SELECT link.from_url, link.to_url, crawl.name, link.anchor, link.context_left, link.context_right, link.count,
       link.language, link.from_score::float8, link.from_quads, link.first_seen
FROM link JOIN crawl ON crawl.crawl = link.crawl
WHERE %(crawl)b::text IS NULL OR crawl.name = %(crawl)b::text
ORDER BY link.from_url, link.to_url, crawl.name

-- name: list_crawls
-- The names of crawls; the archive's own (number 2) is nobody else's business.
SELECT crawl.crawl, crawl.name FROM crawl WHERE crawl.crawl <> 2

-- name: page
-- The next URLs of a bucket, in the order of their key.
SELECT url.qid, url.crawl, url.uid, host.hkey, coalesce(url.spelling, url.url), url.due, url.first_seen,
       url.metadata::text, url.tags
FROM url JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = url.qid
WHERE url.bucket = %(bucket)b::int2
  AND (url.qid, url.crawl, url.uid) > (%(qid)b::int8, %(crawl)b::int4, %(uid)b::int8)
ORDER BY url.qid, url.crawl, url.uid
LIMIT %(limit)b::int4
