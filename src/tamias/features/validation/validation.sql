-- Schemas and checks.

-- name: unread_files
-- Versions of files that may be schemas and were not read yet.
SELECT resource.resource, resource.url, version.number, version.captured_at, encode(version.sha256, 'hex'),
       version.byte_size
FROM resource JOIN kept_version AS version ON version.resource = resource.resource
WHERE resource.url ~ '(-metadata|[./]schema|/datapackage)\.json$'
  AND NOT EXISTS (SELECT FROM schema_file WHERE schema_file.file = resource.resource
                                            AND schema_file.number = version.number)
ORDER BY resource.resource, version.number LIMIT %(limit)b::int4

-- name: put_file
-- The tables that a version of a schema is for.
INSERT INTO schema_file (file, number, captured_at, tables)
VALUES (%(file)b::text, %(number)b::int4, %(captured_at)b::int8, %(tables)b::text[])
ON CONFLICT (file, number) DO UPDATE SET tables = excluded.tables

-- name: unchecked
-- Versions of tables that were not checked yet, each with the schema of its time: the last before it, or the first.
SELECT version.resource, resource.url, version.number, encode(version.sha256, 'hex'), version.byte_size,
       version.media_type, version.told_type, pair.file, held.number, about.url, encode(schema.sha256, 'hex')
FROM (SELECT DISTINCT unnest(schema_file.tables) AS resource, schema_file.file FROM schema_file) AS pair
JOIN resource ON resource.resource = pair.resource
JOIN kept_version AS version ON version.resource = pair.resource
JOIN resource AS about ON about.resource = pair.file
CROSS JOIN LATERAL (SELECT schema_file.number FROM schema_file
                    WHERE schema_file.file = pair.file AND pair.resource = ANY(schema_file.tables)
                      AND schema_file.number > 0
                    ORDER BY schema_file.captured_at > version.captured_at,
                             abs(schema_file.captured_at - version.captured_at) LIMIT 1) AS held
JOIN kept_version AS schema ON schema.resource = pair.file AND schema.number = held.number
WHERE NOT EXISTS (SELECT FROM schema_check AS done WHERE done.resource = version.resource
                                                     AND done.number = version.number AND done.file = pair.file)
ORDER BY version.resource, version.number, pair.file LIMIT %(limit)b::int4

-- name: put_check
-- What was found.
INSERT INTO schema_check (resource, number, file, file_number, is_valid, faults, checked_at)
VALUES (%(resource)b::text, %(number)b::int4, %(file)b::text, %(file_number)b::int4, %(is_valid)b::bool,
        %(faults)b::jsonb, %(now)b::int8)
ON CONFLICT DO NOTHING

-- name: newest_body
-- The newest version of a resource.
SELECT encode(version.sha256, 'hex'), version.byte_size FROM kept_version AS version
WHERE version.resource = %(resource)b::text ORDER BY version.number DESC LIMIT 1

-- name: unlooked_tables
-- Watched tables next to which no schema was looked for.
SELECT resource.url FROM resource
WHERE resource.state = 'active' AND resource.versions > 0 AND resource.media_type = ANY(%(types)b::text[])
  AND NOT EXISTS (SELECT FROM schema_file WHERE resource.resource = ANY(schema_file.tables))
LIMIT %(limit)b::int4

-- name: absent_files
-- Files that were looked for and are not there.
SELECT resource.url FROM schema_file JOIN resource ON resource.resource = schema_file.file
WHERE schema_file.number = 0 AND resource.state <> 'stopped' AND resource.versions = 0
  AND resource.tried_at IS NOT NULL

-- name: read_checks
-- Checks of some resources, in the order of their versions.
SELECT checks.resource, checks.number, version.captured_at, about.url, checks.is_valid, checks.faults,
       checks.number = resource.versions
FROM schema_check AS checks
JOIN kept_version AS version ON version.resource = checks.resource AND version.number = checks.number
JOIN resource AS about ON about.resource = checks.file
JOIN resource ON resource.resource = checks.resource
WHERE %(resource)b::text[] IS NULL OR checks.resource = ANY(%(resource)b::text[])
ORDER BY checks.resource, checks.file, checks.number

-- name: erase_files
-- Schemas of which the version is forgotten.
DELETE FROM schema_file WHERE schema_file.number > 0
  AND NOT EXISTS (SELECT FROM version WHERE version.resource = schema_file.file
                                        AND version.number = schema_file.number)

-- name: erase_checks
-- Checks of which the version or the schema is forgotten.
DELETE FROM schema_check AS done
WHERE NOT EXISTS (SELECT FROM version WHERE version.resource = done.resource AND version.number = done.number)
   OR NOT EXISTS (SELECT FROM version WHERE version.resource = done.file AND version.number = done.file_number)

-- name: clean_checks
-- Leaves nothing of deleted rows in the file of the table.
VACUUM (FULL) tamias.schema_check
