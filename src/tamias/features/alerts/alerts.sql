-- What needs attention, what was said of it, and what is still to be sent.

-- name: begin_round
-- Whoever changes the row makes the round; nobody else does for so long.
INSERT INTO alert_round (kind, at) VALUES (%(kind)b::text, %(now)b::int8)
ON CONFLICT (kind) DO UPDATE SET at = EXCLUDED.at WHERE alert_round.at <= EXCLUDED.at - %(pause)b::int8
RETURNING alert_round.kind

-- name: gone
-- Watched resources that are gone, those that were reported first, and how many there are in all.
SELECT resource.resource, resource.url, count(*) OVER ()
FROM resource
WHERE resource.trouble IS NOT NULL AND resource.state = 'gone'
ORDER BY resource.resource = ANY(%(known)b::text[]) DESC,
         COALESCE(resource.visited_at, resource.added_at), resource.resource
LIMIT %(limit)b::int4

-- name: failing
-- Watched resources without a usable answer since some time, likewise.
SELECT resource.resource, resource.url, resource.trouble, COALESCE(resource.visited_at, resource.added_at),
       count(*) OVER ()
FROM resource
WHERE resource.trouble IS NOT NULL AND resource.state NOT IN ('stopped', 'gone')
  AND COALESCE(resource.visited_at, resource.added_at) <= %(failing)b::int8
ORDER BY resource.resource = ANY(%(known)b::text[]) DESC,
         COALESCE(resource.visited_at, resource.added_at), resource.resource
LIMIT %(limit)b::int4

-- name: suspicious
-- Suspicious responses since some time that no good one has followed, likewise.
SELECT latest.resource, latest.url, latest.reason, latest.seen_at, count(*) OVER ()
FROM (
    SELECT DISTINCT ON (suspect.resource) suspect.resource, resource.url, suspect.reason, suspect.seen_at
    FROM suspect JOIN resource ON resource.resource = suspect.resource
    WHERE suspect.seen_at >= %(since)b::int8 AND resource.state <> 'stopped'
      AND resource.suspicious_since IS NOT NULL
    ORDER BY suspect.resource, suspect.seen_at DESC) AS latest
ORDER BY latest.resource = ANY(%(known)b::text[]) DESC, latest.seen_at, latest.resource
LIMIT %(limit)b::int4

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
INSERT INTO alert (alert, kind, text, since, seen_at)
VALUES (%(alert)b::text, %(kind)b::text, %(text)b::text, %(now)b::int8, %(now)b::int8)
ON CONFLICT (alert) DO UPDATE SET text = EXCLUDED.text, seen_at = EXCLUDED.seen_at

-- name: forget_alerts
-- What no longer needs attention: when it does again, it is said again. Of the disks only the one that was looked
-- at, and those that no machine has looked at for long.
DELETE FROM alert
WHERE NOT (alert.alert = ANY(%(now_known)b::text[]))
  AND (alert.kind <> 'disk' AND %(shared)b::bool OR alert.alert = %(disk)b::text
       OR alert.kind = 'disk' AND alert.seen_at < %(unseen)b::int8)

-- name: forget_rounds
-- Those of machines that are no more.
DELETE FROM alert_round WHERE alert_round.kind LIKE 'disk %%' AND alert_round.at < %(unseen)b::int8

-- name: standing
-- All that needs attention, the longest first.
SELECT alert.alert, alert.kind, alert.text, alert.since FROM alert ORDER BY alert.since, alert.alert LIMIT 2000

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
