-- What is written in the transaction of a finish, and read by export, stats and check. `{columns}`, `{parameters}` and
-- `{selected}` are made from the fields of tamias.model.capture.CaptureRecord.

-- name: insert_captures
-- Every attempt is a row; the same attempt twice is one row.
INSERT INTO capture (bucket, qid, uid, {columns})
SELECT %(bucket)b::int2, new.* FROM unnest(%(qid)b::int8[], %(uid)b::int8[], {parameters}) AS new
ON CONFLICT DO NOTHING

-- name: known_captures
-- Which of some captures are there already, by address, time and body.
SELECT DISTINCT asked.place FROM unnest(%(place)b::int4[], %(bucket)b::int2[], %(qid)b::int8[], %(uid)b::int8[],
                               %(started_at)b::int8[], %(sha256)b::bytea[])
                        AS asked (place, bucket, qid, uid, started_at, sha256)
JOIN capture ON capture.bucket = asked.bucket AND capture.qid = asked.qid AND capture.crawl = ANY(%(crawl)b::int4[])
            AND capture.uid = asked.uid AND capture.started_at = asked.started_at
            AND capture.sha256 IS NOT DISTINCT FROM asked.sha256

-- name: replace_current
-- Readings with quads are what their documents hold from now on; one that a limit cut only where no whole one is.
-- Returned are those that count.
INSERT INTO current_document AS known (bucket, document_key, qid, started_at, capture, segment, frame, start, length,
                                       cut, document)
SELECT DISTINCT ON (new.document)
       %(bucket)b::int2, substr(sha256(convert_to(new.document, 'UTF8')), 1, 16), new.qid, new.started_at,
       new.capture, new.segment, new.frame, new.start, new.length, new.cut, new.document
FROM unnest(%(document)b::text[], %(qid)b::int8[], %(started_at)b::int8[], %(capture)b::uuid[], %(segment)b::int8[],
            %(frame)b::int8[], %(start)b::int8[], %(length)b::int8[], %(cut)b::bool[])
     AS new (document, qid, started_at, capture, segment, frame, start, length, cut)
ORDER BY new.document, new.cut, new.started_at DESC, new.capture DESC
ON CONFLICT (bucket, document_key) DO UPDATE
SET qid = excluded.qid, started_at = excluded.started_at, capture = excluded.capture, segment = excluded.segment,
    frame = excluded.frame, start = excluded.start, length = excluded.length, cut = excluded.cut
WHERE (excluded.started_at, excluded.capture) > (known.started_at, known.capture)
  AND (known.cut OR known.segment IS NULL OR NOT excluded.cut)
RETURNING known.capture

-- name: end_current
-- Documents that are gone, or were read to their end and hold no quads, hold none any more; those that never did
-- have no row. Returned are the captures that ended something.
UPDATE current_document AS known
SET started_at = ended.started_at, capture = ended.capture, segment = NULL, cut = false
FROM (SELECT DISTINCT ON (new.document)
             substr(sha256(convert_to(new.document, 'UTF8')), 1, 16) AS document_key, new.started_at, new.capture
      FROM unnest(%(document)b::text[], %(started_at)b::int8[], %(capture)b::uuid[])
           AS new (document, started_at, capture)
      ORDER BY new.document, new.started_at DESC, new.capture DESC) AS ended
WHERE known.bucket = %(bucket)b::int2 AND known.document_key = ended.document_key AND known.segment IS NOT NULL
  AND (ended.started_at, ended.capture) > (known.started_at, known.capture)
RETURNING known.capture

-- name: read_held
-- What documents hold: the statements and the bytes of the reading that they have them from.
SELECT known.document, capture.quads, coalesce(capture.bytes, 0)
FROM unnest(%(bucket)b::int2[], %(document)b::text[]) AS asked (bucket, document)
JOIN current_document AS known
  ON known.bucket = asked.bucket AND known.segment IS NOT NULL AND NOT known.cut
 AND known.document_key = substr(sha256(convert_to(asked.document, 'UTF8')), 1, 16)
JOIN capture ON capture.bucket = known.bucket AND capture.capture = known.capture

-- name: current_extents
-- Where the quads that documents hold now stand, in the order of the files. A document may have come by way of
-- hosts in several buckets: the latest whole reading stands for it. Of these, what was read since a time.
SELECT latest.segment, latest.frame, latest.start, latest.length, latest.capture::text
FROM (SELECT DISTINCT ON (known.document_key) known.* FROM current_document AS known
      ORDER BY known.document_key, known.cut, known.started_at DESC, known.capture DESC) AS latest
WHERE latest.segment IS NOT NULL AND latest.started_at >= %(since)b::int8
ORDER BY latest.segment, latest.frame, latest.start

-- name: documents_at
-- Where the quads stand that documents held at a time. Of each document the last reading with quads; it ended when
-- the document was gone, or was read without quads. An answer with the same body was not read again, and a redirect
-- elsewhere is no reading. Of readings that a limit cut the last counts, where no whole one does.
WITH read_once AS (
    SELECT capture.*, coalesce(capture.final_url, capture.url) AS document, capture.outcome NOT IN (1, 3) AS cut,
           count(*) FILTER (WHERE capture.outcome = 1 AND capture.segment IS NOT NULL) OVER earlier AS reading
    FROM capture
    WHERE capture.started_at <= %(at)b::int8
      AND (capture.outcome = 3 OR capture.segment IS NOT NULL
           OR capture.outcome = 1 AND coalesce(capture.status, 200) NOT BETWEEN 300 AND 399)
    WINDOW earlier AS (PARTITION BY coalesce(capture.final_url, capture.url)
                       ORDER BY capture.started_at, capture.capture)),
