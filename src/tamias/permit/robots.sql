-- The robots.txt of every authority we have asked, shared by all workers.

-- name: read_robots
-- What is known of an authority, if it has not expired.
SELECT robots.rules, robots.expires_at FROM robots
WHERE robots.bucket = %(bucket)b::int2 AND robots.qid = %(qid)b::int8 AND robots.authority = %(authority)b::text
  AND robots.expires_at > %(now)b::int8

-- name: write_robots
-- What was learnt of an authority; the latest word counts.
INSERT INTO robots (bucket, qid, authority, fetched_at, expires_at, status, rules)
VALUES (%(bucket)b::int2, %(qid)b::int8, %(authority)b::text, %(fetched_at)b::int8, %(expires_at)b::int8,
        %(status)b::int2, %(rules)b::bytea)
ON CONFLICT (bucket, qid, authority) DO UPDATE
SET fetched_at = excluded.fetched_at, expires_at = excluded.expires_at, status = excluded.status,
    rules = excluded.rules

-- name: slow_host
-- The delay that a host asks for counts from now on, also for whoever comes after a worker that dies.
UPDATE host
SET delay_ms = %(delay_ms)b::int4,
    ready_at = CASE WHEN host.token IS NULL THEN host.ready_at
                    ELSE greatest(host.ready_at, host.lease_end + %(delay_ms)b::int4) END
WHERE host.bucket = %(bucket)b::int2 AND host.qid = %(qid)b::int8 AND host.delay_ms < %(delay_ms)b::int4
