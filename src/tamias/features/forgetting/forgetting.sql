-- What is removed with tombstones.

-- name: finish
-- Nothing of these is left.
UPDATE forgotten SET finished_at = %(now)b::int8, remains = NULL WHERE forgotten.forgotten = ANY(%(forgotten)b::int8[])

-- name: note_remains
-- Something is left.
UPDATE forgotten SET remains = %(remains)b::text WHERE forgotten.forgotten = ANY(%(forgotten)b::int8[])

-- name: bodies
-- The bodies that tombstones cover.
SELECT body.forgotten, encode(body.sha256, 'hex'), body.byte_size, body.marks, body.shared_by
FROM forgotten_body AS body WHERE body.forgotten = ANY(%(forgotten)b::int8[]) ORDER BY body.forgotten, body.sha256

-- name: all_marks
-- Every body that is forgotten for good, with its marks; not one that has come again since, as it may.
SELECT body.forgotten, encode(body.sha256, 'hex'), CASE WHEN forgotten.lifted_at IS NULL THEN body.marks ELSE '' END
FROM forgotten_body AS body JOIN forgotten ON forgotten.forgotten = body.forgotten
WHERE body.shared_by IS NULL
  AND NOT EXISTS (SELECT FROM version WHERE version.sha256 = body.sha256)
  AND NOT EXISTS (SELECT FROM suspect WHERE suspect.sha256 = body.sha256)
ORDER BY body.forgotten, body.sha256

-- name: held_bodies
-- All bodies that are not forgotten.
SELECT encode(version.sha256, 'hex') FROM version UNION SELECT encode(suspect.sha256, 'hex') FROM suspect

-- name: all_tables
-- Every table, as it is named in a statement; one in parts is named once.
SELECT pg_class.oid::regclass::text FROM pg_class
WHERE relnamespace = 'tamias'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname

-- name: covered_versions
-- The versions and suspicious bodies that a tombstone covers and that are still there: number, digest, size.
SELECT version.number, encode(version.sha256, 'hex'), version.byte_size, version.capture
FROM version JOIN forgotten ON forgotten.resource = version.resource
WHERE forgotten.forgotten = %(forgotten)b::int8
  AND (forgotten.number = version.number
       OR forgotten.number IS NULL AND (forgotten.blocked OR version.captured_at <= forgotten.at))
UNION ALL
SELECT NULL, encode(suspect.sha256, 'hex'), suspect.byte_size, suspect.capture
FROM suspect JOIN forgotten ON forgotten.resource = suspect.resource
WHERE forgotten.forgotten = %(forgotten)b::int8
  AND (forgotten.number IS NULL AND (forgotten.blocked OR suspect.seen_at <= forgotten.at)
       OR suspect.sha256 = (SELECT version.sha256 FROM version WHERE version.resource = forgotten.resource
                                                                 AND version.number = forgotten.number))

-- name: put_bodies
-- Notes bodies before anything of them is taken away.
INSERT INTO forgotten_body (forgotten, sha256, byte_size, marks)
SELECT %(forgotten)b::int8, new.sha256, new.byte_size, new.marks
FROM unnest(%(sha256)b::bytea[], %(byte_size)b::int8[], %(marks)b::bytea[]) AS new (sha256, byte_size, marks)
ON CONFLICT (forgotten, sha256) DO UPDATE
SET marks = CASE WHEN forgotten_body.marks = '' THEN excluded.marks ELSE forgotten_body.marks END

-- name: other_bodies
-- Bodies of a resource that stay, those nearest to a number first.
SELECT encode(version.sha256, 'hex') FROM version
WHERE version.resource = %(resource)b::text AND version.sha256 <> ALL(%(sha256)b::bytea[])
ORDER BY abs(version.number - %(number)b::int4) LIMIT %(limit)b::int4

-- name: queues_of
-- The queues that captures of a URL may be in: of its versions, of its documents, and by its host.
SELECT DISTINCT capture.qid FROM capture
WHERE capture.bucket = %(bucket)b::int2 AND capture.capture = ANY(%(capture)b::uuid[])
UNION
SELECT known.qid FROM current_document AS known
WHERE known.bucket = %(bucket)b::int2 AND known.document_key = ANY(%(document_key)b::bytea[])
UNION
SELECT host.qid FROM host WHERE host.bucket = %(bucket)b::int2 AND host.hkey = ANY(%(host)b::text[])

