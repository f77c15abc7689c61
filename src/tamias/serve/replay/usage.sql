-- What servers said about the use of what they gave.

-- name: signals
-- What was said with captures, of those with which anything was said. In which bucket each is, is not known.
SELECT capture.capture::text, capture.signals FROM capture
WHERE capture.bucket = ANY(%(bucket)b::int2[]) AND capture.capture = ANY(%(capture)b::text[]::uuid[])
  AND capture.signals IS NOT NULL

-- name: newest
-- The captures that brought the newest versions of resources.
SELECT version.resource, version.capture::text
FROM resource JOIN version ON version.resource = resource.resource AND version.number = resource.versions
WHERE resource.resource = ANY(%(resource)b::text[])
