-- Deliveries to sinks outside: what is written with a finish, claimed by a deliverer, and settled. `{columns}`,
-- `{parameters}` and `{selected}` are made from the fields of tamias.sinks.outbox.Edition.

-- name: add_sink
-- A sink's number; the same name twice is one sink.
INSERT INTO sink (name) VALUES (%(name)b::text) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING sink

-- name: all_sinks
-- The sinks outside that crawls deliver to.
SELECT sink.sink, sink.name FROM sink ORDER BY sink.sink

-- name: enqueue
-- The latest capture of each document is to be delivered; an older one than is known changes nothing.
-- A row that is held or put off stays so: it is given back, or its time comes.
INSERT INTO outbox AS known (bucket, sink, document_key, due, started_at, {columns})
SELECT DISTINCT ON (wanted.sink, new.document_key)
       %(bucket)b::int2, wanted.sink, new.*
FROM unnest(%(document_key)b::bytea[], %(due)b::int8[], %(started_at)b::int8[], {parameters})
     AS new (document_key, due, started_at, {columns})
CROSS JOIN unnest(%(sinks)b::int4[]) AS wanted (sink)
ORDER BY wanted.sink, new.document_key, new.started_at DESC, new.capture DESC
ON CONFLICT (bucket, sink, document_key) DO UPDATE
SET due = CASE known.due WHEN 9223372036854775807 THEN excluded.due ELSE known.due END,
    tries = 0, problem = NULL, started_at = excluded.started_at, capture = excluded.capture,
    segment = excluded.segment, frame = excluded.frame, start = excluded.start, length = excluded.length
WHERE (excluded.started_at, excluded.capture) > (known.started_at, known.capture)

-- name: catch_up
-- The same for what changed in a bucket while the sink was not named: after the latest it was told of.
INSERT INTO outbox AS known (bucket, sink, document_key, due, started_at, capture, segment, frame, start, length,
                             document)
SELECT %(bucket)b::int2, %(sink)b::int4, missed.document_key, missed.started_at, missed.started_at, missed.capture,
       missed.segment, missed.frame, missed.start, missed.length, missed.document
FROM current_document AS missed
WHERE missed.bucket = %(bucket)b::int2 AND missed.capture > %(after)b::uuid
ON CONFLICT (bucket, sink, document_key) DO UPDATE
SET due = CASE known.due WHEN 9223372036854775807 THEN excluded.due ELSE known.due END,
    tries = 0, problem = NULL, started_at = excluded.started_at, capture = excluded.capture,
    segment = excluded.segment, frame = excluded.frame, start = excluded.start, length = excluded.length
WHERE (excluded.started_at, excluded.capture) > (known.started_at, known.capture)

-- name: enqueue_metadata
-- What is known of attempts is to be delivered, each once.
INSERT INTO outbox (bucket, sink, document_key, due, started_at, capture, document)
SELECT %(bucket)b::int2, wanted.sink, new.document_key, new.due, new.started_at, new.capture, new.document
FROM unnest(%(document_key)b::bytea[], %(due)b::int8[], %(started_at)b::int8[], %(capture)b::uuid[],
            %(document)b::text[]) AS new (document_key, due, started_at, capture, document)
CROSS JOIN unnest(%(sinks)b::int4[]) AS wanted (sink)
ON CONFLICT DO NOTHING

-- name: catch_up_metadata
-- The same for attempts in a bucket while the sink was not named.
INSERT INTO outbox (bucket, sink, document_key, due, started_at, capture, document)
SELECT %(bucket)b::int2, %(sink)b::int4, substr(sha256(convert_to('urn:uuid:' || missed.capture, 'UTF8')), 1, 16),
       missed.started_at, missed.started_at, missed.capture, 'urn:uuid:' || missed.capture
FROM capture AS missed
WHERE missed.bucket = %(bucket)b::int2 AND missed.capture > %(after)b::uuid
ON CONFLICT DO NOTHING

-- name: forget_metadata
-- Attempts whose metadata the sink has need no row any more. One stands for all: how far the sink was told.
WITH done AS (
    DELETE FROM outbox USING unnest(%(document_key)b::bytea[], %(hold)b::int8[]) AS told (document_key, hold)
    WHERE outbox.bucket = %(bucket)b::int2 AND outbox.sink = %(sink)b::int4
      AND outbox.document_key = told.document_key AND outbox.due = told.hold
    RETURNING outbox.capture, outbox.started_at)
INSERT INTO outbox AS known (bucket, sink, document_key, due, started_at, capture, document)
SELECT %(bucket)b::int2, %(sink)b::int4, substr(sha256(convert_to('urn:tamias:metadata', 'UTF8')), 1, 16),
       9223372036854775807, done.started_at, done.capture, 'urn:tamias:metadata'
FROM done ORDER BY done.capture DESC LIMIT 1
ON CONFLICT (bucket, sink, document_key) DO UPDATE
SET capture = excluded.capture, started_at = excluded.started_at WHERE excluded.capture > known.capture

