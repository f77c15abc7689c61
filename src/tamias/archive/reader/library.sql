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

-- name: is_portal
-- Whether anything is known of a portal.
SELECT EXISTS (SELECT FROM source WHERE source.portal = %(portal)b::text)
    OR EXISTS (SELECT FROM portal WHERE portal.url = %(portal)b::text)

-- name: portal_between
-- What a portal names, and the content of each at two times. What has left the portal was not seen in its last
-- whole harvest; it, and what its server says is gone, has no content from then on.
SELECT offered.url,
       CASE WHEN offered.gone_at IS NULL OR offered.gone_at > %(before)b::int8 THEN (
           SELECT encode(coalesce(version.fingerprint, version.sha256), 'hex') FROM version
           WHERE version.resource = offered.resource AND version.captured_at <= %(before)b::int8
           ORDER BY version.number DESC LIMIT 1
       ) END,
       CASE WHEN offered.gone_at IS NULL OR offered.gone_at > %(after)b::int8 THEN (
           SELECT encode(coalesce(version.fingerprint, version.sha256), 'hex') FROM version
           WHERE version.resource = offered.resource AND version.captured_at <= %(after)b::int8
           ORDER BY version.number DESC LIMIT 1
       ) END
FROM (
    SELECT resource.resource, resource.url,
           least(resource.gone_at,
                 CASE WHEN max(source.last_seen) < min(portal.walked_at) THEN max(source.last_seen) + 1 END) AS gone_at
    FROM source
    JOIN resource ON resource.resource = source.resource
    LEFT JOIN portal ON portal.url = source.portal
    WHERE source.portal = %(portal)b::text
    GROUP BY resource.resource
) AS offered
