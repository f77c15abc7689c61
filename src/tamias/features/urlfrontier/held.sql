-- Clients that hold single URLs instead of hosts. The host's row gives the politeness window. A hold is a range in
-- the queue's row (what is due by `held_to` is held until `held_until`) or, where the range of the queue is taken, in
-- the URL's row: its due time is the hold's end. Workers and clients never work on one URL at a time.
-- Words: a queue may be served when it is active, due, of the crawl that was asked for (of any but `watch`, which is
-- number 2, where none was), in a lane that the service has an interest in, and the client holds fewer than it
-- may of its URLs.

-- part: has_queue
-- Whether a ready host has a queue that may be served.
EXISTS (
          SELECT FROM queue
          WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = host.qid AND queue.active
            AND queue.next_due <= %(now)b::int8
            AND CASE WHEN %(crawl)b::int4 IS NULL THEN queue.crawl <> 2 ELSE queue.crawl = %(crawl)b::int4 END
            AND (%(lanes)b::int4[] IS NULL OR queue.lane = ANY(%(lanes)b::int4[]))
            AND (%(most_held)b::int4 IS NULL OR %(most_held)b::int4 > (
                SELECT count(*) FROM (
                    SELECT FROM url
                    WHERE url.bucket = %(bucket)b::int2 AND url.qid = queue.qid AND url.crawl = queue.crawl
                      AND url.held_until = url.due AND url.due > %(now)b::int8
                    UNION ALL
                    SELECT FROM queue AS part JOIN url
                      ON url.bucket = %(bucket)b::int2 AND url.qid = part.qid AND url.crawl = part.crawl
                     AND url.lane = part.lane AND url.due <= part.held_to AND url.due < 9223372036854775807
                    WHERE part.bucket = %(bucket)b::int2 AND part.qid = queue.qid AND part.crawl = queue.crawl
                      AND part.held_until > %(now)b::int8
                    LIMIT %(most_held)b::int4) AS held)))

-- name: choose_hosts
-- Locks ready hosts with a queue that may be served, class by class. It walks over hosts that are ready but have
-- nothing for this client; hosts that are not ready cost nothing.
SELECT ready.qid, ready.hkey
FROM unnest(%(class)b::int2[], %(slots)b::int4[]) AS probe (class, slots)
CROSS JOIN LATERAL (
    SELECT host.qid, host.hkey FROM host
    WHERE host.bucket = %(bucket)b::int2 AND host.class = probe.class AND host.ready_at <= %(asked_at)b::int8
      AND {has_queue}
    ORDER BY host.ready_at, host.qid LIMIT probe.slots
    FOR NO KEY UPDATE OF host SKIP LOCKED) AS ready
LIMIT %(hosts)b::int4

-- name: choose_host
-- The same for one host: locked if it is ready and has a queue that may be served.
SELECT host.qid, host.hkey FROM host
WHERE host.bucket = %(bucket)b::int2 AND host.qid = %(qid)b::int8 AND host.ready_at <= %(asked_at)b::int8
  AND {has_queue}
FOR NO KEY UPDATE OF host SKIP LOCKED

-- name: asked_by_tamias
-- Of hosts: those that crawls or the archive of Tamias itself have queues of.
SELECT host.qid FROM host
WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(shared)b::int8[])
  AND EXISTS (
      SELECT FROM queue JOIN crawl ON crawl.crawl = queue.crawl
      WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = host.qid AND (queue.crawl = 2 OR crawl.policy <> '{}'))

-- name: lock_free
-- Locks those that may be asked now: nobody has leased them, and their delay is over.
SELECT host.qid FROM host
WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(shared)b::int8[])
  AND host.not_before <= %(now)b::int8 AND host.blocked_until <= %(now)b::int8
  AND (host.token IS NULL OR host.lease_end + host.delay_ms < %(now)b::int8)
FOR NO KEY UPDATE SKIP LOCKED