compared AS (
    SELECT read_once.*, first_value(read_once.sha256) OVER (
               PARTITION BY read_once.document, read_once.reading
               ORDER BY read_once.started_at, read_once.capture) AS body
    FROM read_once),
telling AS (
    SELECT compared.*, count(*) FILTER (WHERE NOT compared.cut) OVER (
               PARTITION BY compared.document
               ORDER BY compared.started_at DESC, compared.capture DESC) AS whole_since
    FROM compared
    WHERE compared.outcome = 3 OR compared.segment IS NOT NULL OR compared.reading = 0 OR compared.sha256 IS NULL
       OR compared.body IS NULL OR compared.sha256 <> compared.body),
latest AS (
    SELECT DISTINCT ON (telling.document) telling.*
    FROM telling
    WHERE telling.whole_since = CASE WHEN telling.cut THEN 0 ELSE 1 END
    ORDER BY telling.document, telling.cut OR telling.segment IS NULL OR telling.outcome = 3, telling.cut DESC,
             telling.started_at DESC, telling.capture DESC)
SELECT latest.segment, latest.frame, latest.start, latest.length, latest.document, latest.started_at,
       latest.capture::text
FROM latest
WHERE latest.segment IS NOT NULL AND latest.outcome <> 3
ORDER BY latest.segment, latest.frame, latest.start

-- name: readings_of
-- What was read of one document, oldest first: the rows that `documents_at` considers.
SELECT capture.segment, capture.frame, capture.start, capture.length, capture.capture::text, capture.started_at,
       capture.outcome, capture.sha256
FROM capture
WHERE coalesce(capture.final_url, capture.url) = %(document)b::text
  AND (capture.outcome = 3 OR capture.segment IS NOT NULL
       OR capture.outcome = 1 AND coalesce(capture.status, 200) NOT BETWEEN 300 AND 399)
ORDER BY capture.started_at, capture.capture

-- name: all_extents
-- The same for every capture.
SELECT capture.segment, capture.frame, capture.start, capture.length, capture.capture::text
FROM capture WHERE capture.segment IS NOT NULL AND capture.started_at >= %(since)b::int8
ORDER BY capture.segment, capture.frame, capture.start

-- name: captures_of_crawl
-- The attempts of a crawl that brought quads.
SELECT capture.capture::text FROM capture WHERE capture.crawl = %(crawl)b::int4 AND capture.segment IS NOT NULL

-- name: all_captures
-- Every attempt, oldest first.
SELECT crawl.name, capture.url, {selected}
FROM capture JOIN crawl ON crawl.crawl = capture.crawl
WHERE capture.started_at >= %(since)b::int8
ORDER BY capture.started_at, capture.capture

-- name: some_captures
-- Attempts of a bucket by their ids.
SELECT crawl.name, capture.url, {selected}
FROM capture JOIN crawl ON crawl.crawl = capture.crawl
WHERE capture.bucket = %(bucket)b::int2 AND capture.capture = ANY(%(ids)b::uuid[])
ORDER BY capture.started_at, capture.capture

-- name: named_captures
-- Attempts by their ids. The buckets are named, for the key of the table begins with them.
SELECT crawl.name, capture.url, {selected}
FROM meta CROSS JOIN generate_series(0, meta.buckets - 1) AS part (bucket)
     JOIN capture ON capture.bucket = part.bucket AND capture.capture = ANY(%(ids)b::uuid[])
     JOIN crawl ON crawl.crawl = capture.crawl

-- name: matching_captures
-- Attempts of a bucket that fit all that is named; null fits all. Ids begin with the time of the attempt, so that those
-- of a time are found by the primary key. Where an IRI is encoded, its URL may begin with what stands before that and go
-- on otherwise. The URL does not tell the queue, which an index has: that is a domain, a host, an address, or a crawl's.
SELECT crawl.name, capture.url, {selected}
FROM capture JOIN crawl ON crawl.crawl = capture.crawl
WHERE capture.bucket = %(bucket)b::int2
  AND capture.capture >= %(first)b::uuid AND capture.capture <= %(last)b::uuid
  AND capture.started_at BETWEEN %(since)b::int8 AND %(until)b::int8
  AND (%(iri)b::text IS NULL OR capture.url = %(iri)b::text
       OR starts_with(capture.url, %(beginning)b::text))
  AND (%(outcome)b::int2 IS NULL OR capture.outcome = %(outcome)b::int2)
  AND (%(crawl)b::text IS NULL OR crawl.name = %(crawl)b::text)
LIMIT %(limit)b::int8

-- name: signals
-- All captures with which anything was said, or whose URL is like a pattern, with the bodies that they brought.
SELECT capture.capture::text, coalesce(capture.final_url, capture.url), coalesce(encode(capture.sha256, 'hex'), ''),
       coalesce(capture.signals, '[]'), capture.url, capture.started_at
FROM capture
WHERE capture.signals IS NOT NULL OR capture.url ~ ANY(%(closed)b::text[]) OR capture.final_url ~ ANY(%(closed)b::text[])

-- name: signals_of
-- What was said with one capture. In which bucket it is, is not known.
SELECT capture.signals FROM capture
WHERE capture.bucket IN (SELECT generate_series(0, meta.buckets - 1) FROM meta)
  AND capture.capture = %(capture)b::text::uuid AND capture.signals IS NOT NULL
