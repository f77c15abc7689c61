-- Rows of blobs and packs. A row of a blob is written only in a transaction that has seen its pack open.
-- `{columns}`, `{parameters}` and `{selected}` are made from the fields of tamias.archive.blobs.blob.Blob.

-- name: chains
-- Blobs and what they are decoded with, each after the one that needs it. A list of chunks is not followed.
WITH RECURSIVE chain AS (
    SELECT blob.sha256 AS asked, 0 AS step, blob.* FROM blob WHERE blob.sha256 = ANY(%(sha256)b::bytea[])
    UNION ALL
    SELECT chain.asked, chain.step + 1, base.*
    FROM chain JOIN blob AS base ON base.sha256 = chain.base
    WHERE chain.codec <> 'chunks' AND chain.step < 1000)
SELECT chain.asked, {columns} FROM chain ORDER BY chain.asked, chain.step

-- name: known
-- Which of these are there.
SELECT blob.sha256 FROM blob WHERE blob.sha256 = ANY(%(sha256)b::bytea[])

-- name: hold_packs
-- Packs that are open, held so until the end of the transaction.
SELECT pack.pack FROM pack WHERE pack.pack = ANY(%(pack)b::uuid[]) AND pack.state = 'open'
ORDER BY pack.pack FOR KEY SHARE

-- name: insert_blobs
-- New blobs. One that another writer brought first stays as it is, and is held until the end of the transaction.
INSERT INTO blob ({columns}) SELECT new.* FROM unnest({parameters}) AS new ({columns})
ORDER BY new.sha256
ON CONFLICT (sha256) DO UPDATE SET kept_at = excluded.kept_at

-- name: rely
-- These must stay: a collector that waits for the row will find it fresh.
WITH held AS (SELECT blob.sha256 FROM blob WHERE blob.sha256 = ANY(%(sha256)b::bytea[])
              ORDER BY blob.sha256 FOR NO KEY UPDATE)
UPDATE blob SET kept_at = now() FROM held WHERE blob.sha256 = held.sha256
RETURNING blob.sha256

-- name: replace_blob
-- The same body, coded anew elsewhere.
UPDATE blob SET ({columns}) = (SELECT new.* FROM unnest({parameters}) AS new), kept_at = now()
WHERE blob.sha256 = (%(sha256)b::bytea[])[1]

-- name: new_pack
-- A pack that rows may name from now on; known already when packs are read back into the database.
INSERT INTO pack (pack, state) VALUES (%(pack)b::uuid, %(state)b::text) ON CONFLICT DO NOTHING

-- name: seal_packs
-- No row will name these any more.
UPDATE pack SET state = 'sealed' WHERE pack.pack = ANY(%(pack)b::uuid[]) AND pack.state = 'open'

-- name: packs
-- All packs, how old they are in seconds, and how many of their bytes are in use.
SELECT pack.pack, pack.state, extract(epoch FROM now() - pack.made_at)::float8,
       coalesce((SELECT sum(blob.length) FROM blob WHERE blob.pack = pack.pack), 0)::int8
FROM pack ORDER BY pack.made_at, pack.pack

-- name: lock_pack
-- Waits for all transactions that are writing rows which name the pack.
SELECT pack.state FROM pack WHERE pack.pack = %(pack)b::uuid FOR UPDATE

-- name: used_length
-- Up to where rows name bytes of a pack.
SELECT coalesce(max(blob.start + blob.length), 0)::int8 FROM blob WHERE blob.pack = %(pack)b::uuid

-- name: set_pack_state
-- For a pack that is locked.
UPDATE pack SET state = %(state)b::text WHERE pack.pack = %(pack)b::uuid

-- name: forget_pack
-- Its bytes are gone.
DELETE FROM pack WHERE pack.pack = %(pack)b::uuid AND pack.state = 'gone'

-- name: blobs_of_pack
-- The records of a pack, in its order; a part of a group has none of its own.
SELECT {selected} FROM blob WHERE blob.pack = %(pack)b::uuid AND blob.codec <> 'part' ORDER BY blob.start

-- name: move_parts
-- The parts of groups stand where these do.
UPDATE blob SET pack = parent.pack, start = parent.start
FROM blob AS parent
WHERE parent.sha256 = ANY(%(sha256)b::bytea[]) AND blob.base = parent.sha256 AND blob.codec = 'part'
  AND (blob.pack, blob.start) <> (parent.pack, parent.start)

-- name: leaning
-- What is decoded with these, directly.
SELECT {selected} FROM blob WHERE blob.base = ANY(%(sha256)b::bytea[]) AND blob.codec <> 'chunks'

-- name: parts
-- The bodies of groups.
SELECT {selected} FROM blob WHERE blob.base = ANY(%(sha256)b::bytea[]) AND blob.codec = 'part' ORDER BY blob.sha256

-- name: blobs
-- Blobs by their digests.
SELECT {selected} FROM blob WHERE blob.sha256 = ANY(%(sha256)b::bytea[])

