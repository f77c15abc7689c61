-- The event stream.

-- name: members
-- Versions in the order in which they became known, of one page of the event stream.
SELECT event.event, event.at, event.resource, event.number, encode(version.sha256, 'hex'), version.byte_size,
       version.media_type, resource.url, resource.title, version.capture::text
FROM event
JOIN resource ON resource.resource = event.resource
JOIN version ON version.resource = event.resource AND version.number = event.number
WHERE event.kind = 'version' AND event.event > %(after)b::int8 AND event.event <= %(until)b::int8
ORDER BY event.event
