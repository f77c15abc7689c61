-- Whether versions, blobs and resources agree.

-- name: lost
-- Versions and suspects whose body is not there, or is of another size.
SELECT kept.resource || '_' || kept.number, resource.url, encode(kept.sha256, 'hex'), blob.sha256 IS NULL
FROM (SELECT version.resource, version.number::text, version.sha256, version.byte_size FROM version
      UNION ALL
      SELECT suspect.resource, 'suspect', suspect.sha256, suspect.byte_size FROM suspect) AS kept
     JOIN resource ON resource.resource = kept.resource
     LEFT JOIN blob ON blob.sha256 = kept.sha256
WHERE blob.sha256 IS NULL OR blob.size <> kept.byte_size
ORDER BY kept.resource, kept.number

-- name: disagreeing
-- Resources that do not tell of their last version, or whose versions, with those that are forgotten, are not
-- numbered 1, 2, 3.
SELECT resource.resource, resource.url
FROM resource
     LEFT JOIN (SELECT version.resource, count(*) AS versions, max(version.number) AS last FROM version
                GROUP BY version.resource) AS counted ON counted.resource = resource.resource
     LEFT JOIN version AS last ON last.resource = resource.resource AND last.number = counted.last
     CROSS JOIN LATERAL (
         SELECT coalesce(max(greatest(forgotten.number, forgotten.last_number)), 0) AS last,
                coalesce(max(forgotten.last_number) FILTER (WHERE forgotten.number IS NULL), 0) AS before
         FROM forgotten WHERE forgotten.resource = resource.resource) AS gone
     CROSS JOIN LATERAL (
         SELECT count(DISTINCT forgotten.number) AS versions FROM forgotten
         WHERE forgotten.resource = resource.resource AND forgotten.number > gone.before
           AND NOT EXISTS (SELECT FROM version WHERE version.resource = forgotten.resource
                                                 AND version.number = forgotten.number)) AS single
WHERE resource.versions <> greatest(coalesce(counted.last, 0), gone.last)
   OR coalesce(counted.versions, 0) + single.versions + gone.before <> resource.versions
   OR resource.sha256 IS DISTINCT FROM last.sha256
ORDER BY resource.resource

-- name: agree
-- Makes resources tell of their last version.
UPDATE resource
SET versions = greatest(last.number, (SELECT max(greatest(forgotten.number, forgotten.last_number)) FROM forgotten
                                      WHERE forgotten.resource = resource.resource)), sha256 = last.sha256, fingerprint = last.fingerprint, media_type = last.media_type,
    captured_at = last.captured_at
FROM version AS last
WHERE resource.resource = ANY(%(resource)b::text[]) AND last.resource = resource.resource
  AND last.number = (SELECT max(version.number) FROM version WHERE version.resource = resource.resource)

-- name: holders
-- Versions that have one of these bodies, so many at most.
SELECT version.resource || '_' || version.number, resource.url
FROM version JOIN resource ON resource.resource = version.resource
WHERE version.sha256 = ANY(%(sha256)b::bytea[])
ORDER BY version.resource, version.number LIMIT %(most)b::int4

-- name: referenced
-- Every body that a version or a suspect needs.
SELECT encode(version.sha256, 'hex') FROM version UNION SELECT encode(suspect.sha256, 'hex') FROM suspect

-- name: lost_documents
-- The documents whose quads stand at these places now, and the URLs by which they came.
SELECT known.document, capture.bucket, capture.qid, capture.crawl, capture.uid
FROM unnest(%(segment)b::int8[], %(frame)b::int8[], %(start)b::int8[]) AS lost (segment, frame, start)
     JOIN current_document AS known
     ON known.segment = lost.segment AND known.frame = lost.frame AND known.start = lost.start
     JOIN capture ON capture.bucket = known.bucket AND capture.capture = known.capture
ORDER BY known.document

-- name: lost_captures
-- The captures whose quads stand at these places: documents and times.
SELECT coalesce(capture.final_url, capture.url), to_timestamp(capture.started_at / 1000.0)
FROM unnest(%(segment)b::int8[], %(frame)b::int8[], %(start)b::int8[]) AS lost (segment, frame, start)
     JOIN capture ON capture.segment = lost.segment AND capture.frame = lost.frame AND capture.start = lost.start
ORDER BY 1, 2

-- name: committed
-- How long each segment is at least.
SELECT stored_file.segment, stored_file.committed FROM stored_file WHERE stored_file.kind = 'rdf'

-- name: segments
-- Every file of quads with the extents of its documents, as of one moment, in the order of the files: where they stand in
-- it, and what captures say.
SELECT stored_file.segment, stored_file.name, stored_file.committed,
       CASE WHEN merged_frame.frame IS NULL THEN place.frame ELSE 0 END,
       place.start + coalesce(merged_frame.start, 0), place.length, place.segment, place.frame, place.start
FROM stored_file
     LEFT JOIN ((SELECT capture.segment, capture.frame, capture.start, capture.length FROM capture
                 WHERE capture.segment IS NOT NULL
                 UNION
                 SELECT known.segment, known.frame, known.start, known.length FROM current_document AS known) AS place
                LEFT JOIN merged_frame ON merged_frame.segment = place.segment AND merged_frame.frame = place.frame
                                      AND merged_frame.into_segment <> place.segment)
     ON coalesce(merged_frame.into_segment, place.segment) = stored_file.segment
WHERE stored_file.kind = 'rdf'
  AND NOT EXISTS (SELECT FROM merged_frame AS moved
                  WHERE moved.segment = stored_file.segment AND moved.into_segment <> moved.segment)
ORDER BY stored_file.segment, 4, 5

-- name: cold
-- Resources whose last version came before a time, from a place in their order on.
SELECT resource.captured_at, resource.resource, resource.host FROM resource
WHERE resource.captured_at < %(before)b::int8
  AND (resource.captured_at, resource.resource) > (%(captured_at)b::int8, %(resource)b::text)
ORDER BY resource.captured_at, resource.resource LIMIT %(limit)b::int4

-- name: bodies
-- The bodies of resources, newest first. One that several resources have belongs to the first of them.
SELECT version.resource, encode(version.sha256, 'hex') FROM version
WHERE version.resource = ANY(%(resource)b::text[])
  AND NOT EXISTS (SELECT FROM version AS other
                  WHERE other.sha256 = version.sha256 AND other.resource < version.resource)
ORDER BY version.resource, version.number DESC
