-- Clients that hold single URLs instead of hosts. The host's row gives the politeness window, the URL carries the
-- hold: its due time is the hold's end, so that workers and clients never work on one URL at a time.
-- Words: a queue may be served when it is active, due, of the crawl that was asked for (of any but `watch`, which is
-- number 2, where none was), in a lane that the service has an interest in, and the client holds fewer than it
-- may of its URLs.

-- name: tell_known
-- Writes what clients tell of URLs that are known by the very text and keep their tags: when they are due, and
-- their metadata. Ends their holds, and keeps the queues' count of open URLs right as `count_settled` does. Returns
-- the positions of those that are known so.
WITH news AS MATERIALIZED (
    SELECT news.*, url.lane, url.due AS due_before
    FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(url)b::text[], %(due)b::int8[],
                %(metadata)b::text[])
         WITH ORDINALITY AS news (qid, crawl, uid, url, due, metadata, place)
    JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = news.qid AND url.crawl = news.crawl
            AND url.uid = news.uid AND url.url = news.url
), counted AS (
    UPDATE queue
    SET open = queue.open + change.open
    FROM (SELECT news.qid, news.crawl, news.lane,
                 count(*) FILTER (WHERE news.due < 9223372036854775807)
                 - count(*) FILTER (WHERE news.due_before < 9223372036854775807) AS open
          FROM news GROUP BY news.qid, news.crawl, news.lane) AS change
    WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = change.qid AND queue.crawl = change.crawl
      AND queue.lane = change.lane AND change.open <> 0
), written AS (
    UPDATE url
    SET due = news.due, held_until = NULL, metadata = news.metadata::jsonb
    FROM news
    WHERE url.bucket = %(bucket)b::int2 AND url.qid = news.qid AND url.crawl = news.crawl AND url.uid = news.uid
)
SELECT news.place FROM news

-- name: update_known
-- Writes what clients tell of URLs that are known: when they are due, and their metadata. Ends their holds.
UPDATE url
SET due = news.due, held_until = NULL, metadata = news.metadata::jsonb
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(due)b::int8[], %(metadata)b::text[])
     AS news (qid, crawl, uid, due, metadata)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = news.qid AND url.crawl = news.crawl AND url.uid = news.uid

-- name: refresh_told_queues
-- As refresh_queues, for queues of which clients told something. Where the next due time is still the same, the
-- class is left: it may be that of a URL that is done now, until the queue is served next.
UPDATE queue
SET next_due = coalesce(first.due, 9223372036854775807), class = coalesce(first.class, 0)
FROM (SELECT host.qid, queue.crawl, queue.lane, ahead.due, ahead.class
      FROM unnest(%(qid)b::int8[]) AS given (qid)
      JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = given.qid
      JOIN queue ON queue.bucket = %(bucket)b::int2 AND queue.qid = given.qid
      LEFT JOIN LATERAL (
          SELECT url.due FROM url
          WHERE url.bucket = %(bucket)b::int2 AND url.qid = given.qid AND url.crawl = queue.crawl
            AND url.lane = queue.lane AND url.due < 9223372036854775807
          ORDER BY url.due LIMIT 1) AS head ON true
      CROSS JOIN LATERAL (
          SELECT min(near.due) AS due,
                 least(7, floor(8 * max(near.score)
                     FILTER (WHERE near.due <= greatest(%(now)b::int8, near.first))))::int2 AS class
          FROM (SELECT early.due, early.score, min(early.due) OVER () AS first
                FROM (SELECT url.due, url.score FROM url
                      WHERE url.bucket = %(bucket)b::int2 AND url.qid = given.qid AND url.crawl = queue.crawl
                        AND url.lane = queue.lane AND url.due < 9223372036854775807
                      ORDER BY url.due LIMIT 20) AS early) AS near) AS ahead
      WHERE queue.next_due <> coalesce(head.due, 9223372036854775807)) AS first
WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = first.qid AND queue.crawl = first.crawl
  AND queue.lane = first.lane
RETURNING queue.qid

