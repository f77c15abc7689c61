-- How far a store has followed, and what has changed since.

-- name: find
-- How far a store has followed; none when it was never filled, or has slept for so long that news are gone.
SELECT catalogue.seen::text, catalogue.service FROM catalogue
WHERE catalogue.sink = %(sink)b::int4 AND catalogue.refreshed_at > now() - interval '6 days'

-- name: enter
-- From now on what changes is noted for a store; what it is told of later begins here.
INSERT INTO catalogue (sink, service, seen)
VALUES (%(sink)b::int4, %(service)b::text, pg_current_xact_id())
ON CONFLICT (sink) DO UPDATE SET service = excluded.service, seen = excluded.seen, refreshed_at = excluded.refreshed_at
RETURNING seen::text

-- name: oldest_running
-- All transactions before this one have ended.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text

-- name: news
-- What was changed by transactions since, some of which may have been told before; and whether it is worth waiting
-- for: noted a moment ago, of a resource with a version that is about to be profiled.
SELECT DISTINCT news.xid::text, news.kind, news.name,
       news.noted_at > now() - %(patience)b::float8 * interval '1 second' AND news.kind IN ('resource', 'version')
       AND split_part(news.name, '_', 1) IN (SELECT profile_due.resource FROM profile_due
                                             ORDER BY profile_due.captured_at DESC LIMIT 10000)
FROM catalogue_news AS news
WHERE news.xid >= %(seen)b::text::xid8

-- name: follow
-- A store has all that was changed by older transactions.
UPDATE catalogue SET seen = %(seen)b::text::xid8, refreshed_at = now() WHERE catalogue.sink = %(sink)b::int4

-- name: forget_news
-- Notes that nobody will ask for any more.
DELETE FROM catalogue_news WHERE catalogue_news.noted_at < now() - interval '7 days'

-- name: stale_stores
-- Other stores that have slept for so long that they would have to be filled again.
SELECT sink.name FROM catalogue JOIN sink ON sink.sink = catalogue.sink
WHERE catalogue.refreshed_at <= now() - interval '6 days' AND catalogue.sink <> %(sink)b::int4

-- name: forget_store
-- A store that is no more, with all that was noted for it.
WITH gone AS (DELETE FROM sink WHERE sink.name = %(name)b::text RETURNING sink.sink)
DELETE FROM catalogue USING gone WHERE catalogue.sink = gone.sink

-- name: forget_outbox
-- Its documents.
DELETE FROM outbox WHERE outbox.bucket = %(bucket)b::int2 AND outbox.sink = %(sink)b::int4

-- name: forget_placed
-- Its graphs.
DELETE FROM placed WHERE placed.sink = %(sink)b::int4
