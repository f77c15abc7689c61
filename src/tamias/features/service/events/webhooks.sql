-- Who is told of events, and how that goes.

-- name: count_webhooks
-- How many there are.
SELECT count(*) FROM webhook

-- name: put_webhook
-- One more to be told.
INSERT INTO webhook (webhook, url, key, kinds, host, portal, resource, made_at, seen)
VALUES (%(id)b::text, %(url)b::text, %(key)b::bytea, %(kinds)b::text[], %(host)b::text, %(portal)b::text,
        %(resource)b::text, %(made_at)b::int8, %(seen)b::int8)
ON CONFLICT DO NOTHING

-- name: delete_webhook
-- Nobody is told there any more.
DELETE FROM webhook WHERE webhook.webhook = %(id)b::text

-- name: list_webhooks
-- All, or one, in the order in which they came, with how the last delivery of each went.
SELECT webhook.webhook, webhook.url, webhook.kinds, webhook.host, webhook.portal, webhook.resource,
       webhook.made_at, webhook.seen, webhook.state, last.state, last.attempts, last.status, last.trouble,
       last.tried_at, CASE WHEN last.state = 'pending' THEN last.due END
FROM webhook
LEFT JOIN LATERAL (SELECT delivery.* FROM delivery WHERE delivery.webhook = webhook.webhook
                   ORDER BY delivery.made_at DESC, delivery.delivery DESC LIMIT 1) AS last ON true
WHERE %(id)b::text IS NULL OR webhook.webhook = %(id)b::text
ORDER BY webhook.made_at, webhook.webhook

-- name: behind
-- Webhooks that have not been told of the last events and have no delivery under way, each locked.
SELECT webhook.webhook, webhook.kinds, webhook.host, webhook.portal, webhook.resource, webhook.seen
FROM webhook
WHERE webhook.state = 'active' AND webhook.seen < %(latest)b::int8
  AND NOT EXISTS (SELECT FROM delivery WHERE delivery.webhook = webhook.webhook AND delivery.state = 'pending')
ORDER BY webhook.webhook LIMIT %(limit)b::int4 FOR UPDATE SKIP LOCKED

-- name: note_seen
-- So far events have been put into deliveries.
UPDATE webhook SET seen = %(seen)b::int8 WHERE webhook.webhook = %(id)b::text

-- name: put_delivery
-- Something to be delivered as soon as can be.
INSERT INTO delivery (delivery, webhook, made_at, after, events, body, due)
VALUES (%(delivery)b::text, %(id)b::text, %(now)b::int8, %(after)b::int8, %(events)b::int4, %(body)b::bytea,
        %(now)b::int8)

-- name: claim
-- Takes deliveries that are due: nobody else tries them before the claim ends.
UPDATE delivery SET attempts = delivery.attempts + 1, tried_at = %(now)b::int8, due = %(until)b::int8
FROM webhook
WHERE webhook.webhook = delivery.webhook AND webhook.state = 'active'
  AND delivery.delivery = ANY(ARRAY(
      SELECT ready.delivery FROM delivery AS ready
      WHERE ready.state = 'pending' AND ready.due <= %(now)b::int8
      ORDER BY ready.due LIMIT %(limit)b::int4 FOR UPDATE SKIP LOCKED))
RETURNING delivery.delivery, delivery.webhook, webhook.url, webhook.key, delivery.body, delivery.attempts

-- name: settle
-- How an attempt ended.
UPDATE delivery SET state = %(state)b::text, status = %(status)b::int4, trouble = %(trouble)b::text,
                    due = %(due)b::int8,
                    body = CASE WHEN %(state)b::text = 'delivered' THEN '' ELSE delivery.body END
WHERE delivery.delivery = %(delivery)b::text

-- name: stop_webhook
-- It does not answer any more: what it was to be told last it has not seen.
UPDATE webhook SET state = 'stopped', seen = delivery.after
FROM delivery WHERE delivery.delivery = %(delivery)b::text AND webhook.webhook = delivery.webhook

-- name: forget_deliveries
-- Of what is over, only the last so many deliveries of a webhook are remembered.
DELETE FROM delivery
WHERE delivery.webhook = %(id)b::text AND delivery.state <> 'pending'
  AND delivery.delivery NOT IN (SELECT kept.delivery FROM delivery AS kept WHERE kept.webhook = %(id)b::text
                                ORDER BY kept.made_at DESC, kept.delivery DESC LIMIT %(keep)b::int4)
