-- Join candidates as rows.

-- name: sketches
-- The columns of current tables that can be joined, those of the newest tables first; of a body that several
-- resources have, those of the oldest resource.
SELECT one.resource, one.versions, tables.place, (columns.value->>'number')::int4, columns.value->>'name',
       coalesce((columns.value->>'distinct')::int8, 0), columns.value->>'sketch'
FROM (
    SELECT DISTINCT ON (resource.sha256) resource.resource, resource.versions, resource.sha256, resource.captured_at
    FROM resource WHERE resource.sha256 IS NOT NULL
    ORDER BY resource.sha256, resource.added_at, resource.resource
) AS one
JOIN profile ON profile.sha256 = one.sha256 AND profile.kind = 'table'
CROSS JOIN LATERAL jsonb_array_elements(profile.profile) WITH ORDINALITY AS tables (value, place)
CROSS JOIN LATERAL jsonb_array_elements(tables.value->'columns') AS columns (value)
WHERE columns.value->>'sketch' <> ''
ORDER BY one.captured_at DESC, one.resource, tables.place, 4

-- name: newest_table
-- When a table was last looked into.
SELECT coalesce(max(profile.made_at), 0) FROM profile WHERE profile.kind = 'table'

-- name: forget_joins
-- Takes what is not found any more, or is found otherwise.
DELETE FROM join_candidate
WHERE NOT EXISTS (
    SELECT FROM unnest(
        %(resource)b::text[], %(version)b::int4[], %(place)b::int4[], %(number)b::int4[],
        %(within_resource)b::text[], %(within_version)b::int4[], %(within_place)b::int4[],
        %(within_number)b::int4[], %(containment)b::float8[]
    ) AS found (
        resource, version, place, number, within_resource, within_version, within_place, within_number, containment
    )
    WHERE found.resource = join_candidate.resource AND found.version = join_candidate.version
      AND found.place = join_candidate.place AND found.number = join_candidate.number
      AND found.within_resource = join_candidate.within_resource
      AND found.within_version = join_candidate.within_version
      AND found.within_place = join_candidate.within_place AND found.within_number = join_candidate.within_number
      AND found.containment = join_candidate.containment
)

-- name: keep_joins
-- Adds what is new; of resources that are still there.
INSERT INTO join_candidate (
    resource, version, place, number, name, distinct_values, within_resource, within_version, within_place,
    within_number, within_name, within_distinct, containment, shared
)
SELECT found.* FROM unnest(
    %(resource)b::text[], %(version)b::int4[], %(place)b::int4[], %(number)b::int4[], %(name)b::text[],
    %(distinct)b::int8[], %(within_resource)b::text[], %(within_version)b::int4[], %(within_place)b::int4[],
    %(within_number)b::int4[], %(within_name)b::text[], %(within_distinct)b::int8[], %(containment)b::float8[],
    %(shared)b::int4[]
) AS found (
    resource, version, place, number, name, distinct_values, within_resource, within_version, within_place,
    within_number, within_name, within_distinct, containment, shared
)
JOIN resource AS one ON one.resource = found.resource
JOIN resource AS other ON other.resource = found.within_resource
ON CONFLICT DO NOTHING

-- name: read_joins
-- Candidates, the surest first; of a resource on either side, if one is named.
SELECT one.url, join_candidate.resource, join_candidate.version, join_candidate.place, join_candidate.number,
       join_candidate.name, join_candidate.distinct_values,
       other.url, join_candidate.within_resource, join_candidate.within_version, join_candidate.within_place,
       join_candidate.within_number, join_candidate.within_name, join_candidate.within_distinct,
       join_candidate.containment, join_candidate.shared
FROM join_candidate
JOIN resource AS one ON one.resource = join_candidate.resource
JOIN resource AS other ON other.resource = join_candidate.within_resource
WHERE %(resource)b::text IS NULL
   OR join_candidate.resource = %(resource)b::text OR join_candidate.within_resource = %(resource)b::text
ORDER BY join_candidate.containment DESC, join_candidate.shared DESC, join_candidate.resource,
         join_candidate.place, join_candidate.number, join_candidate.within_resource,
         join_candidate.within_place, join_candidate.within_number
OFFSET %(skip)b::int8 LIMIT %(limit)b::int8

-- name: joins_of
-- The candidates of some resources, as the catalogue tells them: those whose columns are within others.
SELECT one.url, join_candidate.resource, join_candidate.version, join_candidate.place, join_candidate.number,
       join_candidate.name, join_candidate.distinct_values,
       other.url, join_candidate.within_resource, join_candidate.within_version, join_candidate.within_place,
       join_candidate.within_number, join_candidate.within_name, join_candidate.within_distinct,
       join_candidate.containment, join_candidate.shared
FROM join_candidate
JOIN resource AS one ON one.resource = join_candidate.resource
JOIN resource AS other ON other.resource = join_candidate.within_resource
WHERE join_candidate.resource = ANY(%(resource)b::text[])
ORDER BY join_candidate.resource, join_candidate.place, join_candidate.number, join_candidate.within_resource,
         join_candidate.within_place, join_candidate.within_number
