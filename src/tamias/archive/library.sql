-- What readers of the archive ask.

-- name: find_resource
-- A resource by its name or its address; the name counts first.
SELECT resource.resource FROM resource
WHERE resource.resource = %(resource)b::text OR resource.url = %(url)b::text
ORDER BY resource.resource <> %(resource)b::text LIMIT 1

-- name: read_exchanges
-- The attempts that brought versions. The buckets are named, for the key of the table begins with them.
SELECT capture.capture::text, capture.url, capture.final_url, capture.started_at, capture.ended_at, capture.status,
       capture.reason, capture.told_type, capture.hops, capture.agent
FROM meta CROSS JOIN generate_series(0, meta.buckets - 1) AS part (bucket)
     JOIN capture ON capture.bucket = part.bucket AND capture.capture = ANY(%(capture)b::uuid[])
