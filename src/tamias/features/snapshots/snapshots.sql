-- Snapshots of the corpus.

-- name: add_snapshot
-- One more; nothing where there is another of its name. The same one twice is one.
INSERT INTO snapshot AS known (name, at, made_at, about, datacite, licences, manifest, provenance)
VALUES (%(name)b::text, %(at)b::int8, %(made_at)b::int8, %(about)b::text, %(datacite)b::text, %(licences)b::text,
        %(manifest)b::bytea, %(provenance)b::bytea)
ON CONFLICT (name) DO UPDATE SET name = excluded.name
WHERE (known.at, known.made_at, known.about) = (excluded.at, excluded.made_at, excluded.about)
RETURNING name

-- name: pin_captures
-- Captures that a snapshot needs.
INSERT INTO snapshot_capture (capture, snapshot)
SELECT DISTINCT named.capture, %(name)b::text FROM unnest(%(capture)b::uuid[]) AS named (capture)
ON CONFLICT DO NOTHING

-- name: list_snapshots
-- All snapshots, or the one of a name, by the time they are of.
SELECT snapshot.about, snapshot.made_at, snapshot.datacite, snapshot.licences FROM snapshot
WHERE %(name)b::text IS NULL OR snapshot.name = %(name)b::text
ORDER BY snapshot.at, snapshot.name

-- name: bodies
-- The bodies that snapshots need, with the name of the snapshot.
SELECT snapshot.name, encode(needed.sha256, 'hex')
FROM snapshot CROSS JOIN LATERAL (VALUES (snapshot.manifest), (snapshot.provenance)) AS needed (sha256)

-- name: remove_snapshot
-- With its pins.
DELETE FROM snapshot WHERE snapshot.name = %(name)b::text RETURNING snapshot.name

-- name: present_versions
-- Which of these versions are there and not being forgotten, with the bytes that they had.
SELECT version.resource || '_' || version.number
FROM unnest(%(resource)b::text[], %(number)b::int4[], %(sha256)b::bytea[]) AS named (resource, number, sha256)
     JOIN kept_version AS version ON version.resource = named.resource AND version.number = named.number
                                 AND version.sha256 = named.sha256

-- name: extents
-- Where the quads of captures stand, unless they are being forgotten. The buckets are named, for the key of the table
-- begins with them.
WITH under_way AS MATERIALIZED (
    SELECT forgotten.url, version.sha256, forgotten.number IS NULL AND forgotten.blocked AS is_all,
           CASE WHEN forgotten.number IS NULL THEN forgotten.at END AS until
    FROM forgotten
         LEFT JOIN version ON version.resource = forgotten.resource AND version.number = forgotten.number
    WHERE forgotten.finished_at IS NULL)
SELECT capture.capture::text, capture.segment, capture.frame, capture.start, capture.length
FROM capture
WHERE capture.bucket = ANY(ARRAY(SELECT generate_series(0, meta.buckets - 1)::int2 FROM meta))
  AND capture.capture = ANY(%(capture)b::uuid[]) AND capture.segment IS NOT NULL
  AND NOT EXISTS (SELECT FROM under_way
                  WHERE under_way.url IN (capture.url, capture.final_url)
                    AND (under_way.sha256 = capture.sha256 OR under_way.is_all
                         OR capture.started_at <= under_way.until))

-- name: licences
-- What portals say of files: the licence of the file, which is that of its dataset where it has none of its own.
SELECT DISTINCT offered.url, portal.url, form.value ->> 'licence'
FROM offered
     JOIN portal ON portal.portal = offered.portal
     JOIN described ON described.portal = offered.portal AND described.record = offered.record
     CROSS JOIN LATERAL jsonb_array_elements(described.told -> 'forms') AS form (value)
WHERE offered.url = ANY(%(url)b::text[]) AND form.value ->> 'url' = offered.url
ORDER BY 1, 2, 3
