-- Harvests of portals and other sources, and how these are steered.

-- name: end_cut_off
-- What is still open was cut off: its worker died.
UPDATE harvest_job AS harvest SET ended_at = %(now)b::int8, reason = %(reason)b::text
WHERE harvest.url = %(url)b::text AND harvest.ended_at IS NULL

-- name: begin
-- A harvest begins; the newest so many are kept.
WITH old AS (
    DELETE FROM harvest_job AS harvest WHERE harvest.url = %(url)b::text AND harvest.started_at < (
        SELECT min(newest.started_at) FROM (
            SELECT kept.started_at FROM harvest_job AS kept WHERE kept.url = %(url)b::text
            ORDER BY kept.started_at DESC LIMIT %(most)b::int4) AS newest))
INSERT INTO harvest_job (url, started_at, kind) VALUES (%(url)b::text, %(now)b::int8, %(kind)b::text)
ON CONFLICT DO NOTHING

-- name: source
-- How a portal is steered; one that nobody added, as another portal named it, is harvested from now on.
INSERT INTO portal (url, kind, first_seen, state)
VALUES (%(url)b::text, %(kind)b::text, %(now)b::int8, 'active')
ON CONFLICT (url) DO UPDATE SET state = coalesce(portal.state, 'active')
RETURNING portal.every

-- name: step
-- One step more; gives back the state of the portal.
UPDATE harvest_job AS harvest SET requests = %(requests)b::int8, failed = %(failed)b::int8
FROM portal
WHERE harvest.url = %(url)b::text AND harvest.started_at = %(started_at)b::int8 AND portal.url = harvest.url
RETURNING portal.state

-- name: end
-- A harvest ended. What it added and changed is known by its time, or by that of the attempt that it went on from.
UPDATE harvest_job AS harvest
SET ended_at = %(now)b::int8, outcome = %(outcome)b::int2, reason = %(reason)b::text,
    requests = %(requests)b::int8, failed = %(failed)b::int8,
    added = counted.added, changed = counted.changed, vanished = counted.vanished
FROM (SELECT count(*) FILTER (WHERE described.first_seen = %(harvest)b::int8) AS added,
             count(*) FILTER (WHERE described.gone_at = %(harvest)b::int8) AS vanished,
             count(*) FILTER (WHERE described.first_seen < %(harvest)b::int8
                                AND (described.told_at = %(harvest)b::int8
                                     OR described.record IN (
                                         SELECT kept.record FROM source_record AS kept
                                         JOIN portal ON portal.portal = kept.portal
                                         WHERE portal.url = %(url)b::text AND kept.number > 1
                                           AND kept.captured_at = %(harvest)b::int8))) AS changed
      FROM portal JOIN described ON described.portal = portal.portal
      WHERE portal.url = %(url)b::text) AS counted
WHERE harvest.url = %(url)b::text AND harvest.started_at = %(started_at)b::int8

-- name: unwatched
-- Whether a portal was stopped or removed; whoever does so waits for what is committed with this.
SELECT FROM portal WHERE portal.url = %(url)b::text AND portal.state <> 'active' FOR SHARE

-- name: end_harvests
-- A portal was stopped or removed.
UPDATE portal SET state = %(state)b::text WHERE portal.url = %(url)b::text

-- name: set_interval
-- How often a portal is harvested.
UPDATE portal SET every = %(every)b::int8 WHERE portal.url = %(url)b::text

-- name: found
-- A portal was found at an address of it.
UPDATE portal SET found = %(found)b::text WHERE portal.url = %(url)b::text AND portal.url <> %(found)b::text

-- name: portal_files
-- Watched files that only this portal names.
SELECT resource.url
FROM (SELECT offered.url FROM offered JOIN portal ON portal.portal = offered.portal
      WHERE portal.url = %(url)b::text) AS own
