-- Resources under watch, their sources and versions. `{version}` stands for the columns of a version, `{licence}` for
-- the query of what a source says.

-- name: put_resources
-- Makes resources known; one that was forgotten counts its versions on. A known one takes a title or a promise that it lacked, and what the user says of visits.
INSERT INTO resource (resource, url, host, title, expected, added_at, every, priority, importance, versions)
SELECT new.resource, new.url, new.host, new.title, new.expected, %(now)b::int8, new.every, new.priority,
       coalesce(new.priority, 1),
       coalesce((SELECT max(greatest(forgotten.number, forgotten.last_number)) FROM forgotten
                 WHERE forgotten.resource = new.resource), 0)
FROM unnest(%(resource)b::text[], %(url)b::text[], %(host)b::text[], %(title)b::text[], %(expected)b::text[],
            %(every)b::int8[], %(priority)b::float8[])
     AS new (resource, url, host, title, expected, every, priority)
ORDER BY new.resource
ON CONFLICT (resource) DO UPDATE
SET title = coalesce(resource.title, excluded.title),
    expected = CASE WHEN resource.versions = 0 THEN coalesce(excluded.expected, resource.expected)
                    ELSE resource.expected END,
    every = coalesce(excluded.every, resource.every),
    priority = coalesce(excluded.priority, resource.priority),
    importance = CASE WHEN excluded.priority IS NULL THEN resource.importance ELSE excluded.importance END
RETURNING resource, xmax = 0 AS inserted

-- name: go_on
-- Resources that were stopped, and that the user names again, are active. A statement of its own: a parameter where
-- an insert meets a known row is lost on a Citus cluster.
UPDATE resource SET state = 'active' WHERE resource.resource = ANY(%(resource)b::text[]) AND resource.state = 'stopped'

-- name: put_sources
-- Who names them.
INSERT INTO source (resource, source, portal, title, format, first_seen, last_seen)
SELECT new.resource, new.source, new.portal, new.title, new.format, %(now)b::int8, %(now)b::int8
FROM unnest(%(resource)b::text[], %(source)b::text[], %(portal)b::text[], %(title)b::text[], %(format)b::text[])
     AS new (resource, source, portal, title, format)
ORDER BY new.resource, new.source
ON CONFLICT (resource, source) DO UPDATE
SET portal = coalesce(excluded.portal, source.portal), title = coalesce(excluded.title, source.title),
    format = coalesce(excluded.format, source.format), last_seen = excluded.last_seen

-- name: read_watched
-- What must be known of resources to judge what came.
SELECT resource.resource, resource.url, resource.host, resource.state, resource.importance, resource.versions,
       encode(resource.sha256, 'hex'), encode(resource.fingerprint, 'hex'), resource.media_type, resource.expected,
       resource.items, resource.suspicious, resource.suspicious_since, resource.history, resource.visited_at,
       resource.fails, resource.hint_at, resource.frequency, resource.every, resource.wanted_at
FROM resource WHERE resource.resource = ANY(%(resource)b::text[])

-- name: read_declared_type
-- The type that the server declared for the current version.
SELECT version.told_type FROM version WHERE version.resource = %(resource)b::text
ORDER BY version.number DESC LIMIT 1

-- name: count_shared
-- How many resources of a host have a body as their current or suspected one, for pairs of host and body.
SELECT shared_body.host, shared_body.sha256, shared_body.resources
FROM unnest(%(host)b::text[], %(sha256)b::bytea[]) AS asked (host, sha256)
JOIN shared_body ON shared_body.host = asked.host AND shared_body.sha256 = asked.sha256

