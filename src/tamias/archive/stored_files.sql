-- Files of quads and WARC files: how much of each is durable, and where it is.

-- name: new_file
-- A file for one worker to write to.
INSERT INTO stored_file (file, kind, name, segment, worker, in_store)
VALUES (%(file)b::uuid, %(kind)b::text, %(name)b::text, %(segment)b::int8, %(worker)b::int8, %(in_store)b::bool)

-- name: commit_files
-- What is durable of files; never shortened, so the same news twice is harmless, and old news after new ones. A sealed
-- file does not grow: its parts may be merged by now.
INSERT INTO stored_file AS known (file, kind, name, segment, worker, committed, sealed, in_store, parts)
SELECT news.file, news.kind, news.name, news.segment, news.worker, news.committed, news.sealed, news.in_store,
       string_to_array(news.parts, ',')::int8[]
FROM unnest(%(file)b::uuid[], %(kind)b::text[], %(name)b::text[], %(segment)b::int8[], %(worker)b::int8[],
            %(committed)b::int8[], %(sealed)b::bool[], %(in_store)b::bool[], %(parts)b::text[])
     AS news (file, kind, name, segment, worker, committed, sealed, in_store, parts)
ORDER BY news.file
ON CONFLICT (file) DO UPDATE
SET committed = greatest(known.committed, excluded.committed), sealed = known.sealed OR excluded.sealed,
    parts = CASE WHEN excluded.committed > known.committed THEN excluded.parts ELSE known.parts END
WHERE NOT known.sealed AND (excluded.committed > known.committed OR excluded.sealed)

-- name: sealed_before
-- Files that others sealed before they were as long as this.
SELECT stored_file.name
FROM unnest(%(file)b::uuid[], %(committed)b::int8[]) AS news (file, committed)
JOIN stored_file ON stored_file.file = news.file AND stored_file.committed < news.committed AND stored_file.sealed

-- name: dead_writers
-- Workers that left files in parts and are not connected. On a cluster, where they may be connected to any node, this
-- is not asked.
SELECT left_parts.worker
FROM (SELECT DISTINCT stored_file.worker FROM stored_file
      WHERE stored_file.parts <> '{}' AND stored_file.worker <> %(worker)b::int8 OFFSET 0) AS left_parts
WHERE pg_try_advisory_xact_lock(hashtextextended('tamias worker ' || left_parts.worker, 0))

-- name: seal_left
-- Files of dead workers: should one of them be alive after all, it cannot add to them.
UPDATE stored_file SET sealed = true WHERE NOT stored_file.sealed AND stored_file.worker = ANY(%(workers)b::int8[])

-- name: left_open
-- Files that workers left unsealed.
SELECT {columns} FROM stored_file WHERE NOT stored_file.sealed AND stored_file.worker = ANY(%(workers)b::int8[])
ORDER BY stored_file.file

-- name: seal_file
-- Nothing will be added to a file.
UPDATE stored_file SET sealed = true WHERE stored_file.file = %(file)b::uuid

-- name: by_segment
-- The file that rows of captures call by a number.
SELECT {columns} FROM stored_file WHERE stored_file.segment = %(segment)b::int8

-- name: merged_frames
-- Where the frames of a segment are that was merged into others.
SELECT merged_frame.frame, merged_frame.into_segment, merged_frame.start, merged_frame.length, merged_frame.next_frame
FROM merged_frame
WHERE merged_frame.segment = %(segment)b::int8 AND merged_frame.into_segment <> merged_frame.segment

-- name: by_name
-- A file by its name.
SELECT {columns} FROM stored_file WHERE stored_file.name = %(name)b::text

-- name: of_kind
-- All files of a kind that hold something, in the order of their names.
SELECT {columns} FROM stored_file WHERE stored_file.kind = %(kind)b::text AND stored_file.committed > 0
ORDER BY stored_file.name

-- name: in_parts
-- Files whose parts are to be merged: those that a worker, or others who are dead, has sealed, and those that were begun
-- before a time, whose worker would have sealed them long ago.
SELECT {columns} FROM stored_file
WHERE stored_file.parts <> '{}' AND (stored_file.sealed AND stored_file.worker = ANY(%(workers)b::int8[])
                                     OR stored_file.file < %(before)b::uuid)
ORDER BY stored_file.file LIMIT %(limit)b::int4

-- name: note_merged
-- A file is one object from now on; unless something was added meanwhile.
UPDATE stored_file SET parts = '{}', sealed = true, sha256 = %(sha256)b::bytea
WHERE stored_file.file = %(file)b::uuid AND stored_file.committed = %(committed)b::int8 AND stored_file.parts <> '{}'

-- name: note_rewritten
-- The object of a file has other bytes from now on.
UPDATE stored_file SET sha256 = %(sha256)b::bytea WHERE stored_file.file = %(file)b::uuid AND stored_file.parts = '{}'

-- name: segment_figures
-- The files of quads that hold something: how many, how large.
SELECT count(*), coalesce(sum(stored_file.committed), 0)::int8 FROM stored_file
WHERE stored_file.kind = 'rdf' AND stored_file.committed > 0