-- name: captures_of
-- Captures of a URL up to a time that have something of what came: all, or those of some bodies.
SELECT capture.capture, capture.segment, capture.frame, capture.start, capture.length, capture.qid
FROM capture
WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = ANY(%(qid)b::int8[])
  AND (capture.url = ANY(%(url)b::text[]) OR capture.final_url = ANY(%(url)b::text[]))
  AND (%(sha256)b::bytea[] IS NULL OR capture.sha256 = ANY(%(sha256)b::bytea[])
       OR capture.capture = ANY(%(capture)b::uuid[]))
  AND (%(sha256)b::bytea[] IS NOT NULL OR %(blocked)b::bool OR capture.started_at <= %(at)b::int8)
  AND (capture.segment IS NOT NULL OR capture.sha256 IS NOT NULL OR capture.problems IS NOT NULL
       OR capture.renamed_graphs IS NOT NULL OR capture.hops IS NOT NULL)

-- name: other_extents
-- Where the quads of a document stand that stay: those of its latest captures.
SELECT capture.segment, capture.frame, capture.start, capture.length FROM capture
WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = ANY(%(qid)b::int8[])
  AND (capture.url = ANY(%(url)b::text[]) OR capture.final_url = ANY(%(url)b::text[]))
  AND capture.segment IS NOT NULL AND capture.capture <> ALL(%(capture)b::uuid[])
ORDER BY capture.capture DESC LIMIT %(limit)b::int4

-- name: put_quads
-- Notes where quads stand before the captures that name them are cleaned.
INSERT INTO forgotten_quads (forgotten, segment, frame, start, length)
SELECT %(forgotten)b::int8, new.segment, new.frame, new.start, new.length
FROM unnest(%(segment)b::int8[], %(frame)b::int8[], %(start)b::int8[],
            %(length)b::int8[]) AS new (segment, frame, start, length)
ON CONFLICT DO NOTHING

-- name: clean_captures
-- Nothing of what came stays with the captures.
UPDATE capture SET segment = NULL, frame = NULL, start = NULL, length = NULL, sha256 = NULL, problems = NULL,
                   renamed_graphs = NULL, hops = NULL
WHERE capture.bucket = %(bucket)b::int2 AND capture.capture = ANY(%(capture)b::uuid[])

-- name: end_documents
-- Documents whose current content came with these captures hold none any more.
UPDATE current_document SET segment = NULL
WHERE current_document.bucket = %(bucket)b::int2 AND current_document.capture = ANY(%(capture)b::uuid[])

-- name: end_deliveries
-- Sinks are told to take away what they have of these captures.
UPDATE outbox SET due = least(outbox.due, %(now)b::int8), tries = 0, problem = NULL, segment = NULL
WHERE outbox.bucket = %(bucket)b::int2 AND outbox.capture = ANY(%(capture)b::uuid[])
  AND left(outbox.document, 4) <> 'urn:'  -- what is known of the attempt itself stays

-- name: delete_links
-- Links of pages with the words around them.
DELETE FROM link WHERE link.bucket = %(bucket)b::int2 AND link.from_url = ANY(%(url)b::text[])

-- name: delete_warc_records
-- Where responses of a URL stand in WARC files: all up to a time, or those with some bodies.
DELETE FROM warc_record
WHERE warc_record.url = ANY(%(url)b::text[])
  AND (warc_record.sha256 = ANY(%(sha256)b::bytea[])
       OR %(sha256)b::bytea[] IS NULL AND (%(blocked)b::bool OR warc_record.captured_at <= %(at)b::int8))

-- name: delete_contexts
-- Copies of what a URL gave, for documents that refer to it.
DELETE FROM context WHERE context.url = ANY(%(url)b::text[])

-- name: delete_version
-- A version and what is known of it. The resource tells of the last that is left, and counts on.
WITH taken AS (
    DELETE FROM version USING forgotten
    WHERE forgotten.forgotten = %(forgotten)b::int8 AND version.resource = forgotten.resource
      AND version.number = forgotten.number
    RETURNING version.resource, version.number, version.sha256),
suspicious AS (
    DELETE FROM suspect USING taken WHERE suspect.resource = taken.resource AND suspect.sha256 = taken.sha256),
joined AS (
    DELETE FROM join_candidate USING taken
    WHERE (join_candidate.resource = taken.resource AND join_candidate.version = taken.number)
       OR (join_candidate.within_resource = taken.resource AND join_candidate.within_version = taken.number))
SELECT taken.resource FROM taken

-- name: tell_of_last
-- A resource tells of its last version that is left.
UPDATE resource
SET sha256 = last.sha256, fingerprint = last.fingerprint, media_type = last.media_type,
    captured_at = last.captured_at, suspicious = last.suspicious, items = NULL