JOIN resource ON resource.url = own.url
WHERE resource.state <> 'stopped' AND resource.url > %(after)b::text
  AND NOT EXISTS (SELECT FROM source WHERE source.resource = resource.resource AND source.portal IS NULL)
  AND NOT EXISTS (SELECT FROM offered AS others JOIN portal AS other ON other.portal = others.portal
                  WHERE others.url = resource.url AND others.gone_at IS NULL AND other.state = 'active')
GROUP BY resource.url ORDER BY resource.url LIMIT %(limit)b::int4

-- name: portals
-- Portals after a given one, or the one of an address, with what they describe, their last harvest that ended and the
-- one under way; of harvests before there were jobs, only the last whole one is known. One that was removed is shown
-- only if it is asked for.
SELECT portal.url, portal.kind, coalesce(portal.state, ''), portal.every, portal.first_seen, portal.named_by,
       counted.datasets, counted.gone, files.files, portal.walked_at,
       coalesce(last.ended_at, portal.walked_at), last.outcome, last.reason, running.started_at
FROM portal
CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE described.gone_at IS NULL)::int8 AS datasets,
                           count(described.gone_at)::int8 AS gone
                    FROM described WHERE described.portal = portal.portal) AS counted
CROSS JOIN LATERAL (SELECT count(DISTINCT offered.url)::int8 AS files
                    FROM offered JOIN described ON described.portal = offered.portal AND described.record = offered.record
                    WHERE offered.portal = portal.portal AND offered.gone_at IS NULL AND described.gone_at IS NULL) AS files
LEFT JOIN LATERAL (SELECT harvest.* FROM harvest_job AS harvest WHERE harvest.url = portal.url AND harvest.ended_at IS NOT NULL
                   ORDER BY harvest.started_at DESC LIMIT 1) AS last ON true
LEFT JOIN LATERAL (SELECT harvest.* FROM harvest_job AS harvest WHERE harvest.url = portal.url AND harvest.ended_at IS NULL
                   ORDER BY harvest.started_at DESC LIMIT 1) AS running ON true
WHERE portal.url > %(after)b::text AND (%(url)b::text IS NULL OR portal.url = %(url)b::text)
  AND (%(url)b::text IS NOT NULL OR portal.state IS DISTINCT FROM 'removed')
  AND (%(known)b::bool OR num_nonnulls(portal.state, portal.named_by) > 0)
  AND (portal.named_by IS NULL
       OR EXISTS (SELECT FROM portal AS query WHERE query.url = portal.named_by AND query.state <> 'removed'))
  AND (portal.found IS NULL OR NOT EXISTS (SELECT FROM portal AS found WHERE found.url = portal.found))
ORDER BY portal.url LIMIT %(limit)b::int4

-- name: find
-- The portal of an address: itself, or what was found there.
SELECT coalesce(found.url, portal.url) FROM portal LEFT JOIN portal AS found ON found.url = portal.found
WHERE portal.url = %(url)b::text

-- name: places
-- When URLs of a bucket are due, whether their hosts are leased, and until when these have to be left alone.
SELECT wanted.place, url.due, CASE WHEN host.token IS NULL THEN 0 ELSE host.lease_end END, host.blocked_until
FROM unnest(%(place)b::int4[], %(qid)b::int8[], %(uid)b::int8[]) AS wanted (place, qid, uid)
JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = wanted.qid AND url.crawl = %(watch)b::int4
        AND url.uid = wanted.uid
JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = wanted.qid

-- name: harvests
-- The harvests of a portal before a given one, the newest first.
SELECT harvest.started_at, harvest.kind, harvest.ended_at, harvest.outcome, harvest.reason, harvest.requests,
       harvest.added, harvest.changed, harvest.vanished, harvest.failed
FROM harvest_job AS harvest WHERE harvest.url = %(url)b::text AND harvest.started_at < %(before)b::int8
ORDER BY harvest.started_at DESC LIMIT %(limit)b::int4
