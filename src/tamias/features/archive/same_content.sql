-- The same content under several URLs: equal bytes, or equal canonical digests. Of very many equal ones, so many are
-- looked at.

-- name: same_content
-- For each version, those of other resources that have its content: of each resource the first, so many at most.
SELECT named.place, other.resource, other.number, resource.url, other.captured_at, other.same_bytes
FROM unnest(%(resource)b::text[], %(sha256)b::bytea[], %(fingerprint)b::bytea[])
     WITH ORDINALITY AS named (resource, sha256, fingerprint, place)
CROSS JOIN LATERAL (
    SELECT first.* FROM (
        SELECT DISTINCT ON (equal.resource) equal.resource, equal.number, equal.captured_at,
               equal.sha256 = named.sha256 AS same_bytes
        FROM ((SELECT version.* FROM version
               WHERE version.sha256 = named.sha256 AND version.resource <> named.resource LIMIT 200)
              UNION
              (SELECT version.* FROM version
               WHERE version.fingerprint = named.fingerprint AND version.resource <> named.resource LIMIT 200))
             AS equal
        ORDER BY equal.resource, equal.captured_at, equal.number) AS first
    ORDER BY first.captured_at, first.resource LIMIT %(most)b::int4) AS other
JOIN resource ON resource.resource = other.resource
ORDER BY named.place, other.captured_at, other.resource

-- name: shared
-- Versions whose bytes, or whose content, another resource has as well; bodies; bytes that are not stored again.
SELECT (SELECT coalesce(sum(held.versions), 0)::int8
        FROM (SELECT count(*) AS versions FROM version GROUP BY coalesce(version.fingerprint, version.sha256)
              HAVING min(version.resource) <> max(version.resource)) AS held),
       coalesce(sum(body.versions) FILTER (WHERE body.resources > 1), 0)::int8,
       count(*) FILTER (WHERE body.resources > 1)::int8,
       coalesce(sum((body.versions - 1) * body.byte_size), 0)::int8
FROM (SELECT count(*) AS versions, max(version.byte_size) AS byte_size,
             CASE WHEN min(version.resource) <> max(version.resource) THEN 2 ELSE 1 END AS resources
      FROM version GROUP BY version.sha256 HAVING count(*) > 1) AS body