FROM (SELECT named.resource, version.sha256, version.fingerprint, version.media_type, version.captured_at,
             version.suspicious
      FROM unnest(%(resource)b::text[]) AS named (resource)
      LEFT JOIN LATERAL (SELECT version.* FROM version WHERE version.resource = named.resource
                         ORDER BY version.number DESC LIMIT 1) AS version ON true) AS last
WHERE resource.resource = last.resource AND resource.sha256 IS DISTINCT FROM last.sha256

-- name: note_words
-- The words by which resources are found, as they are now.
SELECT note_words(%(resource)b::text[])

-- name: delete_resource
-- A resource with all that is known of it, unless a version of it came after it was forgotten.
WITH gone AS (
    DELETE FROM resource USING forgotten
    WHERE forgotten.forgotten = %(forgotten)b::int8 AND resource.resource = forgotten.resource
      AND forgotten.number IS NULL
      AND (forgotten.blocked
           OR resource.added_at <= forgotten.at
              AND NOT EXISTS (SELECT FROM version WHERE version.resource = resource.resource
                                                    AND version.captured_at > forgotten.at))
    RETURNING resource.resource),
measured AS (DELETE FROM measure USING gone WHERE measure.subject = gone.resource)
SELECT gone.resource FROM gone

-- name: delete_records
-- Records of catalogues by their names, with what was read from them. Their digests stay.
WITH gone AS (
    DELETE FROM source_record USING forgotten
    WHERE forgotten.forgotten = %(forgotten)b::int8 AND source_record.resource = forgotten.resource
      AND (forgotten.number IS NULL OR forgotten.number = source_record.number)
    RETURNING source_record.portal, source_record.record, source_record.captured_at, forgotten.number,
              forgotten.forgotten, source_record.sha256, source_record.byte_size),
reworded AS (
    DELETE FROM earlier_description AS earlier USING gone
    WHERE gone.number IS NOT NULL AND earlier.portal = gone.portal AND earlier.record = gone.record
      AND earlier.told_at = gone.captured_at),
noted AS (
    INSERT INTO forgotten_body (forgotten, sha256, byte_size)
    SELECT DISTINCT gone.forgotten, gone.sha256, gone.byte_size FROM gone ON CONFLICT DO NOTHING)
DELETE FROM described USING gone
WHERE gone.number IS NULL AND described.portal = gone.portal AND described.record = gone.record

-- name: mark_shared
-- Which of some bodies somebody else has; it is noted who.
UPDATE forgotten_body AS body
SET shared_by = (SELECT resource.url FROM resource JOIN (
                     SELECT version.resource FROM version WHERE version.sha256 = body.sha256
                     UNION SELECT suspect.resource FROM suspect WHERE suspect.sha256 = body.sha256) AS other
                 ON other.resource = resource.resource ORDER BY resource.url LIMIT 1)
WHERE body.forgotten = %(forgotten)b::int8
RETURNING encode(body.sha256, 'hex'), body.shared_by

-- name: delete_profiles
-- What was found in bodies that nobody has any more.
WITH waiting AS (DELETE FROM profile_due WHERE profile_due.sha256 = ANY(%(sha256)b::bytea[]))
DELETE FROM profile WHERE profile.sha256 = ANY(%(sha256)b::bytea[])

-- name: is_referenced
-- Whether somebody has a body.
SELECT EXISTS (SELECT FROM version WHERE version.sha256 = %(sha256)b::bytea)
    OR EXISTS (SELECT FROM suspect WHERE suspect.sha256 = %(sha256)b::bytea)

-- name: quads_left
-- Where quads stand that are to be erased.
SELECT quads.segment, quads.frame, quads.start, quads.length FROM forgotten_quads AS quads WHERE NOT quads.erased
ORDER BY quads.segment, quads.frame, quads.start

-- name: quads_erased
-- These are erased.
UPDATE forgotten_quads SET erased = true WHERE forgotten_quads.segment = %(segment)b::int8 AND NOT erased

-- name: leased
-- Whether somebody is at work at hosts: what was fetched before may still be committed.
SELECT EXISTS (SELECT FROM host WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(qid)b::int8[])
                                  AND host.token IS NOT NULL AND host.lease_end > %(now)b::int8)

-- name: crawls_of
-- The crawls that there are.
SELECT crawl.crawl FROM crawl ORDER BY crawl.crawl

-- name: portals_of_record
-- The URLs of the catalogues that a record is of.
SELECT DISTINCT portal.url FROM source_record JOIN portal ON portal.portal = source_record.portal
WHERE source_record.resource = %(resource)b::text