-- name: add_versions
-- A version more of each resource, which is none that has it already; the resource as it is with it; one more
-- resource of its host that has the body, unless it had it before; and the profile of the body, where it is known.
WITH new AS (
    SELECT * FROM unnest(%(resource)b::text[], %(captured_at)b::int8[], %(sha256)b::bytea[], %(byte_size)b::int8[],
                         %(media_type)b::text[], %(told_type)b::text[], %(fingerprint)b::bytea[], %(noise)b::text[],
                         %(suspicious)b::text[], %(items)b::int8[], %(capture)b::uuid[], %(packed)b::bytea[],
                         %(tables)b::text[])
         AS new (resource, captured_at, sha256, byte_size, media_type, told_type, fingerprint, noise, suspicious,
                 items, capture, packed, tables)),
added AS (
    INSERT INTO version (resource, number, captured_at, sha256, byte_size, media_type, told_type, fingerprint, noise,
                         suspicious, capture)
    SELECT resource.resource, resource.versions + 1, new.captured_at, new.sha256, new.byte_size, new.media_type,
           new.told_type, new.fingerprint, new.noise, new.suspicious, new.capture
    FROM new JOIN resource ON resource.resource = new.resource
    WHERE resource.sha256 IS DISTINCT FROM new.sha256
      AND NOT EXISTS (SELECT FROM version WHERE version.resource = new.resource AND version.capture = new.capture)
    ORDER BY resource.resource
    RETURNING resource, number, captured_at, sha256, media_type, fingerprint, suspicious),
shared AS (
    INSERT INTO shared_body (host, sha256, resources)
    SELECT resource.host, added.sha256, count(*)
    FROM added JOIN resource ON resource.resource = added.resource
    WHERE NOT EXISTS (SELECT FROM version
                      WHERE version.resource = added.resource AND version.sha256 = added.sha256)
      AND NOT EXISTS (SELECT FROM suspect
                      WHERE suspect.resource = added.resource AND suspect.sha256 = added.sha256)
    GROUP BY resource.host, added.sha256 ORDER BY resource.host, added.sha256
    ON CONFLICT (host, sha256) DO UPDATE SET resources = shared_body.resources + excluded.resources),
profiled AS (
    INSERT INTO profile (sha256, kind, made_at, profile, packed)
    SELECT each.sha256, told.kind, (extract(epoch FROM clock_timestamp()) * 1000)::int8, told.profile, told.packed
    FROM (SELECT DISTINCT ON (new.sha256) new.sha256, new.packed, new.tables::jsonb AS tables
          FROM new JOIN added ON added.resource = new.resource
          WHERE new.packed IS NOT NULL ORDER BY new.sha256) AS each
         CROSS JOIN LATERAL (VALUES ('content', NULL, each.packed), ('table', each.tables, NULL))
                            AS told (kind, profile, packed)
    ORDER BY each.sha256, told.kind
    ON CONFLICT DO NOTHING)
UPDATE resource
SET versions = added.number, sha256 = added.sha256, fingerprint = added.fingerprint, media_type = added.media_type,
    captured_at = added.captured_at, items = new.items, suspicious = added.suspicious
FROM added JOIN new ON new.resource = added.resource WHERE resource.resource = added.resource

-- name: add_suspects
-- Bodies that are not believed, and one more resource of its host that has each, unless it had it before.
WITH added AS (
    INSERT INTO suspect (resource, seen_at, sha256, byte_size, media_type, reason, capture)
    SELECT new.* FROM unnest(%(resource)b::text[], %(captured_at)b::int8[], %(sha256)b::bytea[],
                             %(byte_size)b::int8[], %(media_type)b::text[], %(reason)b::text[], %(capture)b::uuid[])
                      AS new (resource, captured_at, sha256, byte_size, media_type, reason, capture)
    ON CONFLICT DO NOTHING
    RETURNING resource, sha256),
