-- The links that are kept, as a graph.

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