-- name: hold_blobs
-- Where blobs are now; they stay there until the end of the transaction.
SELECT blob.sha256, blob.pack, blob.start FROM blob WHERE blob.sha256 = ANY(%(sha256)b::bytea[])
ORDER BY blob.sha256 FOR UPDATE

-- name: recode_blobs
-- The same bodies in another form elsewhere.
UPDATE blob SET ({columns}) = (SELECT new.*)
FROM unnest({parameters}) AS new ({columns}) WHERE blob.sha256 = new.sha256

-- name: delete_empty_groups
-- Groups of which no part is left.
DELETE FROM blob
WHERE blob.sha256 = ANY(%(sha256)b::bytea[]) AND blob.codec = 'group'
  AND NOT EXISTS (SELECT FROM blob AS follower WHERE follower.base = blob.sha256)

-- name: move_blob
-- The same record in another pack, if it still is where it was.
UPDATE blob SET pack = %(pack)b::uuid, start = %(start)b::int8
WHERE blob.sha256 = %(sha256)b::bytea AND blob.pack = %(old_pack)b::uuid AND blob.start = %(old_start)b::int8

-- name: first_blobs
-- Blobs that are decoded without a base, some at a time.
SELECT {selected} FROM blob WHERE blob.base IS NULL AND blob.sha256 > %(after)b::bytea
ORDER BY blob.sha256 LIMIT %(at_once)b::int4

-- name: blobs_in_chunks
-- Blobs that are rows of others.
SELECT {selected} FROM blob WHERE blob.codec = 'chunks' ORDER BY blob.sha256

-- name: followers
-- What is decoded with these, directly or not: the first they lead to, and each before what needs it.
WITH RECURSIVE follower AS (
    SELECT blob.base AS first, 1 AS step, blob.* FROM blob WHERE blob.base = ANY(%(sha256)b::bytea[])
    UNION ALL
    SELECT follower.first, follower.step + 1, next.*
    FROM follower JOIN blob AS next ON next.base = follower.sha256 WHERE follower.step < 1000)
SELECT follower.first, {columns} FROM follower ORDER BY follower.first, follower.step, follower.sha256

-- name: orphans
-- Blobs whose base has no row.
SELECT blob.sha256, blob.base FROM blob
WHERE blob.base IS NOT NULL AND NOT EXISTS (SELECT FROM blob AS base WHERE base.sha256 = blob.base)

-- name: make_wanted
-- A list of blobs to keep, for this transaction.
CREATE TEMPORARY TABLE wanted (sha256 bytea PRIMARY KEY) ON COMMIT DROP

-- name: want
-- More blobs to keep.
INSERT INTO wanted (sha256) SELECT unnest(%(sha256)b::bytea[]) ON CONFLICT DO NOTHING

-- name: lists_of_chunks
-- The lists of all bodies that are in chunks.
SELECT DISTINCT blob.base FROM blob WHERE blob.codec = 'chunks'

-- name: delete_unwanted_in_chunks
-- Bodies in chunks that nobody wants and nobody has relied on for a while.
DELETE FROM blob
WHERE blob.codec = 'chunks' AND NOT EXISTS (SELECT FROM wanted WHERE wanted.sha256 = blob.sha256)
  AND blob.kept_at < now() - %(grace)b::float8 * interval '1 second'
RETURNING blob.sha256

-- name: delete_unwanted
-- The same for all blobs, but only such as no other is decoded with.
DELETE FROM blob
WHERE NOT EXISTS (SELECT FROM wanted WHERE wanted.sha256 = blob.sha256)
  AND NOT EXISTS (SELECT FROM blob AS follower WHERE follower.base = blob.sha256)
  AND blob.kept_at < now() - %(grace)b::float8 * interval '1 second'
RETURNING blob.sha256

-- name: totals
-- The archive in figures: blobs, bytes of their bodies, bytes of their records.
SELECT count(*), coalesce(sum(blob.size), 0)::int8, coalesce(sum(blob.length), 0)::int8 FROM blob

-- name: needs_of
-- What is decoded with a blob: how many others.
SELECT count(*) FROM blob WHERE blob.base = %(sha256)b::bytea AND blob.codec <> 'chunks'

-- name: note_erasing
-- Where the record of a blob stands that is about to be taken out; a part of a group has none of its own.
INSERT INTO erasing (pack, start, length)
SELECT blob.pack, blob.start, blob.length FROM blob WHERE blob.sha256 = %(sha256)b::bytea AND blob.length > 0
ON CONFLICT DO NOTHING

-- name: take_out
-- A blob that nobody has and nothing is decoded with.
DELETE FROM blob WHERE blob.sha256 = %(sha256)b::bytea RETURNING blob.codec, blob.base

-- name: erasing
-- Records that are to be erased.
SELECT erasing.pack, erasing.start, erasing.length FROM erasing ORDER BY erasing.pack, erasing.start

-- name: erased
-- Those of a pack are.
DELETE FROM erasing WHERE erasing.pack = %(pack)b::uuid

-- name: is_in_chunks
-- Whether a blob is a list of chunks.
SELECT EXISTS (SELECT FROM blob WHERE blob.base = %(sha256)b::bytea AND blob.codec = 'chunks')
