-- Tombstones (tamias.archive.tombstones): what was forgotten, and what is to be.

-- name: order
-- A tombstone: from now on nothing that it covers is given out. One that says the same is not repeated while it lasts.
INSERT INTO forgotten (resource, url, number, captured_at, last_number, reason, by_whom, at, blocked, by_rule)
SELECT new.resource, new.url, new.number, version.captured_at,
       coalesce(greatest((SELECT max(each.number) FROM version AS each WHERE each.resource = new.resource),
                         (SELECT max(each.number) FROM source_record AS each WHERE each.resource = new.resource)), 0),
       %(reason)b::text, %(by_whom)b::text, %(at)b::int8, %(blocked)b::bool, %(by_rule)b::bool
FROM unnest(%(resource)b::text[], %(url)b::text[], %(number)b::int4[]) AS new (resource, url, number)
     LEFT JOIN version ON version.resource = new.resource AND version.number = new.number
WHERE new.number IS NULL OR NOT EXISTS (SELECT FROM forgotten WHERE forgotten.resource = new.resource
                                                                AND forgotten.number = new.number)
RETURNING forgotten

-- name: tombstones
-- Of resources, the latest first.
SELECT {columns} FROM forgotten WHERE forgotten.resource = ANY(%(resource)b::text[])
ORDER BY forgotten.resource, forgotten.forgotten DESC

-- name: all_tombstones
-- All, the latest first, before a given one; those of rules only if they are wanted.
SELECT {columns} FROM forgotten
WHERE forgotten.forgotten < %(before)b::int8 AND (%(rules)b::bool OR NOT forgotten.by_rule)
ORDER BY forgotten.forgotten DESC LIMIT %(limit)b::int4

-- name: under_way
-- Those of which something may be left.
SELECT {columns} FROM forgotten WHERE forgotten.finished_at IS NULL ORDER BY forgotten.forgotten

-- name: lift
-- The URL may be fetched again. What was forgotten stays so.
UPDATE forgotten SET blocked = false, lifted_at = %(now)b::int8, lifted_by = %(by_whom)b::text
WHERE forgotten.resource = ANY(%(resource)b::text[]) AND forgotten.blocked
RETURNING forgotten.url

-- name: blocks_changed
-- By which it is known whether the blocks are still the same.
SELECT coalesce(max(forgotten.forgotten), 0), count(*) FILTER (WHERE forgotten.blocked),
       count(*) FILTER (WHERE forgotten.finished_at IS NULL)
FROM forgotten WHERE NOT forgotten.by_rule

-- name: blocks
-- URLs that are not fetched again.
SELECT forgotten.url, forgotten.at, forgotten.reason FROM forgotten WHERE forgotten.blocked ORDER BY forgotten.forgotten

-- name: blocked_bodies
-- Bodies of single versions that are not stored again for their URLs.
SELECT forgotten.url, encode(body.sha256, 'hex'), forgotten.at, forgotten.reason
FROM forgotten JOIN forgotten_body AS body ON body.forgotten = forgotten.forgotten
WHERE forgotten.number IS NOT NULL AND NOT forgotten.by_rule

-- name: known_as
-- The name and the address of a resource, by its name or address.
SELECT resource.resource, resource.url FROM resource
WHERE resource.resource = %(resource)b::text OR resource.url = ANY(%(url)b::text[])
ORDER BY resource.resource <> %(resource)b::text LIMIT 1

-- name: is_record
-- Whether a record of a catalogue is called so, or was.
SELECT EXISTS (SELECT FROM source_record WHERE source_record.resource = %(resource)b::text)
    OR EXISTS (SELECT FROM forgotten WHERE forgotten.resource = %(resource)b::text AND forgotten.url LIKE '%%#%%')

-- name: weight
-- How many versions and suspicious responses of a resource or record there are, or one of them; their bytes; and the
-- bytes on disk that no other resource has.
SELECT count(*), coalesce(sum(kept.byte_size), 0)::int8,
       coalesce(sum(CASE WHEN NOT EXISTS (SELECT FROM version AS other WHERE other.sha256 = kept.sha256
                                                                         AND other.resource <> kept.resource)
                         THEN coalesce(blob.length, kept.stored) END), 0)::int8
FROM (SELECT version.resource, version.sha256, version.byte_size, 0 AS stored FROM version
      WHERE version.resource = %(resource)b::text
        AND (%(number)b::int4 IS NULL OR version.number = %(number)b::int4)
      UNION ALL
      SELECT suspect.resource, suspect.sha256, suspect.byte_size, 0 FROM suspect
      WHERE suspect.resource = %(resource)b::text AND %(number)b::int4 IS NULL
      UNION ALL
      SELECT record.resource, record.sha256, record.byte_size, octet_length(record.body) FROM source_record AS record
      WHERE record.resource = %(resource)b::text
        AND (%(number)b::int4 IS NULL OR record.number = %(number)b::int4)) AS kept
     LEFT JOIN blob ON blob.sha256 = kept.sha256

-- name: has_version
-- Whether a resource or record has a version.
SELECT EXISTS (SELECT FROM version WHERE version.resource = %(resource)b::text AND version.number = %(number)b::int4)
    OR EXISTS (SELECT FROM source_record AS kept
               WHERE kept.resource = %(resource)b::text AND kept.number = %(number)b::int4)
