-- What needs attention, what was said of it, and what is still to be sent.

-- name: begin_round
-- Whoever changes the row makes the round; nobody else does for so long.
INSERT INTO alert_round (kind, at) VALUES (%(kind)b::text, %(now)b::int8)
ON CONFLICT (kind) DO UPDATE SET at = EXCLUDED.at WHERE alert_round.at <= EXCLUDED.at - %(pause)b::int8
RETURNING alert_round.kind

-- name: attention
-- What needs attention, of each kind so many at most, those that were reported first: kind, name, place, reason, since
-- when, and how many of the kind there are in all. `{expected}` leaves out what only a portal names and what never
-- was there. Walls are reported by host; a host is blocked that refused the last three visits at least, and had
-- nothing for us since; a harvest is reported since the first that failed or found no portal.
WITH standing AS (
    SELECT 'gone' AS kind, resource.resource AS name, resource.url AS place, '' AS reason,
           coalesce(resource.gone_at, resource.visited_at, resource.added_at) AS since
    FROM resource WHERE resource.trouble IS NOT NULL AND resource.state = 'gone' AND {expected}
    UNION ALL
    SELECT 'failing', resource.resource, resource.url, resource.trouble,
           coalesce(resource.visited_at, resource.added_at)
    FROM resource
    WHERE resource.trouble IS NOT NULL AND resource.state NOT IN ('stopped', 'gone')
      AND coalesce(resource.visited_at, resource.added_at) <= %(failing)b::int8 AND {expected}
    UNION ALL
    (SELECT DISTINCT ON (suspect.resource) 'suspicious', suspect.resource, resource.url, suspect.reason,
            resource.suspicious_since
     FROM suspect JOIN resource ON resource.resource = suspect.resource
     WHERE suspect.seen_at >= %(since)b::int8 AND resource.state <> 'stopped'
       AND resource.suspicious_since IS NOT NULL AND {expected}
       AND NOT starts_with(coalesce(resource.trouble, ''), 'refused: wall: ')
     ORDER BY suspect.resource, suspect.seen_at DESC)
    UNION ALL
    SELECT 'wall', resource.host, resource.host,
           count(*) || ' watched resources; ' || min(substring(resource.trouble FROM 'wall: .*')),
           min(coalesce(resource.suspicious_since, resource.error_at))
    FROM resource
    WHERE starts_with(resource.trouble, 'refused: wall: ') AND resource.state <> 'stopped' AND {expected}
    GROUP BY resource.host
    UNION ALL
    SELECT 'blocked', refusing.host, refusing.host, refusing.n || ' watched resources; ' || refusing.reason,
           refusing.since
    FROM (SELECT resource.host, count(*) AS n, min(resource.trouble) AS reason, min(resource.tried_at) AS tried_at,
                 coalesce(max(resource.visited_at), min(resource.added_at)) AS since
          FROM resource
          WHERE resource.trouble ~ '^(failed|refused): (401|403|407|429|451) ' AND resource.state <> 'stopped'
            AND {expected}
          GROUP BY resource.host HAVING sum(resource.fails) >= 3) AS refusing
    WHERE NOT EXISTS (SELECT FROM resource WHERE resource.host = refusing.host AND resource.trouble IS NULL
                                             AND resource.visited_at > refusing.tried_at)
    UNION ALL
    SELECT 'harvest', tried.url, tried.url, left((array_agg(tried.reason ORDER BY tried.started_at DESC))[1], 300),
           min(tried.started_at)
    FROM (SELECT url.url, capture.started_at, capture.outcome, capture.reason,
                 max(capture.started_at) FILTER (WHERE capture.outcome IN (1, 2))
                     OVER (PARTITION BY url.bucket, url.qid, url.uid) AS good_at
          FROM walk
          JOIN url ON url.bucket = walk.bucket AND url.qid = walk.qid AND url.crawl = walk.crawl
                  AND url.uid = walk.uid
          JOIN capture ON capture.bucket = walk.bucket AND capture.qid = walk.qid AND capture.crawl = walk.crawl
                      AND capture.uid = walk.uid
          WHERE walk.crawl = %(watch)b::int4 AND url.status BETWEEN 3 AND 5) AS tried
    WHERE tried.outcome BETWEEN 3 AND 5 AND tried.started_at > coalesce(tried.good_at, 0)
    GROUP BY tried.url)
SELECT ranked.kind, ranked.name, ranked.place, ranked.reason, ranked.since, ranked.total
FROM (SELECT standing.*, count(*) OVER (PARTITION BY standing.kind) AS total,
             row_number() OVER (PARTITION BY standing.kind
                                ORDER BY standing.kind || ' ' || standing.name = ANY(%(known)b::text[]) DESC,
                                         standing.since, standing.name) AS rank
      FROM standing) AS ranked
WHERE ranked.rank <= %(limit)b::int4 ORDER BY ranked.kind, ranked.rank

-- name: harvested
-- Portals that were harvested as a whole since the last look, and when the harvest began that was looked at then.
SELECT portal.portal, portal.url, portal.walked_at, round.at
FROM portal LEFT JOIN alert_round AS round ON round.kind = 'portal ' || portal.portal
WHERE portal.walked_at > coalesce(round.at, 0)

-- name: count_lost
-- Datasets of a portal that are gone since a harvest, of how many that there were then.
SELECT count(described.gone_at)::int8, count(*)::int8 FROM described
WHERE described.portal = %(portal)b::int8 AND described.first_seen <= %(since)b::int8
  AND (described.gone_at IS NULL OR described.gone_at > %(since)b::int8)