-- name: pace_shared
-- Hosts whose URLs were given out from queues with a politeness of their own wait for their delay all the same.
UPDATE host
SET not_before = greatest(host.not_before, %(now)b::int8 + host.delay_ms),
    ready_at = greatest(host.ready_at, %(now)b::int8 + host.delay_ms)
WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(shared)b::int8[])

-- name: lock_waiting
-- Locks those that nobody has leased, and that wait for the end of their delay only.
SELECT host.qid FROM host
WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(shared)b::int8[]) AND host.token IS NULL
  AND host.not_before > %(now)b::int8 AND host.blocked_until <= %(now)b::int8
FOR NO KEY UPDATE SKIP LOCKED

-- name: leave_gap
-- Leaves them to clients for a moment when their delay is over: workers would be faster every time.
UPDATE host SET ready_at = greatest(host.ready_at, host.not_before + 1500)
WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(shared)b::int8[])

-- name: put_off_hosts
-- Hosts that cannot be asked now although their own window is open are looked at again after a quarter of a second: a worker leaves a host for its delay only.
UPDATE host SET ready_at = greatest(host.ready_at, %(now)b::int8 + 250)
WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(qid)b::int8[])

-- name: find_due_urls
-- The earliest due URLs of locked hosts that no client holds: at most so many of each host, the earliest first. Says
-- whether the queue has room for a range: it has none that still holds a URL, or one that ends at the same time.
SELECT given.qid, early.crawl, early.url, early.metadata, early.tags, early.lane, early.uid, early.due, early.is_free
FROM unnest(%(qid)b::int8[]) AS given (qid)
CROSS JOIN LATERAL (
    SELECT served.crawl, served.lane, served.is_free, ahead.uid, ahead.due, ahead.url, ahead.metadata, ahead.tags
    FROM (SELECT queue.crawl, queue.lane,
                 CASE WHEN queue.held_until > %(now)b::int8 THEN queue.held_to
                      ELSE -9223372036854775807 END AS held_to,
                 CASE WHEN queue.held_until IS NULL OR queue.held_until <= %(now)b::int8
                           OR queue.held_until = %(held_until)b::int8 THEN true
                      ELSE NOT EXISTS (
                          SELECT FROM url
                          WHERE url.bucket = %(bucket)b::int2 AND url.qid = given.qid AND url.crawl = queue.crawl
                            AND url.lane = queue.lane AND url.due <= queue.held_to
                            AND url.due < 9223372036854775807) END AS is_free
          FROM queue
          WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = given.qid AND queue.active
            AND queue.next_due <= %(now)b::int8
            AND CASE WHEN %(crawl)b::int4 IS NULL THEN queue.crawl <> 2 ELSE queue.crawl = %(crawl)b::int4 END
            AND (%(lanes)b::int4[] IS NULL OR queue.lane = ANY(%(lanes)b::int4[]))) AS served
    CROSS JOIN LATERAL (
        SELECT url.uid, url.due, coalesce(url.spelling, url.url) AS url, url.metadata::text AS metadata, url.tags
        FROM url
        WHERE url.bucket = %(bucket)b::int2 AND url.qid = given.qid AND url.crawl = served.crawl
          AND url.lane = served.lane AND url.due > served.held_to AND url.due <= %(now)b::int8
          AND url.due < 9223372036854775807
        ORDER BY url.due LIMIT %(per_host)b::int4) AS ahead
    ORDER BY ahead.due LIMIT %(per_host)b::int4) AS early

-- name: hold_urls
-- Holds single URLs of locked hosts for a client, in their own rows.
UPDATE url SET due = %(held_until)b::int8, held_until = %(held_until)b::int8
FROM unnest(%(url_qid)b::int8[], %(url_crawl)b::int4[], %(uid)b::int8[]) AS wanted (qid, crawl, uid)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = wanted.qid AND url.crawl = wanted.crawl AND url.uid = wanted.uid
  AND url.due <= %(now)b::int8

