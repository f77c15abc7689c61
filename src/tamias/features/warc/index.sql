-- Where responses stand in WARC files. `{columns}`, `{parameters}` and `{selected}` are made from the fields of
-- tamias.features.warc.index.WarcExtent.

-- name: insert_records
-- Responses that are durable in their files; the same twice is one row.
INSERT INTO warc_record ({columns})
SELECT new.* FROM unnest({parameters}) AS new ON CONFLICT DO NOTHING

-- name: resolve_revisits
-- The bodies of revisits whose originals were not known.
UPDATE warc_record SET sha256 = new.sha256, capture = new.capture
FROM unnest({parameters}) AS new ({columns})
WHERE warc_record.url = new.url AND warc_record.captured_at = new.captured_at AND warc_record.revisit
  AND warc_record.sha256 IS NULL

-- name: unindexed
-- Which of some files have no row yet.
SELECT asked.file FROM unnest(%(file)b::text[]) AS asked (file)
WHERE NOT EXISTS (SELECT FROM warc_record WHERE warc_record.file = asked.file)

-- name: records_of
-- What was captured of some URLs, oldest first, without answers that only say that nothing has changed.
SELECT {selected} FROM warc_record
WHERE warc_record.url = ANY(%(url)b::text[]) AND warc_record.sha256 IS NOT NULL
ORDER BY warc_record.captured_at, warc_record.file, warc_record.position LIMIT %(limit)b::int4

-- name: latest_records
-- The newest of one URL.
SELECT {selected} FROM warc_record
WHERE warc_record.url = %(url)b::text AND warc_record.sha256 IS NOT NULL
ORDER BY warc_record.captured_at DESC LIMIT %(limit)b::int4

-- name: records_in
-- Those of one file after a place, in their order.
SELECT {selected} FROM warc_record
WHERE warc_record.file = %(file)b::text AND warc_record.position > %(after)b::int8
ORDER BY warc_record.position LIMIT %(limit)b::int4

-- name: indexed_besides
-- Files that have rows, besides some, with how many and one of their URLs.
SELECT warc_record.file, count(*)::int8, min(warc_record.url) FROM warc_record
WHERE warc_record.file <> ALL(%(file)b::text[]) GROUP BY warc_record.file ORDER BY warc_record.file

-- name: records_with
-- Records that hold a body.
SELECT {selected} FROM warc_record
WHERE warc_record.sha256 = %(sha256)b::bytea AND NOT warc_record.revisit LIMIT %(limit)b::int4

-- name: positions
-- Where the records of a file begin that can be replayed.
SELECT warc_record.position FROM warc_record WHERE warc_record.file = %(file)b::text

-- name: newest_bodies
-- The bodies of the files that were begun last, by the order of their names, oldest first.
SELECT newest.url, encode(newest.sha256, 'hex'), newest.captured_at
FROM (SELECT record.* FROM warc_record AS record
      ORDER BY record.file DESC, record.position DESC LIMIT %(limit)b::int4) AS newest
WHERE NOT newest.revisit AND newest.sha256 IS NOT NULL AND strpos(newest.file, '-import-') = 0
ORDER BY newest.captured_at