-- name: changed_records
-- Records of a portal that have a new version since a harvest.
SELECT DISTINCT kept.iri FROM source_record AS kept
WHERE kept.portal = %(portal)b::int8 AND kept.number > 1 AND kept.captured_at > %(since)b::int8
ORDER BY kept.iri LIMIT 10000

-- name: changed_tables
-- New versions of tables that were profiled since some time, with their profiles and those of the versions before.
SELECT resource.resource, resource.url, new.number, new.captured_at, was.profile, was.packed, now.profile, now.packed
FROM version AS new
JOIN resource ON resource.resource = new.resource
JOIN version AS old ON old.resource = new.resource AND old.number = new.number - 1
JOIN profile AS was ON was.sha256 = old.sha256 AND was.kind = 'content'
JOIN profile AS now ON now.sha256 = new.sha256 AND now.kind = 'content'
WHERE new.captured_at > %(week)b::int8 AND new.number > 1 AND new.noise IS NULL
  AND greatest(now.made_at, new.captured_at) > %(since)b::int8
  AND EXISTS (SELECT FROM profile WHERE profile.sha256 = old.sha256 AND profile.kind = 'table')
  AND EXISTS (SELECT FROM profile WHERE profile.sha256 = new.sha256 AND profile.kind = 'table')
ORDER BY new.captured_at DESC, new.resource LIMIT 5000

-- name: round_at
-- When a round was made last.
SELECT round.at FROM alert_round AS round WHERE round.kind = %(kind)b::text

-- name: end_round
-- Up to when something was looked at.
INSERT INTO alert_round (kind, at) VALUES (%(kind)b::text, %(now)b::int8)
ON CONFLICT (kind) DO UPDATE SET at = EXCLUDED.at

-- name: catalogue_lag
-- How many changes the catalogue does not have yet, and since when, in milliseconds.
SELECT count(*)::int8, (extract(epoch FROM min(catalogue_news.noted_at)) * 1000)::int8 FROM catalogue_news

-- name: start_clock
-- The first round of a kind is due a whole pause after now.
INSERT INTO alert_round (kind, at) VALUES (%(kind)b::text, %(now)b::int8) ON CONFLICT (kind) DO NOTHING

-- name: known
-- What has been said.
SELECT alert.alert FROM alert

-- name: put_alert
-- Something new that needs attention.
INSERT INTO alert (alert, kind, text, subject, since, seen_at)
VALUES (%(alert)b::text, %(kind)b::text, %(text)b::text, %(subject)b::text, %(since)b::int8, %(now)b::int8)
ON CONFLICT (alert) DO UPDATE SET text = EXCLUDED.text, seen_at = EXCLUDED.seen_at

-- name: forget_alerts
-- What no longer needs attention: when it does again, it is said again. Of the disks only the one that was looked
-- at, and those that no machine has looked at for long; changes after a week, or with their resource.
DELETE FROM alert
WHERE NOT (alert.alert = ANY(%(now_known)b::text[]))
  AND CASE WHEN alert.kind = 'disk' THEN alert.alert = %(disk)b::text OR alert.seen_at < %(unseen)b::int8
           WHEN alert.kind IN ('lost', 'licence', 'columns')
           THEN alert.seen_at < %(week)b::int8
                OR alert.kind = 'columns'
                   AND NOT EXISTS (SELECT FROM resource WHERE resource.resource = alert.subject)
           ELSE %(shared)b::bool END

-- name: forget_rounds
-- Those of machines that are no more.
DELETE FROM alert_round WHERE alert_round.kind LIKE 'disk %%' AND alert_round.at < %(unseen)b::int8

-- name: standing
-- What needs attention, of a kind and of a host, a portal or a resource if they are named, the longest first.
SELECT alert.alert, alert.kind, alert.text, alert.since FROM alert
WHERE (%(kinds)b::text[] IS NULL OR alert.kind = ANY(%(kinds)b::text[]))
  AND (%(subject)b::text IS NULL OR alert.subject = %(subject)b::text)
ORDER BY alert.since, alert.alert LIMIT 2000

-- name: count_changes
-- How many changes stand, by their kind.
SELECT alert.kind, count(*)::int8 FROM alert WHERE alert.kind IN ('lost', 'licence', 'columns') GROUP BY alert.kind

-- name: put_message
-- Something to be sent.
INSERT INTO alert_message (message, target, subject, body, made_at, due)
VALUES (%(message)b::text, %(target)b::text, %(subject)b::text, %(body)b::text, %(now)b::int8, %(now)b::int8)

-- name: claim_message
-- Takes a message that is due: nobody else tries it before the claim ends.
UPDATE alert_message SET attempts = alert_message.attempts + 1, due = %(until)b::int8
WHERE alert_message.message = ANY(ARRAY(
    SELECT ready.message FROM alert_message AS ready
    WHERE ready.sent_at IS NULL AND ready.due <= %(now)b::int8
    ORDER BY ready.due LIMIT 1 FOR UPDATE SKIP LOCKED))
RETURNING alert_message.message, alert_message.target, alert_message.subject, alert_message.body,
          alert_message.attempts

-- name: settle_message
-- How an attempt ended.
UPDATE alert_message
SET sent_at = %(sent_at)b::int8, due = %(due)b::int8, trouble = %(trouble)b::text
WHERE alert_message.message = %(message)b::text

-- name: forget_messages
-- What was sent, or given up, long ago.
DELETE FROM alert_message WHERE alert_message.made_at < %(before)b::int8