-- name: hold_ranges
-- Holds what is due in queues of locked hosts by a time, as a range; and recomputes the queues of these hosts as
-- refresh_queues does.
UPDATE queue
SET next_due = first.due, class = first.class, held_to = first.held_to, held_until = first.held_until
FROM (SELECT given.qid, queue.crawl, queue.lane, held.held_to, held.held_until, least(ahead.due, held.until) AS due,
             CASE WHEN held.until < ahead.due THEN queue.class ELSE coalesce(ahead.class, 0) END AS class
      FROM unnest(%(qid)b::int8[]) AS given (qid)
      JOIN queue ON queue.bucket = %(bucket)b::int2 AND queue.qid = given.qid
      LEFT JOIN unnest(%(range_qid)b::int8[], %(range_crawl)b::int4[], %(range_lane)b::int4[], %(held_to)b::int8[])
           AS new (qid, crawl, lane, held_to)
        ON new.qid = given.qid AND new.crawl = queue.crawl AND new.lane = queue.lane
      CROSS JOIN LATERAL (
          SELECT coalesce(new.held_to, queue.held_to) AS held_to,
                 CASE WHEN new.qid IS NULL THEN queue.held_until ELSE %(held_until)b::int8 END AS held_until,
                 CASE WHEN new.qid IS NOT NULL THEN %(held_until)b::int8
                      WHEN queue.held_until > %(now)b::int8 THEN queue.held_until END AS until) AS held
      CROSS JOIN LATERAL (
          SELECT coalesce(min(near.due), 9223372036854775807) AS due,
                 least(7, floor(8 * max(near.score)
                     FILTER (WHERE near.due <= greatest(%(now)b::int8, near.first))))::int2 AS class
          FROM (SELECT early.due, early.score, min(early.due) OVER () AS first
                FROM (SELECT url.due, url.score FROM url
                      WHERE url.bucket = %(bucket)b::int2 AND url.qid = given.qid AND url.crawl = queue.crawl
                        AND url.lane = queue.lane AND url.due < 9223372036854775807
                        AND url.due > CASE WHEN held.until IS NULL THEN -9223372036854775807 ELSE held.held_to END
                      ORDER BY url.due LIMIT 20) AS early) AS near) AS ahead) AS first
WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = first.qid AND queue.crawl = first.crawl
  AND queue.lane = first.lane
  AND (queue.next_due, queue.class, queue.held_to, queue.held_until)
      IS DISTINCT FROM (first.due, first.class, first.held_to, first.held_until)

-- name: pace_hosts
-- Hosts of which URLs were given out wait for their delay; the others are ready when their queues are.
UPDATE host
SET token = NULL, class = first.class,
    not_before = CASE WHEN first.served THEN greatest(host.not_before, %(now)b::int8 + host.delay_ms)
                      ELSE host.not_before END,
    ready_at = greatest(CASE WHEN first.served THEN greatest(%(asked_at)b::int8 + 1, %(now)b::int8 + host.delay_ms)
                             ELSE 0 END,
                        host.not_before, host.blocked_until, first.due)
FROM (SELECT given.qid, given.served, coalesce(ahead.due, 9223372036854775807) AS due,
             coalesce(ahead.class, 0) AS class
      FROM unnest(%(qid)b::int8[], %(served)b::bool[]) AS given (qid, served)
      CROSS JOIN LATERAL (
          SELECT min(near.next_due) AS due,
                 max(near.class) FILTER (WHERE near.next_due <= greatest(%(now)b::int8, near.first)) AS class
          FROM (SELECT queue.next_due, queue.class, min(queue.next_due) OVER () AS first FROM queue
                WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = given.qid AND queue.active)
               AS near) AS ahead) AS first
WHERE host.bucket = %(bucket)b::int2 AND host.qid = first.qid
