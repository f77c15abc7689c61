-- Segments that are merged into others.

-- name: candidates
-- Sealed segments that were begun before a time and are in no other, with the plain bytes of those that are merged.
SELECT stored_file.file, stored_file.kind, stored_file.name, stored_file.segment, stored_file.worker,
       stored_file.committed, stored_file.sealed, stored_file.in_store, stored_file.parts, held.plain
FROM stored_file
     LEFT JOIN (SELECT merged_frame.into_segment, max(merged_frame.start + merged_frame.length) AS plain
                FROM merged_frame WHERE merged_frame.into_segment <> merged_frame.segment
                GROUP BY merged_frame.into_segment) AS held ON held.into_segment = stored_file.segment
WHERE stored_file.kind = 'rdf' AND stored_file.sealed AND stored_file.committed > 0
  AND stored_file.in_store = %(in_store)b::bool
  AND (stored_file.segment < %(before)b::int8 OR held.plain IS NOT NULL)
  AND NOT EXISTS (SELECT FROM merged_frame WHERE merged_frame.segment = stored_file.segment)
ORDER BY stored_file.segment

-- name: seal_left
-- Segments of workers that are not among these, and will add nothing.
UPDATE stored_file SET sealed = true
WHERE stored_file.kind = 'rdf' AND NOT stored_file.sealed AND NOT stored_file.in_store AND stored_file.worker > 0
  AND stored_file.worker <> ALL(%(workers)b::int8[])

-- name: forgotten
-- How many statements were forgotten ever, and of how many the bytes are still there.
SELECT count(*), count(*) FILTER (WHERE NOT forgotten_quads.erased) FROM forgotten_quads

-- name: hold
-- Segments that are in no other, until the end of the transaction.
SELECT stored_file.segment FROM stored_file
WHERE stored_file.segment = ANY(%(segment)b::int8[])
  AND NOT EXISTS (SELECT FROM merged_frame WHERE merged_frame.segment = stored_file.segment)
ORDER BY stored_file.file FOR UPDATE

-- name: stay
-- Segments that would not become smaller.
INSERT INTO merged_frame (segment, frame, into_segment, start, length, next_frame)
SELECT stays.segment, -1, stays.segment, 0, 0, -1 FROM unnest(%(segment)b::int8[]) AS stays (segment)
ON CONFLICT DO NOTHING

-- name: commit_merged
-- A new segment is complete.
UPDATE stored_file SET committed = %(committed)b::int8, sealed = true
WHERE stored_file.file = %(file)b::uuid AND stored_file.committed = 0

-- name: move_on
-- Frames of segments that are merged in turn.
UPDATE merged_frame SET into_segment = new.into_segment, start = merged_frame.start + new.start
FROM unnest(%(segment)b::int8[], %(into)b::int8[], %(start)b::int8[]) AS new (segment, into_segment, start)
WHERE merged_frame.into_segment = new.segment AND merged_frame.segment <> new.segment

-- name: add_frames
-- Where frames are from now on.
INSERT INTO merged_frame (segment, frame, into_segment, start, length, next_frame)
SELECT new.segment, new.frame, new.into_segment, new.start, new.length, new.next_frame
FROM unnest(%(segment)b::int8[], %(frame)b::int8[], %(into)b::int8[], %(start)b::int8[], %(length)b::int8[],
            %(next_frame)b::int8[]) AS new (segment, frame, into_segment, start, length, next_frame)

-- name: merged_files
-- Files of segments that are in others, and of such as were never complete.
SELECT stored_file.name, stored_file.in_store, stored_file.file FROM stored_file
WHERE stored_file.kind = 'rdf' AND stored_file.worker <= 0 AND stored_file.committed = 0
   OR EXISTS (SELECT FROM merged_frame
              WHERE merged_frame.segment = stored_file.segment AND merged_frame.into_segment <> merged_frame.segment)

-- name: forget_file
-- The file is removed.
DELETE FROM stored_file WHERE stored_file.file = %(file)b::uuid