-- name: versions_for_rules
-- The versions of resources after a given one, oldest first, with what a rule may be about: host and portals; and
-- whether a snapshot names each.
SELECT page.resource, page.url, page.host,
       coalesce((SELECT array_agg(DISTINCT source.portal) FROM source
                 WHERE source.resource = page.resource AND source.portal IS NOT NULL), '{}'),
       kept.number, kept.captured_at, kept.byte_size, kept.is_frozen
FROM (SELECT resource.resource, resource.url, resource.host FROM resource
      WHERE resource.resource > %(after)b::text ORDER BY resource.resource LIMIT %(limit)b::int4) AS page
     CROSS JOIN LATERAL (
         SELECT coalesce(array_agg(version.number ORDER BY version.number), '{}') AS number,
                array_agg(version.captured_at ORDER BY version.number) AS captured_at,
                array_agg(version.byte_size ORDER BY version.number) AS byte_size,
                array_agg(EXISTS (SELECT FROM snapshot_capture WHERE snapshot_capture.capture = version.capture)
                          ORDER BY version.number) AS is_frozen
         FROM version WHERE version.resource = page.resource) AS kept
ORDER BY page.resource

-- name: captures_for_rules
-- The captures in WARC files of URLs after a given one, oldest first, with what a rule may be about; whether each has to
-- stay: a snapshot names it, or another URL's record says that its body is the same.
SELECT page.url,
       coalesce((SELECT array_agg(DISTINCT source.portal) FROM resource JOIN source ON source.resource = resource.resource
                 WHERE resource.url = page.url AND source.portal IS NOT NULL), '{}'),
       kept.captured_at, kept.sha256, kept.length, kept.stays
FROM (SELECT DISTINCT warc_record.url FROM warc_record WHERE warc_record.url > %(after)b::text
      ORDER BY warc_record.url LIMIT %(limit)b::int4) AS page
     CROSS JOIN LATERAL (
         SELECT array_agg(record.captured_at ORDER BY record.captured_at, record.file, record.position) AS captured_at,
                array_agg(encode(record.sha256, 'hex') ORDER BY record.captured_at, record.file, record.position) AS sha256,
                array_agg(record.length ORDER BY record.captured_at, record.file, record.position) AS length,
                array_agg(EXISTS (SELECT FROM snapshot_capture WHERE snapshot_capture.capture = record.capture)
                          OR EXISTS (SELECT FROM warc_record AS other
                                     WHERE other.sha256 = record.sha256 AND other.revisit AND other.url <> record.url)
                          ORDER BY record.captured_at, record.file, record.position) AS stays
         FROM warc_record AS record WHERE record.url = page.url AND record.sha256 IS NOT NULL) AS kept
ORDER BY page.url

-- name: drop_captures
-- Captures of a URL with these bodies are not kept: they are out of the index, and their records are to be erased. Not
-- those whose bodies are those of versions that stay.
WITH gone AS (
    DELETE FROM warc_record
    WHERE warc_record.url = %(url)b::text AND warc_record.sha256 = ANY(%(sha256)b::bytea[])
      AND NOT EXISTS (SELECT FROM resource JOIN version ON version.resource = resource.resource
                      WHERE resource.url = warc_record.url AND version.sha256 = warc_record.sha256
                        AND NOT EXISTS (SELECT FROM forgotten WHERE forgotten.resource = version.resource
                                                                AND forgotten.number = version.number))
    RETURNING warc_record.url, warc_record.captured_at, warc_record.sha256)
INSERT INTO erasing_capture (url, captured_at, sha256)
SELECT DISTINCT gone.url, gone.captured_at, gone.sha256 FROM gone ON CONFLICT DO NOTHING

-- name: dropped_bodies
-- The bodies of a URL that rules do not keep and that WARC files still have.
SELECT DISTINCT encode(body.sha256, 'hex')
FROM forgotten JOIN forgotten_body AS body ON body.forgotten = forgotten.forgotten
     JOIN warc_record AS record ON record.url = forgotten.url AND record.sha256 = body.sha256
WHERE forgotten.by_rule AND forgotten.url = %(url)b::text

-- name: captures_left
-- Captures whose records are to be erased.
SELECT erasing_capture.url, erasing_capture.captured_at, encode(erasing_capture.sha256, 'hex') FROM erasing_capture

-- name: captures_erased
-- The records of these are erased.
DELETE FROM erasing_capture USING unnest(%(url)b::text[], %(captured_at)b::int8[], %(sha256)b::bytea[])
    AS done (url, captured_at, sha256)
WHERE erasing_capture.url = done.url AND erasing_capture.captured_at = done.captured_at
  AND erasing_capture.sha256 = done.sha256