-- name: latest_told
-- The newest capture of a bucket that a sink was told of.
SELECT outbox.capture FROM outbox WHERE outbox.bucket = %(bucket)b::int2 AND outbox.sink = %(sink)b::int4
ORDER BY outbox.capture DESC LIMIT 1

-- name: claim
-- Documents to be delivered now, held until `hold`; nobody else is given them before that.
UPDATE outbox SET due = %(hold)b::int8, worker = %(worker)b::int8
FROM (SELECT waiting.document_key, waiting.due FROM outbox AS waiting
      WHERE waiting.bucket = %(bucket)b::int2 AND waiting.sink = %(sink)b::int4
        AND waiting.due <= %(now)b::int8 AND waiting.due < 9223372036854775807
      ORDER BY waiting.due LIMIT %(most)b::int4 FOR UPDATE SKIP LOCKED) AS next
WHERE outbox.bucket = %(bucket)b::int2 AND outbox.sink = %(sink)b::int4 AND outbox.document_key = next.document_key
RETURNING next.due, outbox.document_key, outbox.tries, {selected}

-- name: renew
-- A later end for what is still held.
UPDATE outbox SET due = %(until)b::int8
FROM unnest(%(document_key)b::bytea[], %(hold)b::int8[]) AS held (document_key, hold)
WHERE outbox.bucket = %(bucket)b::int2 AND outbox.sink = %(sink)b::int4
  AND outbox.document_key = held.document_key AND outbox.due = held.hold
RETURNING outbox.document_key

-- name: settle
-- What became of documents that are still held. One with a newer capture by now is due at once.
UPDATE outbox SET due = CASE WHEN outbox.capture = told.capture THEN told.due ELSE %(now)b::int8 END,
                  tries = CASE WHEN outbox.capture = told.capture THEN told.tries ELSE 0 END,
                  problem = CASE WHEN outbox.capture = told.capture THEN told.problem END,
                  worker = NULL
FROM unnest(%(document_key)b::bytea[], %(capture)b::uuid[], %(hold)b::int8[], %(due)b::int8[], %(tries)b::int2[],
            %(problem)b::text[]) AS told (document_key, capture, hold, due, tries, problem)
WHERE outbox.bucket = %(bucket)b::int2 AND outbox.sink = %(sink)b::int4
  AND outbox.document_key = told.document_key AND outbox.due = told.hold

-- name: give_back
-- What workers held that are known to be dead.
UPDATE outbox SET due = %(now)b::int8, worker = NULL
WHERE outbox.bucket = %(bucket)b::int2 AND outbox.worker = ANY(%(workers)b::int8[])
  AND outbox.due < 9223372036854775807

-- name: waiting
-- How many documents a sink still waits for, and when the next is due.
SELECT count(*), min(outbox.due) FROM outbox
WHERE outbox.bucket = %(bucket)b::int2 AND outbox.sink = %(sink)b::int4 AND outbox.due < 9223372036854775807

-- name: refused
-- What a sink does not take, and why.
SELECT outbox.document, outbox.problem FROM outbox
WHERE outbox.bucket = %(bucket)b::int2 AND outbox.sink = %(sink)b::int4 AND outbox.problem IS NOT NULL
ORDER BY outbox.document LIMIT %(most)b::int4

-- name: vacate
-- A document is about to leave the graphs that are not named; told are all it has still to be taken from.
UPDATE placed SET length = 0
WHERE placed.sink = %(sink)b::int4 AND placed.document_key = %(document_key)b::bytea
  AND placed.graph_key <> ALL(%(graph_key)b::bytea[])
RETURNING placed.graph

-- name: place
-- A document is about to be put into these graphs.
INSERT INTO placed AS known (sink, graph_key, document_key, capture, segment, frame, start, length, graph)
SELECT %(sink)b::int4, new.graph_key, %(document_key)b::bytea, %(capture)b::uuid, %(segment)b::int8,
       %(frame)b::int8, %(start)b::int8, %(length)b::int8, new.graph
FROM unnest(%(graph_key)b::bytea[], %(graph)b::text[]) AS new (graph_key, graph)
ON CONFLICT (sink, graph_key, document_key) DO UPDATE
SET capture = excluded.capture, segment = excluded.segment, frame = excluded.frame, start = excluded.start,
    length = excluded.length

-- name: others
-- What other documents have put into these graphs.
SELECT placed.graph, placed.capture, placed.segment, placed.frame, placed.start, placed.length FROM placed
WHERE placed.sink = %(sink)b::int4 AND placed.length > 0
  AND placed.graph_key = ANY(%(graph_key)b::bytea[]) AND placed.document_key <> %(document_key)b::bytea
ORDER BY placed.graph_key, placed.document_key

-- name: forget_vacated
-- The graphs that a document left have been written without it.
DELETE FROM placed
WHERE placed.sink = %(sink)b::int4 AND placed.document_key = %(document_key)b::bytea AND placed.length = 0
