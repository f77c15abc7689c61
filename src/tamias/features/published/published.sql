-- What machines are told of the archive as a whole, page by page.

-- name: page_catalogue
-- Resources by id, all or those that changed since a time, of one page.
SELECT resource.resource FROM resource
WHERE %(since)b::int8 = 0 OR resource.captured_at >= %(since)b::int8
ORDER BY resource.resource OFFSET %(start)b::int8 LIMIT %(limit)b::int4

-- name: count_changed
-- How many resources changed since a time.
SELECT count(*) FROM resource WHERE resource.captured_at >= %(since)b::int8

-- name: page_sitemap
-- Resources by id with the time of their last change, of one part of the sitemap.
SELECT resource.resource, resource.captured_at FROM resource
ORDER BY resource.resource OFFSET %(start)b::int8 LIMIT %(limit)b::int4

-- name: latest_change
-- When the archive last changed, and some resource of it.
SELECT (SELECT max(resource.captured_at) FROM resource), (SELECT min(resource.resource) FROM resource)

-- name: oai_page
-- Resources with versions whose last one is of a span of time, after some id, with the time of the last one.
SELECT resource.resource, resource.captured_at FROM resource
WHERE resource.captured_at BETWEEN %(from)b::int8 AND %(until)b::int8 AND resource.resource > %(after)b::text
ORDER BY resource.resource LIMIT %(limit)b::int4

-- name: oai_one
-- The time of the last version of one resource.
SELECT resource.resource, resource.captured_at FROM resource
WHERE resource.resource = %(resource)b::text AND resource.captured_at IS NOT NULL

-- name: earliest_change
-- The time of the oldest change that any resource has as its last.
SELECT min(resource.captured_at) FROM resource
