-- How far harvests came.

-- name: read_harvest
-- A harvest under way, and what the last complete one left.
SELECT walk.progress, walk.bookmark, walk.document_at, walk.document_records FROM walk
WHERE walk.bucket = %(bucket)b::int2 AND walk.qid = %(qid)b::int8 AND walk.crawl = %(crawl)b::int4
  AND walk.uid = %(uid)b::int8

-- name: save_harvest
-- One step more.
INSERT INTO walk (bucket, qid, crawl, uid, started_at, progress)
VALUES (%(bucket)b::int2, %(qid)b::int8, %(crawl)b::int4, %(uid)b::int8, %(started_at)b::int8, %(progress)b::bytea)
ON CONFLICT (bucket, qid, crawl, uid)
DO UPDATE SET started_at = excluded.started_at, progress = excluded.progress

-- name: end_harvest
-- The harvest is over: the next one begins anew, with the bookmark if there is one. It made the document of the records
-- that are present, left it as it was, or (null) made it of something else.
UPDATE walk SET started_at = NULL, progress = NULL, bookmark = coalesce(%(bookmark)b::bytea, walk.bookmark),
                document_at = CASE WHEN %(unchanged)b::bool THEN walk.document_at ELSE %(document_at)b::int8 END,
                document_records = CASE WHEN %(unchanged)b::bool THEN walk.document_records ELSE (
                    SELECT count(*) FROM described JOIN portal ON portal.portal = described.portal
                    WHERE portal.url = %(url)b::text AND described.gone_at IS NULL) END
WHERE walk.bucket = %(bucket)b::int2 AND walk.qid = %(qid)b::int8 AND walk.crawl = %(crawl)b::int4
  AND walk.uid = %(uid)b::int8

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

-- name: under_way
-- How far harvests came that have not ended.
SELECT walk.progress FROM walk WHERE walk.progress IS NOT NULL