shared AS (
    INSERT INTO shared_body (host, sha256, resources)
    SELECT resource.host, added.sha256, count(*)
    FROM added JOIN resource ON resource.resource = added.resource
    WHERE NOT EXISTS (SELECT FROM version
                      WHERE version.resource = added.resource AND version.sha256 = added.sha256)
      AND NOT EXISTS (SELECT FROM suspect
                      WHERE suspect.resource = added.resource AND suspect.sha256 = added.sha256)
    GROUP BY resource.host, added.sha256 ORDER BY resource.host, added.sha256
    ON CONFLICT (host, sha256) DO UPDATE SET resources = shared_body.resources + excluded.resources)
SELECT FROM added

-- name: note_visits
-- What visits mean for the schedule and the state; one visit of each resource.
UPDATE resource
SET state = CASE WHEN resource.state = 'stopped' THEN 'stopped' ELSE seen.state END,
    gone_at = CASE WHEN seen.state = 'gone' THEN coalesce(resource.gone_at, seen.now) END,
    history = coalesce(seen.history, resource.history),
    change_rate = coalesce(seen.change_rate, resource.change_rate),
    missed = resource.missed + CASE WHEN resource.tried_at = seen.now THEN 0 ELSE seen.missed END,
    visited_at = coalesce(seen.visited_at, resource.visited_at), tried_at = seen.now,
    next_visit = CASE WHEN resource.state = 'stopped' THEN NULL
                      ELSE coalesce(seen.next_visit, resource.next_visit) END,
    fails = seen.fails, trouble = seen.trouble, error = coalesce(seen.trouble, resource.error),
    error_at = CASE WHEN seen.trouble IS NULL THEN resource.error_at ELSE seen.now END,
    suspicious_since = CASE WHEN seen.suspicious THEN coalesce(resource.suspicious_since, seen.now)
                            WHEN seen.suspicious IS NULL THEN resource.suspicious_since END
FROM unnest(%(resource)b::text[], %(state)b::text[], %(now)b::int8[], %(next_visit)b::int8[], %(fails)b::int4[],
            %(history)b::bytea[], %(change_rate)b::float8[], %(visited_at)b::int8[], %(trouble)b::text[],
            %(missed)b::float8[], %(suspicious)b::bool[])
     AS seen (resource, state, now, next_visit, fails, history, change_rate, visited_at, trouble, missed, suspicious)
WHERE resource.resource = seen.resource

-- name: promise_visits
-- When a crawl that goes on visits resources again; what the archive's own schedule visits is left to it.
UPDATE resource SET next_visit = nullif(new.next_visit, 9223372036854775807)
FROM unnest(%(resource)b::text[], %(next_visit)b::int8[]) AS new (resource, next_visit)
WHERE resource.resource = new.resource
  AND NOT EXISTS (SELECT FROM source WHERE source.resource = resource.resource)

-- name: read_resources
-- Resources by name, with all that the archive says of them.
SELECT resource.resource, resource.url, resource.state, resource.title, resource.media_type, resource.expected,
       resource.added_at, resource.next_visit, resource.change_rate, resource.versions,
       resource.error, resource.error_at,
       coalesce((SELECT jsonb_agg(jsonb_build_array(source.source, source.portal, source.title, source.format,
                                                    said.licence)
                                  ORDER BY source.first_seen, source.source)
                 FROM source LEFT JOIN LATERAL ({licence}) AS said ON source.portal IS NOT NULL
                 WHERE source.resource = resource.resource), '[]')
FROM kept_resource AS resource WHERE resource.resource = ANY(%(resource)b::text[]) ORDER BY resource.resource

-- name: note_trouble
-- A visit that brought nothing to be judged.
UPDATE resource SET trouble = %(trouble)b::text, tried_at = %(now)b::int8, error = %(trouble)b::text,
                    error_at = %(now)b::int8
WHERE resource.resource = %(resource)b::text

-- name: note_wanted
-- They are to be visited now; a visit that has begun before does not do.
UPDATE resource SET wanted_at = %(now)b::int8,
                    next_visit = least(coalesce(resource.next_visit, %(now)b::int8), %(now)b::int8)
WHERE resource.resource = ANY(%(resource)b::text[]) AND resource.state <> 'stopped'

