-- The JSON-LD contexts that documents asked for.

-- name: read_contexts
-- Those of the wanted ones that somebody has tried since then.
SELECT context.url, context.body FROM context
WHERE context.url_key = ANY(%(keys)b::bytea[]) AND context.fetched_at >= %(since)b::int8

-- name: keep_context
-- One more; without a body, that there is none to be had.
INSERT INTO context (url_key, fetched_at, body, url)
VALUES (%(key)b::bytea, %(now)b::int8, %(body)b::bytea, %(url)b::text)
ON CONFLICT (url_key) DO UPDATE SET fetched_at = excluded.fetched_at, body = excluded.body
