-- Captures of old months in files of the store: tamias.archive.moved_captures.

-- name: is_cluster
-- On a cluster captures stay where they are.
SELECT EXISTS (SELECT FROM pg_extension WHERE pg_extension.extname = 'citus')

-- name: old_parts
-- Partitions that end before an id, but for captures that stay.
SELECT part.relname::text
FROM pg_inherits JOIN pg_class AS part ON part.oid = pg_inherits.inhrelid
WHERE pg_inherits.inhparent = 'tamias.capture'::regclass
  AND substring(pg_get_expr(part.relpartbound, part.oid) FROM 'TO \(''([0-9a-f-]+)''\)')::uuid <= %(before)b::uuid
ORDER BY pg_get_expr(part.relpartbound, part.oid)

-- name: columns
-- Of the table, with their types.
SELECT attribute.attname::text, format_type(attribute.atttypid, NULL)
FROM pg_attribute AS attribute
WHERE attribute.attrelid = 'tamias.capture'::regclass AND attribute.attnum > 0 AND NOT attribute.attisdropped
ORDER BY attribute.attnum

-- name: moved
-- The files that hold captures of a time.
SELECT moved.file, moved.part, moved.first, moved.last, moved.captures, moved.digest
FROM moved_captures AS moved
WHERE moved.last >= %(first)b::uuid AND moved.first <= %(last)b::uuid
ORDER BY moved.first

-- name: note_moved
-- The captures of a file are there, and not in the table any more.
INSERT INTO moved_captures (file, part, first, last, captures, digest)
VALUES (%(file)b::uuid, %(part)b::text, %(first)b::uuid, %(last)b::uuid, %(captures)b::int8, %(digest)b::text)

-- name: note_returned
-- They are in the table again.
DELETE FROM moved_captures WHERE moved_captures.file = %(file)b::uuid

-- name: forget_file
-- Nothing names the file any more.
DELETE FROM stored_file WHERE stored_file.file = %(file)b::uuid

-- name: wait_briefly
-- Nobody who writes captures is to wait for us.
SET LOCAL lock_timeout = '2s'

-- name: make_room
-- Where a reader gets what it needs of the files, for one transaction.
CREATE TEMPORARY TABLE moved_rows (LIKE tamias.capture INCLUDING DEFAULTS) ON COMMIT DROP

-- name: join_rooms
-- All captures of such a reader.
CREATE TEMPORARY VIEW every_capture AS SELECT * FROM tamias.capture UNION ALL SELECT * FROM moved_rows

-- name: names
-- The files that hold captures.
SELECT stored_file.name FROM stored_file WHERE stored_file.kind = 'captures'

-- name: put_file
-- A file of captures, complete.
INSERT INTO stored_file (file, kind, name, worker, committed, sealed, in_store, sha256)
VALUES (%(file)b::uuid, %(kind)b::text, %(name)b::text, %(worker)b::int8, %(committed)b::int8, true, %(in_store)b::bool,
        %(sha256)b::bytea)

-- name: digests
-- What the files should have.
SELECT stored_file.file, stored_file.name, stored_file.sha256 FROM stored_file WHERE stored_file.kind = 'captures'
