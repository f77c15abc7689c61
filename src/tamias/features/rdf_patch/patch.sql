-- What patches are made of.

-- name: versions_after
-- New versions after an event, in the order in which they became known, with the newest that was known before each.
SELECT event.event, event.resource, event.number, event.at, before.number, before.captured_at
FROM event
LEFT JOIN LATERAL (SELECT version.number, version.captured_at FROM event AS earlier
                   JOIN version ON version.resource = earlier.resource AND version.number = earlier.number
                   WHERE earlier.resource = event.resource AND earlier.kind = 'version'
                     AND earlier.event < event.event
                   ORDER BY version.captured_at DESC, version.number DESC LIMIT 1) AS before ON true
WHERE event.kind = 'version' AND event.event > %(after)b::int8
ORDER BY event.event LIMIT %(limit)b::int4
