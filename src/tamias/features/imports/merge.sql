-- Versions that come late: captures of other crawlers take their places in the history of a resource.

-- name: lock_resources
-- Resources whose history is about to change: whoever captures one of them meanwhile waits.
SELECT resource.resource, resource.host, resource.expected, resource.sha256 IS NOT NULL, encode(resource.sha256, 'hex')
FROM resource WHERE resource.resource = ANY(%(resource)b::text[]) ORDER BY resource.resource FOR UPDATE

-- name: sightings
-- When a URL was seen by us, and what was there, after a time: a body, or that nothing had changed.
SELECT capture.started_at, encode(capture.sha256, 'hex'), capture.capture::text FROM capture
WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = %(qid)b::int8 AND capture.crawl = ANY(%(crawl)b::int4[])
  AND capture.uid = %(uid)b::int8 AND capture.started_at > %(after)b::int8
  AND (capture.outcome = 2 OR capture.outcome = 1 AND capture.sha256 IS NOT NULL)
ORDER BY capture.started_at LIMIT %(limit)b::int4

-- name: imported_times
-- When a URL was captured by other crawlers, as far as that was imported.
SELECT DISTINCT capture.started_at FROM capture
WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = %(qid)b::int8 AND capture.uid = %(uid)b::int8
  AND capture.worker = %(worker)b::text

-- name: put_aside
-- Versions get other numbers, which others may still have: negative ones first.
UPDATE version SET number = -new.number
FROM unnest(%(resource)b::text[], %(before)b::int4[], %(number)b::int4[]) AS new (resource, before, number)
WHERE version.resource = new.resource AND version.number = new.before

-- name: take_places
-- And then their own.
UPDATE version SET number = -version.number
WHERE version.resource = ANY(%(resource)b::text[]) AND version.number < 0

-- name: renumber_events
-- What was told of versions is about those that have other numbers now.
UPDATE event SET number = new.number
FROM unnest(%(resource)b::text[], %(before)b::int4[], %(number)b::int4[]) AS new (resource, before, number)
WHERE event.resource = new.resource AND event.kind = 'version' AND event.number = new.before

-- name: renumber_news
-- The same for what is still to be told.
UPDATE event_news SET number = new.number
FROM unnest(%(resource)b::text[], %(before)b::int4[], %(number)b::int4[]) AS new (resource, before, number)
WHERE event_news.resource = new.resource AND event_news.kind = 'version' AND event_news.number = new.before

-- name: tell_catalogue
-- Versions that are described anew in the catalogue.
INSERT INTO catalogue_news (kind, name)
SELECT noted.kind, noted.name
FROM (SELECT DISTINCT 'resource' AS kind, new.resource AS name FROM unnest(%(resource)b::text[]) AS new (resource)
      UNION ALL
      SELECT 'version', new.resource || '_' || new.number
      FROM unnest(%(resource)b::text[], %(number)b::int4[]) AS new (resource, number)) AS noted
WHERE EXISTS (SELECT FROM catalogue)

-- name: correct_versions
-- Versions that were seen earlier than was known, or follow another one now.
UPDATE version SET captured_at = new.captured_at, capture = new.capture, noise = new.noise
FROM unnest(%(resource)b::text[], %(number)b::int4[], %(captured_at)b::int8[], %(capture)b::uuid[],
            %(noise)b::text[]) AS new (resource, number, captured_at, capture, noise)
WHERE version.resource = new.resource AND version.number = new.number

-- name: count_bodies
-- One more resource of its host that has each body, unless it had it before.
INSERT INTO shared_body (host, sha256, resources)
SELECT new.host, new.sha256, count(DISTINCT new.resource)
FROM unnest(%(host)b::text[], %(resource)b::text[], %(sha256)b::bytea[]) AS new (host, resource, sha256)
WHERE NOT EXISTS (SELECT FROM version WHERE version.resource = new.resource AND version.sha256 = new.sha256)
  AND NOT EXISTS (SELECT FROM suspect WHERE suspect.resource = new.resource AND suspect.sha256 = new.sha256)
GROUP BY new.host, new.sha256 ORDER BY new.host, new.sha256
ON CONFLICT (host, sha256) DO UPDATE SET resources = shared_body.resources + excluded.resources

-- name: insert_versions
-- Versions at their places.
INSERT INTO version (resource, number, captured_at, sha256, byte_size, media_type, told_type, fingerprint, noise,
                     suspicious, capture)
SELECT new.* FROM unnest(%(resource)b::text[], %(number)b::int4[], %(captured_at)b::int8[], %(sha256)b::bytea[],
                         %(byte_size)b::int8[], %(media_type)b::text[], %(told_type)b::text[],
                         %(fingerprint)b::bytea[], %(noise)b::text[], %(suspicious)b::text[], %(capture)b::uuid[])
                  AS new (resource, number, captured_at, sha256, byte_size, media_type, told_type, fingerprint,
                          noise, suspicious, capture)

-- name: set_current
-- Resources as they are with their newest versions.
UPDATE resource
SET versions = new.number, sha256 = new.sha256, fingerprint = new.fingerprint, media_type = new.media_type,
    captured_at = new.captured_at, items = CASE WHEN resource.sha256 = new.sha256 THEN resource.items ELSE new.items END,
    suspicious = new.suspicious
FROM unnest(%(resource)b::text[], %(number)b::int4[], %(captured_at)b::int8[], %(sha256)b::bytea[],
            %(media_type)b::text[], %(fingerprint)b::bytea[], %(suspicious)b::text[], %(items)b::int8[])
     AS new (resource, number, captured_at, sha256, media_type, fingerprint, suspicious, items)
WHERE resource.resource = new.resource

-- name: known_records
-- Which of some records are here, or were.
SELECT record.digest FROM imported_record AS record WHERE record.digest = ANY(%(digest)b::bytea[])

-- name: insert_records
-- Records that are here now.
INSERT INTO imported_record (digest) SELECT unnest(%(digest)b::bytea[]) ON CONFLICT DO NOTHING
