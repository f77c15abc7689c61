-- What the service asks when workers without a database deliver.

-- name: known_captures
-- Which of these captures are committed already.
SELECT capture.capture FROM capture
WHERE capture.bucket = %(bucket)b::int2 AND capture.capture = ANY(%(captures)b::uuid[])
