-- The log of what happened.

-- name: is_news
-- Whether something happened that has no number yet.
SELECT EXISTS (SELECT FROM event_news)

-- name: lock_log
-- Numbers are given by one at a time, so that whoever has seen one has seen all before it.
SELECT pg_advisory_xact_lock(%(lock)b::int8)

-- name: number_news
-- Gives numbers to news, so many at most, in the order of their times.
WITH taken AS (
    DELETE FROM event_news
    WHERE event_news.ctid = ANY(ARRAY(SELECT news.ctid FROM event_news AS news LIMIT %(limit)b::int4))
    RETURNING event_news.kind, event_news.resource, event_news.number, event_news.state, event_news.at)
INSERT INTO event (kind, resource, number, state, at)
SELECT taken.kind, taken.resource, taken.number, taken.state, taken.at FROM taken
ORDER BY taken.at, taken.resource, taken.number

-- name: latest_event
-- The number of the last event.
SELECT coalesce(max(event.event), 0)::int8 FROM event

-- name: read_events
-- Events between two numbers, all or of some kinds, of a resource, a host, or a portal.
SELECT event.event, event.kind, event.at, event.resource, resource.url, resource.host, resource.title,
       event.number, encode(version.sha256, 'hex'), version.byte_size, version.media_type, version.noise,
       event.state
FROM event
JOIN resource ON resource.resource = event.resource
LEFT JOIN version ON version.resource = event.resource AND version.number = event.number
WHERE event.event > %(after)b::int8 AND event.event <= %(until)b::int8
  AND event.kind = ANY(%(kinds)b::text[])
  AND (%(resource)b::text IS NULL OR event.resource = %(resource)b::text)
  AND (%(host)b::text IS NULL OR resource.host = %(host)b::text)
  AND (%(portal)b::text IS NULL OR EXISTS (SELECT FROM source WHERE source.resource = event.resource
                                                               AND source.portal = %(portal)b::text))
ORDER BY event.event LIMIT %(limit)b::int4
