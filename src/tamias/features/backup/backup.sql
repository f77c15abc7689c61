-- What a backup asks the database. The tables that only say how far the SPARQL store has followed are left out:
-- the store is not part of a backup, it is made anew from the rest.

-- name: tables
-- All tables with the columns that can be written, those that others refer to first. Numbers of transactions
-- mean nothing in another database: such columns take their default there.
WITH RECURSIVE depth (relation, steps) AS (
    SELECT pg_class.oid, 0 FROM pg_class
    WHERE pg_class.relnamespace = 'tamias'::regnamespace AND pg_class.relkind IN ('r', 'p')
      AND NOT pg_class.relispartition
    UNION ALL
    SELECT pg_constraint.conrelid, depth.steps + 1 FROM depth
    JOIN pg_constraint ON pg_constraint.confrelid = depth.relation AND pg_constraint.contype = 'f'
                      AND pg_constraint.conrelid <> pg_constraint.confrelid
)
SELECT pg_class.relname::text, array_agg(DISTINCT pg_attribute.attname::text)
FROM depth
JOIN pg_class ON pg_class.oid = depth.relation
JOIN pg_attribute ON pg_attribute.attrelid = pg_class.oid AND pg_attribute.attnum > 0
                 AND NOT pg_attribute.attisdropped AND pg_attribute.attgenerated = ''
                 AND pg_attribute.atttypid <> 'xid8'::regtype
WHERE pg_class.relname NOT IN ('catalogue', 'catalogue_news', 'meta')
GROUP BY pg_class.relname
ORDER BY max(depth.steps), pg_class.relname

-- name: counting
-- Columns that count by themselves, with their sequence.
SELECT columns.table_name::text, columns.column_name::text,
       pg_get_serial_sequence('tamias.' || columns.table_name, columns.column_name)
FROM information_schema.columns
WHERE columns.table_schema = 'tamias' AND columns.is_identity = 'YES'
ORDER BY 1, 2

-- name: strange_files
-- Names of files that no archive gives: they would lead out of the data directory.
SELECT format('%s/%s', stored_file.kind, stored_file.name) FROM stored_file
WHERE format('%s/%s', stored_file.kind, stored_file.name) !~ '^(rdf|warc|harvests|captures)/[\w-][\w.-]*$'
UNION ALL
SELECT warc_record.file FROM warc_record WHERE warc_record.file !~ '^[\w-][\w.-]*$'
LIMIT 1

-- name: go_on_counting
-- The next number follows the last one that was given out.
SELECT setval(pg_get_serial_sequence(%(table)b::text, %(column)b::text), %(last)b::int8)

-- name: packs
-- The packs that hold a body, with the length that is needed of each.
SELECT blob.pack, max(blob.start + blob.length)::int8 FROM blob GROUP BY blob.pack ORDER BY blob.pack

-- name: forget_packs
-- All packs but these. The archive that owns their store may have filled them since.
DELETE FROM pack WHERE NOT pack.pack = ANY(%(used)b::uuid[])

-- name: borrow_store
-- The bodies are another archive's.
INSERT INTO figure (name, value, set_at)
VALUES (%(name)b::text, 'true', (1000 * extract(epoch FROM now()))::int8)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, set_at = excluded.set_at

-- name: own_store
-- The bodies are ours from now on.
DELETE FROM figure WHERE figure.name = %(name)b::text

-- name: files
-- Files of quads that hold something, and of captures of old months, with their durable lengths. Those in a store
-- are not copied.
SELECT format('%s/%s', stored_file.kind, stored_file.name), stored_file.committed FROM stored_file
WHERE NOT stored_file.in_store
  AND (stored_file.kind = 'captures'
       OR (stored_file.kind = 'rdf' AND stored_file.committed > 0
           AND NOT EXISTS (SELECT FROM merged_frame AS moved
                           WHERE moved.segment = stored_file.segment AND moved.into_segment <> moved.segment)))
ORDER BY stored_file.kind DESC, stored_file.file

-- name: stored_warcs
-- The names of WARC files in a store.
SELECT stored_file.name FROM stored_file WHERE stored_file.kind = 'warc' AND stored_file.in_store

-- name: seal_files
-- Nobody writes to the files of another life.
UPDATE stored_file SET sealed = true WHERE NOT stored_file.sealed

-- name: end_leases
-- Nor does anybody hold its hosts.
UPDATE host SET token = NULL, lease_end = 0, ready_at = greatest(host.not_before, host.blocked_until)
WHERE host.bucket = %(bucket)b::int2 AND host.token IS NOT NULL

-- name: forget_again
-- Files that were restored may have what was erased: all of it is to be removed once more.
WITH again AS (
    UPDATE forgotten SET finished_at = NULL, remains = 'restored from a backup' WHERE NOT forgotten.by_rule
    RETURNING forgotten.forgotten)
UPDATE forgotten_quads SET erased = false FROM again WHERE forgotten_quads.forgotten = again.forgotten
