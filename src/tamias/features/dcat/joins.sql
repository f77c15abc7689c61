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

-- part: candidates
-- Candidates with both of their columns.
SELECT one.url, join_candidate.resource, join_candidate.version, join_candidate.place, join_candidate.number,
       join_candidate.name, join_candidate.distinct_values,
       other.url, join_candidate.within_resource, join_candidate.within_version, join_candidate.within_place,
       join_candidate.within_number, join_candidate.within_name, join_candidate.within_distinct,
       join_candidate.containment, join_candidate.shared
FROM join_candidate
JOIN resource AS one ON one.resource = join_candidate.resource
JOIN resource AS other ON other.resource = join_candidate.within_resource

-- name: read_joins
-- Candidates, the surest first; of a resource on either side, if one is named.
{candidates}
WHERE %(resource)b::text IS NULL
   OR join_candidate.resource = %(resource)b::text OR join_candidate.within_resource = %(resource)b::text
ORDER BY join_candidate.containment DESC, join_candidate.shared DESC, join_candidate.resource,
         join_candidate.place, join_candidate.number, join_candidate.within_resource,
         join_candidate.within_place, join_candidate.within_number
OFFSET %(skip)b::int8 LIMIT %(limit)b::int8

-- name: joins_of
-- The candidates of some resources, as the catalogue tells them: those whose columns are within others.
{candidates}
WHERE join_candidate.resource = ANY(%(resource)b::text[])
ORDER BY join_candidate.resource, join_candidate.place, join_candidate.number, join_candidate.within_resource,
         join_candidate.within_place, join_candidate.within_number

-- name: near
-- A resource, and some of those that its columns are within.
SELECT %(resource)b::text
UNION
(SELECT join_candidate.within_resource FROM join_candidate WHERE join_candidate.resource = %(resource)b::text LIMIT 100)

-- name: alike
-- Pairs of tables with columns of one name whose values are in each other. Of equal columns only the first is compared
-- with others: it stands for the rest, or for so many of them. A pair is named from the side of a resource, or once.
WITH candidate AS (
    SELECT known.* FROM join_candidate AS known WHERE %(near)b::text[] IS NULL
    UNION
    SELECT known.*
    FROM unnest(%(near)b::text[]) AS near (resource)
         CROSS JOIN LATERAL (SELECT every.* FROM join_candidate AS every
                             WHERE every.resource = near.resource LIMIT 2000) AS known
    UNION
    SELECT known.*
    FROM unnest(%(near)b::text[]) AS near (resource)
         CROSS JOIN LATERAL (SELECT every.* FROM join_candidate AS every
                             WHERE every.within_resource = near.resource LIMIT 2000) AS known),
edge AS (
    SELECT one.*, back.containment AS back_containment
    FROM candidate AS one
         LEFT JOIN join_candidate AS back
         ON back.resource = one.within_resource AND back.place = one.within_place AND back.number = one.within_number
            AND back.within_resource = one.resource AND back.within_place = one.place
            AND back.within_number = one.number),
member AS (
    SELECT edge.resource, edge.place, edge.number, edge.name, edge.within_resource AS first_resource,
           edge.within_place AS first_place, edge.within_number AS first_number
    FROM edge
    WHERE edge.back_containment IS NULL AND edge.containment = 1 AND edge.distinct_values = edge.within_distinct),
first AS (
    SELECT edge.within_resource AS resource, edge.within_place AS place, edge.within_number AS number,
           edge.within_name AS name
    FROM edge),
node AS (
    SELECT known.*, row_number() OVER (PARTITION BY known.first_resource, known.first_place, known.first_number
                                       ORDER BY known.resource, known.place, known.number) AS position
    FROM (SELECT member.* FROM member
          UNION
          SELECT first.*, first.resource, first.place, first.number FROM first) AS known),
matched AS (
    SELECT one.resource, one.place, one.number, other.resource AS other, other.place AS other_place, 1.0 AS share
    FROM node AS one
         JOIN node AS other
         ON (other.first_resource, other.first_place, other.first_number)
            = (one.first_resource, one.first_place, one.first_number)
    WHERE lower(one.name) = lower(other.name) AND one.resource <> other.resource
      AND CASE WHEN %(resource)b::text IS NULL
               THEN one.resource < other.resource AND one.position <= 50 AND other.position <= 50
               ELSE one.resource = %(resource)b::text END
    UNION
    SELECT one.resource, one.place, one.number, other.resource, other.place,
           least(edge.containment, edge.back_containment)
    FROM edge
         JOIN node AS one
         ON (one.first_resource, one.first_place, one.first_number) = (edge.resource, edge.place, edge.number)
         JOIN node AS other
         ON (other.first_resource, other.first_place, other.first_number)
            = (edge.within_resource, edge.within_place, edge.within_number)
    WHERE edge.back_containment IS NOT NULL AND lower(one.name) = lower(other.name)
      AND one.resource <> other.resource
      AND CASE WHEN %(resource)b::text IS NULL
               THEN one.resource < other.resource AND one.position <= 50 AND other.position <= 50
               ELSE one.resource = %(resource)b::text END),
pair AS (
    SELECT matched.resource, matched.place, matched.other, matched.other_place,
           count(DISTINCT matched.number) AS columns, avg(matched.share)::float8 AS share
    FROM matched
    GROUP BY matched.resource, matched.place, matched.other, matched.other_place)
SELECT pair.resource, one.url, pair.place, pair.other, other.url, pair.other_place, pair.columns::int4,
       wide.columns::int4, pair.share, pair.columns * pair.share / wide.columns
FROM pair
     JOIN resource AS one ON one.resource = pair.resource
     JOIN resource AS other ON other.resource = pair.other
     CROSS JOIN LATERAL (
         SELECT greatest(max(counted.columns), pair.columns) AS columns
         FROM (SELECT count(*) AS columns
               FROM (VALUES (one.sha256, pair.place), (other.sha256, pair.other_place)) AS side (sha256, place)
                    JOIN profile ON profile.sha256 = side.sha256 AND profile.kind = 'table'
                    CROSS JOIN LATERAL jsonb_array_elements(profile.profile -> (side.place - 1) -> 'columns')
                               AS part (value)
               WHERE part.value ->> 'sketch' <> '' AND (part.value ->> 'distinct')::int8 >= 5
               GROUP BY side.sha256, side.place) AS counted) AS wide
WHERE pair.columns * pair.share / wide.columns >= %(least)b::float8
ORDER BY pair.columns * pair.share / wide.columns DESC, pair.resource, pair.place, pair.other, pair.other_place
LIMIT %(limit)b::int4
