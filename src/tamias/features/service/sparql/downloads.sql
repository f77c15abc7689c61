-- Which versions the names in a result stand for.

-- name: known_versions
-- Versions by their ids, the newest of datasets by id or address; in the order of the names, as far as they are known.
SELECT version.resource, version.number
FROM unnest(%(version)b::text[], %(dataset)b::text[], %(address)b::text[]) WITH ORDINALITY
         AS wanted (version, dataset, address, place)
LEFT JOIN resource ON resource.resource = wanted.dataset OR resource.url = wanted.address
JOIN version ON version.resource = coalesce(split_part(wanted.version, '_', 1), resource.resource)
            AND version.number = coalesce(split_part(wanted.version, '_', 2)::int, resource.versions)
ORDER BY wanted.place
