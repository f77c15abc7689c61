-- What catalogues told, what the archive got, and what is measured of both.

-- name: note_claims
-- What a harvest saw of descriptions that are noted already.
UPDATE described SET told = new.told
FROM portal, unnest(%(record)b::text[], %(told)b::jsonb[]) AS new (record, told)
WHERE portal.url = %(portal)b::text AND described.portal = portal.portal AND described.record = new.record
  AND described.told IS DISTINCT FROM new.told

-- name: portals
-- All catalogues.
SELECT portal.portal, portal.url FROM portal ORDER BY portal.portal

-- name: page_told
-- Descriptions of a catalogue, page by page; those that vanished have nothing told.
SELECT described.record, CASE WHEN described.gone_at IS NULL THEN described.told END
FROM described
WHERE described.portal = %(portal)b::int8 AND described.record > %(after)b::text
  AND (described.told IS NOT NULL OR described.gone_at IS NOT NULL)
ORDER BY described.record LIMIT %(limit)b::int4

-- name: read_got
-- What the archive has of resources.
SELECT resource.resource, resource.tried_at IS NOT NULL,
       resource.state <> 'gone' AND resource.fails = 0 AND resource.versions > 0, resource.media_type,
       (SELECT version.byte_size FROM version
        WHERE version.resource = resource.resource AND version.number = resource.versions)
FROM resource WHERE resource.resource = ANY(%(resource)b::text[])

-- name: page_resources
-- Ids of the resources that a portal lists, page by page.
SELECT resource.resource FROM resource
WHERE resource.resource > %(after)b::text
  AND (EXISTS (SELECT FROM source WHERE source.resource = resource.resource AND source.portal IS NOT NULL)
       OR EXISTS (SELECT FROM offered WHERE offered.url = resource.url))
ORDER BY resource.resource LIMIT %(limit)b::int4

-- name: read_promises
-- The type and the size that the sources of resources promise.
SELECT resource.resource, resource.url, resource.expected,
       (SELECT offered.byte_size FROM offered
        WHERE offered.url = resource.url AND offered.byte_size IS NOT NULL
        ORDER BY offered.last_seen DESC, offered.portal, offered.record LIMIT 1)
FROM resource WHERE resource.resource = ANY(%(resource)b::text[])

-- name: put_measures
-- Measures; the time of one tells since when it has been so.
INSERT INTO measure (subject, metric, value, measured_at)
SELECT new.subject, new.metric, new.value, %(now)b::int8
FROM unnest(%(subject)b::text[], %(metric)b::text[], %(value)b::float8[]) AS new (subject, metric, value)
ORDER BY new.subject, new.metric
ON CONFLICT (subject, metric) DO UPDATE SET value = excluded.value, measured_at = excluded.measured_at
WHERE measure.value IS DISTINCT FROM excluded.value

-- name: drop_measures
-- Measures of these subjects that can no longer be told.
DELETE FROM measure
WHERE measure.subject = ANY(%(subjects)b::text[])
  AND NOT EXISTS (SELECT FROM unnest(%(subject)b::text[], %(metric)b::text[]) AS new (subject, metric)
                  WHERE new.subject = measure.subject AND new.metric = measure.metric)
