-- What catalogues describe.

-- name: put_portal
-- The number of a catalogue, made known if need be.
INSERT INTO portal (url, kind, first_seen) VALUES (%(url)b::text, %(kind)b::text, %(now)b::int8)
ON CONFLICT (url) DO UPDATE SET kind = excluded.kind
RETURNING portal

-- name: put_named_portal
-- Makes a portal known that a query names. One that is harvested itself, or that another query names, is not its.
INSERT INTO portal (url, kind, first_seen, named_by)
VALUES (%(url)b::text, 'named', %(harvest)b::int8, %(query)b::text)
ON CONFLICT (url) DO UPDATE SET named_by = excluded.named_by WHERE portal.named_by = excluded.named_by
RETURNING portal.portal

-- name: watch_portals
-- Lets portals be harvested from now on; gives back those that were not. What was found at an address stays known.
INSERT INTO portal (url, kind, first_seen, state)
SELECT DISTINCT ON (1) coalesce(known.found, new.url), new.kind, %(now)b::int8, 'active'
FROM unnest(%(url)b::text[], %(kind)b::text[]) AS new (url, kind)
LEFT JOIN portal AS known ON known.url = new.url AND new.kind = 'portal' ORDER BY 1
ON CONFLICT (url) DO UPDATE
SET state = 'active', named_by = NULL,
    kind = CASE WHEN excluded.kind = 'portal' AND portal.state <> 'removed' THEN portal.kind ELSE excluded.kind END
WHERE portal.state IS DISTINCT FROM 'active' OR portal.kind <> excluded.kind AND excluded.kind <> 'portal'
RETURNING portal.url, portal.kind

-- name: watched_portals
-- Portals that are harvested.
SELECT portal.url FROM portal WHERE portal.state IN ('active', 'stopped')

-- name: put_described
-- Datasets that a harvest saw; one that had vanished is back. Of words that changed, a trigger stores the earlier
-- ones. A harvest that began before one that saw the dataset later changes no words.
INSERT INTO described (portal, record, iri, title, first_seen, last_seen, told_at)
SELECT %(portal)b::int8, new.record, new.iri, new.title, %(harvest)b::int8, %(harvest)b::int8, %(harvest)b::int8
FROM unnest(%(record)b::text[], %(iri)b::text[], %(title)b::text[]) AS new (record, iri, title)
ON CONFLICT (portal, record)
DO UPDATE SET iri = CASE WHEN excluded.last_seen < described.last_seen THEN described.iri ELSE excluded.iri END,
              title = CASE WHEN excluded.last_seen < described.last_seen THEN described.title ELSE excluded.title END,
              told_at = CASE WHEN excluded.last_seen < described.last_seen
                               OR (excluded.iri, excluded.title) = (described.iri, described.title)
                             THEN described.told_at ELSE excluded.told_at END,
              gone_at = NULL, last_seen = greatest(described.last_seen, excluded.last_seen)

-- name: put_offered
-- The forms in which they can be had; earlier words are stored as those of datasets are.
INSERT INTO offered (portal, record, url, title, format, media_type, byte_size, sha256, modified, first_seen, last_seen,
                     told_at)
SELECT %(portal)b::int8, new.record, new.url, new.title, new.format, new.media_type, new.byte_size, new.sha256,
       new.modified, %(harvest)b::int8, %(harvest)b::int8, %(harvest)b::int8
FROM unnest(%(record)b::text[], %(url)b::text[], %(title)b::text[], %(format)b::text[], %(media_type)b::text[],
            %(byte_size)b::int8[], %(sha256)b::text[], %(modified)b::text[])
     AS new (record, url, title, format, media_type, byte_size, sha256, modified)
ON CONFLICT (portal, record, url)
DO UPDATE SET title = CASE WHEN excluded.last_seen < offered.last_seen THEN offered.title ELSE excluded.title END,
              format = CASE WHEN excluded.last_seen < offered.last_seen THEN offered.format ELSE excluded.format END,
              told_at = CASE WHEN excluded.last_seen < offered.last_seen
                               OR (excluded.title, excluded.format) IS NOT DISTINCT FROM (offered.title, offered.format)
                             THEN offered.told_at ELSE excluded.told_at END,
              media_type = excluded.media_type,
              byte_size = excluded.byte_size, sha256 = excluded.sha256, modified = excluded.modified,
              last_seen = greatest(offered.last_seen, excluded.last_seen), gone_at = NULL

-- name: note_dropped
-- Files that these datasets have no longer.
UPDATE offered SET gone_at = %(harvest)b::int8
WHERE offered.portal = %(portal)b::int8 AND offered.record = ANY(%(record)b::text[])
  AND offered.last_seen < %(harvest)b::int8 AND offered.gone_at IS NULL

-- name: note_vanished
-- A harvest saw the whole catalogue: what it did not see is gone.
UPDATE described SET gone_at = %(harvest)b::int8
FROM portal
WHERE %(url)b::text IN (portal.url, portal.named_by) AND described.portal = portal.portal
  AND described.last_seen < %(harvest)b::int8
  AND described.gone_at IS NULL

-- name: note_present
-- Datasets that the catalogue still lists.
UPDATE described SET gone_at = NULL, last_seen = greatest(described.last_seen, %(harvest)b::int8)
FROM portal
WHERE portal.url = %(url)b::text AND described.portal = portal.portal AND described.record = ANY(%(record)b::text[])

-- name: note_deleted
-- Datasets that the catalogue says it has deleted.
UPDATE described SET gone_at = %(harvest)b::int8
FROM portal
WHERE portal.url = %(url)b::text AND described.portal = portal.portal AND described.record = ANY(%(record)b::text[])
  AND described.gone_at IS NULL

-- name: count_present
-- Datasets of a catalogue that have not vanished from it; when the latest change was seen.
SELECT count(*) FILTER (WHERE described.gone_at IS NULL),
       greatest(max(described.gone_at),
                (SELECT max(kept.captured_at) FROM source_record AS kept WHERE kept.portal = min(portal.portal)))
FROM portal JOIN described ON described.portal = portal.portal
WHERE portal.url = %(url)b::text

-- name: note_harvested
-- When a catalogue, or the portals that a query names, were last seen as a whole.
UPDATE portal SET walked_at = %(harvest)b::int8 WHERE %(url)b::text IN (portal.url, portal.named_by)

-- What others say about when resources change.

-- name: note_hints
-- The latest that is said; gives back the resources that are said to have changed since the last visit.
UPDATE resource
SET hint_at = greatest(resource.hint_at, told.changed_at), frequency = coalesce(told.frequency, resource.frequency)
FROM (SELECT new.url, max(new.changed_at) AS changed_at, max(new.frequency) AS frequency
      FROM unnest(%(url)b::text[], %(changed_at)b::int8[], %(frequency)b::text[]) AS new (url, changed_at, frequency)
      GROUP BY new.url) AS told
WHERE resource.url = told.url
  AND (told.changed_at > coalesce(resource.hint_at, 0) OR told.frequency IS DISTINCT FROM resource.frequency)
RETURNING resource.url, resource.host, resource.visited_at, resource.hint_at

-- name: read_trust
-- How often the dates of hosts proved right.
SELECT hint_trust.host, hint_trust.correct, hint_trust.checked FROM hint_trust
WHERE hint_trust.host = ANY(%(host)b::text[])

-- name: write_trust
-- The same, after one more test.
INSERT INTO hint_trust (host, correct, checked) VALUES (%(host)b::text, %(correct)b::int4, %(checked)b::int4)
ON CONFLICT (host) DO UPDATE SET correct = excluded.correct, checked = excluded.checked