-- name: judge_limits
-- Queues with a limit are active until so many of their URLs are done.
UPDATE queue SET active = NOT queue.paused AND queue.known - queue.open < queue.most_done
WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = ANY(%(qid)b::int8[]) AND queue.most_done IS NOT NULL
  AND queue.active <> (NOT queue.paused AND queue.known - queue.open < queue.most_done)
RETURNING queue.qid

-- name: choose_hosts
-- Locks ready hosts with a queue that may be served, class by class. It walks over hosts that are ready but have
-- nothing for this client; hosts that are not ready cost nothing.
SELECT ready.qid, ready.hkey
FROM unnest(%(class)b::int2[], %(slots)b::int4[]) AS probe (class, slots)
CROSS JOIN LATERAL (
    SELECT host.qid, host.hkey FROM host
    WHERE host.bucket = %(bucket)b::int2 AND host.class = probe.class AND host.ready_at <= %(asked_at)b::int8
      AND EXISTS (
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
                    LIMIT %(most_held)b::int4) AS held)))
    ORDER BY host.ready_at, host.qid LIMIT probe.slots
    FOR NO KEY UPDATE OF host SKIP LOCKED) AS ready
LIMIT %(hosts)b::int4

-- name: choose_host
-- The same for one host: locked if it is ready and has a queue that may be served.
SELECT host.qid, host.hkey FROM host
WHERE host.bucket = %(bucket)b::int2 AND host.qid = %(qid)b::int8 AND host.ready_at <= %(asked_at)b::int8
  AND EXISTS (
      SELECT FROM queue
      WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = host.qid AND queue.active
        AND queue.next_due <= %(now)b::int8 AND queue.crawl = %(crawl)b::int4
        AND (%(lanes)b::int4[] IS NULL OR queue.lane = ANY(%(lanes)b::int4[]))
        AND (%(most_held)b::int4 IS NULL OR %(most_held)b::int4 > (
            SELECT count(*) FROM (
                SELECT FROM url
                WHERE url.bucket = %(bucket)b::int2 AND url.qid = queue.qid AND url.crawl = queue.crawl
                  AND url.held_until = url.due AND url.due > %(now)b::int8
                LIMIT %(most_held)b::int4) AS held)))
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

-- name: hold_urls
-- Holds the earliest due URLs of locked hosts for a client: at most so many of each host.
WITH held AS (
    UPDATE url
    SET due = %(held_until)b::int8, held_until = %(held_until)b::int8
    FROM (SELECT given.qid, early.crawl, early.uid, early.due
          FROM unnest(%(qid)b::int8[]) AS given (qid)
          CROSS JOIN LATERAL (
              SELECT queue.crawl, ahead.uid, ahead.due FROM queue
              CROSS JOIN LATERAL (
                  SELECT url.uid, url.due FROM url
                  WHERE url.bucket = %(bucket)b::int2 AND url.qid = given.qid AND url.crawl = queue.crawl
                    AND url.lane = queue.lane AND url.due <= %(now)b::int8 AND url.due < 9223372036854775807
                  ORDER BY url.due LIMIT %(per_host)b::int4) AS ahead
              WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = given.qid AND queue.active
                AND queue.next_due <= %(now)b::int8
                AND CASE WHEN %(crawl)b::int4 IS NULL THEN queue.crawl <> 2 ELSE queue.crawl = %(crawl)b::int4 END
                AND (%(lanes)b::int4[] IS NULL OR queue.lane = ANY(%(lanes)b::int4[]))
              ORDER BY ahead.due LIMIT %(per_host)b::int4) AS early) AS wanted
    WHERE url.bucket = %(bucket)b::int2 AND url.qid = wanted.qid AND url.crawl = wanted.crawl
      AND url.uid = wanted.uid AND url.due <= %(now)b::int8
    RETURNING url.qid, url.crawl, coalesce(url.spelling, url.url) AS url, url.metadata::text AS metadata,
              url.tags, wanted.due
)
SELECT held.qid, held.crawl, held.url, held.metadata, held.tags FROM held ORDER BY held.qid, held.due

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