-- name: list_watched
-- Resources after a given one, with how their visits go.
SELECT resource.resource, resource.url, resource.title, resource.media_type, resource.state, resource.added_at,
       resource.versions, resource.tried_at, resource.next_visit, resource.change_rate, resource.every,
       coalesce(resource.priority, 1)::float8, resource.trouble, round(resource.missed)::int8
FROM resource
WHERE resource.resource > %(after)b::text
  AND (%(host)b::text IS NULL OR resource.host = %(host)b::text)
  AND (%(media_type)b::text IS NULL OR resource.media_type = %(media_type)b::text)
  AND (%(state)b::text IS NULL OR resource.state = %(state)b::text)
  AND (NOT %(trouble)b::bool
       OR (resource.trouble IS NOT NULL OR resource.resource = ANY(%(noted)b::text[])) AND resource.state <> 'stopped')
  AND (NOT %(hvd)b::bool
       OR EXISTS (SELECT FROM offered JOIN described ON described.portal = offered.portal
                                                        AND described.record = offered.record
                  WHERE offered.url = resource.url AND offered.gone_at IS NULL AND described.gone_at IS NULL
                    AND described.told ? 'hvd'))
  AND (%(portal)b::text IS NULL OR EXISTS (SELECT FROM source WHERE source.resource = resource.resource
                                                               AND source.portal = %(portal)b::text))
ORDER BY resource.resource LIMIT %(limit)b::int4

-- name: page_resources
-- The same, all of them, page by page.
SELECT resource.resource FROM resource
WHERE resource.resource > %(after)b::text
  AND (%(host)b::text IS NULL OR resource.host = %(host)b::text)
  AND (%(media_type)b::text IS NULL OR resource.media_type = %(media_type)b::text)
  AND (%(portal)b::text IS NULL OR EXISTS (SELECT FROM source WHERE source.resource = resource.resource
                                                               AND source.portal = %(portal)b::text))
ORDER BY resource.resource LIMIT %(limit)b::int4

-- name: read_versions
-- The versions of resources, oldest first.
SELECT {version} FROM kept_version AS version WHERE version.resource = ANY(%(resource)b::text[])
ORDER BY version.resource, version.number

-- name: read_end_versions
-- The first and the last version of resources, oldest first.
SELECT {version}
FROM unnest(%(resource)b::text[]) AS named (resource)
CROSS JOIN LATERAL (SELECT min(each.number) AS first, max(each.number) AS last FROM version AS each
                    WHERE each.resource = named.resource) AS ends
JOIN version ON version.resource = named.resource AND version.number IN (ends.first, ends.last)
ORDER BY version.resource, version.number

-- name: read_named_versions
-- Versions by resource and number, and the number of the one before each.
SELECT {version},
       (SELECT max(before.number) FROM version AS before
        WHERE before.resource = version.resource AND before.number < version.number)
FROM unnest(%(resource)b::text[], %(number)b::int4[]) AS named (resource, number)
JOIN version ON version.resource = named.resource AND version.number = named.number

-- name: page_suspects
-- Suspicious responses of all resources, the newest first, after a given one.
SELECT suspect.seen_at, encode(suspect.sha256, 'hex'), suspect.byte_size, suspect.media_type, suspect.reason,
       suspect.resource, resource.url
FROM suspect JOIN resource ON resource.resource = suspect.resource
WHERE (%(resource)b::text IS NULL OR suspect.resource = %(resource)b::text)
  AND (suspect.seen_at, suspect.resource) < (%(at)b::int8, %(before)b::text COLLATE "C")
ORDER BY suspect.seen_at DESC, suspect.resource DESC LIMIT %(limit)b::int4

-- name: stop_resources
-- No longer under watch; what is kept is kept.
UPDATE resource SET state = 'stopped', next_visit = NULL WHERE resource.resource = ANY(%(resource)b::text[])
