-- The statements of the frontier. Three rules hold for all of them (docs/architecture.md, "Scaling"):
-- every reference to host, queue or url names the bucket; "never" is written out where url_due must serve;
-- host rows are locked first, in the order of qid, and only then queue and url rows are changed.

-- name: do_not_sync
-- The end of this transaction is not waited for on the disk. A crash may undo it, whole.
SELECT set_config('synchronous_commit', 'off', true)

-- name: put_hosts
-- Makes hosts known, asleep until one of their URLs is due.
INSERT INTO host (bucket, qid, hkey, delay_ms, ready_at)
SELECT %(bucket)b::int2, new.qid, new.hkey, %(delay_ms)b::int4, 9223372036854775807
FROM unnest(%(qid)b::int8[], %(hkey)b::text[]) AS new (qid, hkey)
ORDER BY new.qid
ON CONFLICT DO NOTHING

-- name: put_queues
-- Makes the queues of crawls on hosts known, with nothing to do yet; those of a paused crawl are paused too.
INSERT INTO queue (bucket, qid, crawl, lane, next_due, active, paused)
SELECT %(bucket)b::int2, new.qid, new.crawl, new.lane, 9223372036854775807,
       crawl.state IS DISTINCT FROM 'paused', crawl.state IS NOT DISTINCT FROM 'paused'
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(lane)b::int4[]) AS new (qid, crawl, lane)
LEFT JOIN crawl ON crawl.crawl = new.crawl
ORDER BY new.qid, new.crawl, new.lane
ON CONFLICT DO NOTHING

-- name: find_known
-- Of the URLs on offer: those not known, the texts by which others are known that differ from the offered
-- one (another spelling of the same URL, or a hash shared by two URLs: the caller tells them apart), and those
-- that are known by a longer way.
SELECT coalesce(array_agg(offered.place) FILTER (WHERE url.uid IS NULL), '{}') AS unknown,
       coalesce(array_agg(offered.place) FILTER (WHERE url.url <> offered.url), '{}') AS differing,
       coalesce(array_agg(url.url) FILTER (WHERE url.url <> offered.url), '{}') AS texts,
       coalesce(array_agg(offered.place) FILTER (WHERE url.depth > offered.depth), '{}') AS deeper
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(url)b::text[], %(depth)b::int2[])
     WITH ORDINALITY AS offered (qid, crawl, uid, url, depth, place)
LEFT JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = offered.qid AND url.crawl = offered.crawl
             AND url.uid = offered.uid

-- name: put_urls
-- Inserts URLs, except where another put was faster. Joined with a queue, that of the first, so that a cluster
-- can push it down (`wake` sees whether all queues are there), and ordered so that two puts of the same URLs never
-- wait for each other in a circle.
INSERT INTO url (bucket, qid, crawl, lane, uid, due, first_seen, score, depth, cut, url, spelling, metadata, tags)
SELECT queue.bucket, new.qid, new.crawl, new.lane, new.uid, new.due, %(now)b::int8, new.score, new.depth, new.cut,
       new.url, new.spelling, new.metadata::jsonb, string_to_array(new.tags, E'\t')
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(lane)b::int4[], %(uid)b::int8[], %(due)b::int8[],
            %(score)b::float8[], %(depth)b::int2[], %(cut)b::int2[], %(url)b::text[], %(spelling)b::text[],
            %(metadata)b::text[], %(tags)b::text[])
     AS new (qid, crawl, lane, uid, due, score, depth, cut, url, spelling, metadata, tags)
JOIN queue ON queue.bucket = %(bucket)b::int2 AND queue.qid = (%(qid)b::int8[])[1]
          AND queue.crawl = (%(crawl)b::int4[])[1] AND queue.lane = (%(lane)b::int4[])[1]
ORDER BY new.qid, new.crawl, new.uid
ON CONFLICT DO NOTHING
RETURNING qid, crawl, uid

-- name: put_new
-- All of this for URLs that are likely to be all new, in one round trip: whether they are. If not, nothing was put.
SELECT put_new(%(bucket)b::int2, %(now)b::int8, %(delay_ms)b::int4, %(durable)b::bool, %(hkey)b::text[],
               %(qid)b::int8[], %(crawl)b::int4[], %(lane)b::int4[], %(uid)b::int8[], %(due)b::int8[],
               %(class)b::int2[], %(score)b::float8[], %(depth)b::int4[], %(cut)b::int4[], %(url)b::text[],
               %(spelling)b::text[], %(metadata)b::text[], %(tags)b::text[])

-- name: lock_hosts
-- Locks hosts, leased or not, before their queues are changed. A statement of its own: the next one then sees
-- what was committed while it waited, so that no wake-up is lost.
SELECT FROM host
WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(qid)b::int8[])
ORDER BY host.qid FOR NO KEY UPDATE

-- name: lower_depths
-- Shorter ways to known URLs. One that was visited, and whose links were cut by depth or followed under a limit
-- (33, tamias.model.cut.BY_DEPTH), is due again; one that is being visited is judged by `settle`.
UPDATE url
SET depth = shorter.depth,
    score = CASE WHEN url.status = 0 THEN greatest(url.score, shorter.score) ELSE url.score END,
    due = CASE WHEN shorter.again THEN %(now)b::int8 ELSE url.due END,
    cut = CASE WHEN shorter.again THEN url.cut | 64 ELSE url.cut END
FROM (SELECT url.qid, url.crawl, url.uid, offered.depth, offered.score,
             url.due = 9223372036854775807 AND url.cut & 33 <> 0 AS again
      FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(depth)b::int2[], %(score)b::float8[])
           AS offered (qid, crawl, uid, depth, score)
      JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = offered.qid AND url.crawl = offered.crawl
              AND url.uid = offered.uid
      WHERE url.depth > offered.depth) AS shorter
WHERE url.bucket = %(bucket)b::int2 AND url.qid = shorter.qid AND url.crawl = shorter.crawl
  AND url.uid = shorter.uid
RETURNING url.qid, url.crawl, url.lane, url.due, url.score, shorter.again, shorter.again

-- name: wake
-- Counts new URLs in their queues, brings the queues' next due time forward, and with it the time at which hosts
-- that are not leased can be leased. Tells how many of the queues there were, and whether URLs came into a range
-- that clients hold.
WITH woken AS (
    UPDATE queue
    SET next_due = least(queue.next_due, new.due),
        class = CASE WHEN new.due > %(now)b::int8 THEN queue.class
                     WHEN queue.next_due <= %(now)b::int8 THEN greatest(queue.class, new.class)
                     ELSE new.class END,
        known = queue.known + new.urls,
        open = queue.open + new.open,
        again = queue.again + new.again
    FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(lane)b::int4[], %(due)b::int8[], %(class)b::int2[],
                %(urls)b::int8[], %(open)b::int8[], %(again)b::int8[])
         AS new (qid, crawl, lane, due, class, urls, open, again)
    WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = new.qid AND queue.crawl = new.crawl
      AND queue.lane = new.lane
    RETURNING queue.qid, queue.active, new.due, new.class,
              coalesce(queue.held_until > %(now)b::int8 AND queue.held_to >= new.due, false) AS is_held
), roused AS (
    UPDATE host
    SET ready_at = least(host.ready_at, greatest(host.not_before, host.blocked_until, new.due)),
        class = CASE WHEN new.due > %(now)b::int8 THEN host.class
                     WHEN host.ready_at <= greatest(host.not_before, host.blocked_until, %(now)b::int8)
                     THEN greatest(host.class, new.class) ELSE new.class END
    FROM (SELECT woken.qid, min(woken.due) AS due, max(woken.class) AS class
          FROM woken WHERE woken.active GROUP BY woken.qid) AS new
    WHERE host.bucket = %(bucket)b::int2 AND host.qid = new.qid AND host.token IS NULL
      AND (host.ready_at > greatest(host.not_before, host.blocked_until, new.due) OR host.class < new.class)
)
SELECT count(*), coalesce(bool_or(woken.is_held), false) FROM woken

-- name: leave_range
-- URLs that are put into a range of due times that clients hold are due right after it: nobody holds them.
UPDATE url SET due = queue.held_to + 1
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS put (qid, crawl, uid)
JOIN queue ON queue.bucket = %(bucket)b::int2 AND queue.qid = put.qid AND queue.crawl = put.crawl
          AND queue.held_until > %(now)b::int8
WHERE url.bucket = %(bucket)b::int2 AND url.qid = put.qid AND url.crawl = put.crawl AND url.uid = put.uid
  AND url.lane = queue.lane AND url.due <= queue.held_to

-- name: lease
-- Lends ready hosts with their best due URLs. Classes are probed one after another: first one slot for a class
-- that changes from call to call, so that nothing starves, then from the highest down; there the host in that
-- slot may be met again, hence one more and GROUP BY. Within a host the best of the first 20 due (a larger
-- choice reads a page for each URL); for one host in eight, chosen by upper bits of the hash since the lower ones
-- are the same for a whole bucket, simply the oldest. A leased host is ready one delay after its lease: the worker
-- may have sent a request a moment before the end.
-- A worker whose ready hosts may have nothing for it, since it serves some crawls only or has an interest, looks for
-- hosts `by_queue`: only lanes whose tags fit, and the contexts that documents wait for. That walks over queues that
-- are due while their hosts are not ready.
WITH wanted AS MATERIALIZED (
    SELECT probe.class, probe.slots, probe.place, named.crawl, lane.lane
    FROM unnest(%(class)b::int2[], %(slots)b::int4[]) WITH ORDINALITY AS probe (class, slots, place)
    CROSS JOIN unnest(coalesce(%(crawls)b::int4[], ARRAY(SELECT crawl.crawl FROM crawl))) AS named (crawl)
    CROSS JOIN lane
    WHERE %(by_queue)b::bool
      AND (lane.tags @> %(require)b::text[] OR lane.tags && ARRAY['kind=context', 'kind=robots'])
      AND NOT lane.tags && %(forbid)b::text[]
    ORDER BY probe.place
), chosen AS MATERIALIZED (
    (SELECT ready.qid, probe.place
     FROM unnest(%(class)b::int2[], %(slots)b::int4[]) WITH ORDINALITY AS probe (class, slots, place)
     CROSS JOIN LATERAL (
         SELECT host.qid FROM host
         WHERE host.bucket = %(bucket)b::int2 AND host.class = probe.class AND host.ready_at <= %(now)b::int8
         ORDER BY host.ready_at, host.qid LIMIT probe.slots
         FOR NO KEY UPDATE OF host SKIP LOCKED) AS ready
     WHERE NOT %(by_queue)b::bool
     LIMIT %(hosts)b::int4 + 1)
    UNION ALL
    (SELECT ready.qid, wanted.place
     FROM wanted CROSS JOIN LATERAL (
         SELECT host.qid FROM queue
         JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = queue.qid
         WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = wanted.crawl AND queue.lane = wanted.lane
           AND queue.class = wanted.class AND queue.next_due <= %(now)b::int8 AND queue.active
           AND host.ready_at <= %(now)b::int8
         ORDER BY queue.next_due, queue.qid LIMIT wanted.slots
         FOR NO KEY UPDATE OF host SKIP LOCKED) AS ready
     LIMIT 2 * %(hosts)b::int4 + 1)
), leased AS (
    UPDATE host
    SET token = %(token)b::int8, lease_end = %(lease_end)b::int8, ready_at = %(lease_end)b::int8 + host.delay_ms,
        not_before = greatest(host.not_before, %(round_end)b::int8)
    FROM (SELECT chosen.qid FROM chosen
          GROUP BY chosen.qid ORDER BY min(chosen.place) LIMIT %(hosts)b::int4) AS wanted
    WHERE host.bucket = %(bucket)b::int2 AND host.qid = wanted.qid AND host.ready_at <= %(now)b::int8
    RETURNING host.qid, host.hkey, host.delay_ms, host.visits, host.earned,
              EXISTS (SELECT FROM unreachable
                      WHERE unreachable.bucket = %(bucket)b::int2 AND unreachable.qid = host.qid) AS unreachable, host.alike,
              (((host.qid >> 32) # %(token)b::int8) & 7) = 0 AS oldest_first
)
SELECT leased.qid, leased.hkey, leased.delay_ms, leased.visits, leased.earned, leased.unreachable, leased.alike,
       task.uid, task.url, task.crawl, task.depth, task.score,
       task.status, task.fails, task.deaths, task.etag, task.last_modified, task.tags, task.cut
FROM leased LEFT JOIN LATERAL (
    SELECT best.* FROM (
        SELECT queue.crawl, queue.lane,
               CASE WHEN queue.held_until > %(now)b::int8 THEN queue.held_to ELSE -9223372036854775807 END AS held_to
        FROM queue
        WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = leased.qid AND queue.active
          AND queue.next_due <= %(now)b::int8
          AND (%(crawls)b::int4[] IS NULL OR queue.crawl = ANY(%(crawls)b::int4[]))
          AND queue.lane = ANY(ARRAY(
              SELECT lane.lane FROM lane
              WHERE (lane.tags @> %(require)b::text[] OR lane.tags && ARRAY['kind=context', 'kind=robots'])
                AND NOT lane.tags && %(forbid)b::text[]))
        ORDER BY CASE WHEN leased.oldest_first THEN 0 ELSE queue.class END DESC, queue.next_due
        LIMIT %(queues)b::int4) AS served
    CROSS JOIN LATERAL (
        SELECT early.* FROM (
            SELECT url.* FROM url
            WHERE url.bucket = %(bucket)b::int2 AND url.qid = leased.qid AND url.crawl = served.crawl
              AND url.lane = served.lane AND url.due > served.held_to AND url.due <= %(now)b::int8
              AND url.due < 9223372036854775807
            ORDER BY url.due
            LIMIT CASE WHEN leased.oldest_first THEN %(per_host)b::int4 ELSE greatest(20, %(per_host)b::int4) END
            ) AS early
        ORDER BY CASE WHEN leased.oldest_first THEN 0 ELSE early.score END DESC, early.due
        LIMIT %(per_host)b::int4) AS best
    ORDER BY CASE WHEN leased.oldest_first THEN 0 ELSE best.score END DESC, best.due
    LIMIT %(per_host)b::int4) AS task ON true

-- name: renew
-- Puts off the end of leases. What does not come back is lost to the worker.
UPDATE host
SET lease_end = %(lease_end)b::int8, ready_at = %(lease_end)b::int8 + host.delay_ms
FROM unnest(%(qid)b::int8[], %(token)b::int8[]) AS held (qid, token)
WHERE host.bucket = %(bucket)b::int2 AND host.qid = held.qid AND host.token = held.token
  AND host.lease_end >= %(now)b::int8
RETURNING host.qid, host.token

-- name: lock_held
-- Locks the hosts whose lease still holds; the others are left out of everything that follows.
SELECT host.qid, host.token FROM host
JOIN unnest(%(qid)b::int8[], %(token)b::int8[]) AS held (qid, token)
  ON host.qid = held.qid AND host.token = held.token
WHERE host.bucket = %(bucket)b::int2
ORDER BY host.qid FOR NO KEY UPDATE OF host

-- name: settle
-- Writes the outcome of tasks, what cut their links (-1 leaves that), and when their URLs are due again: now,
-- where a shorter way was found meanwhile and matters (33 and 64: see `lower_depths`). Keeps the queues' count of
-- open URLs right, also when the same news comes twice.
WITH news AS MATERIALIZED (
    SELECT news.*, url.lane, url.due AS due_before,
           news.due = 9223372036854775807 AND url.depth < news.depth AND news.cut & 33 <> 0 AS again
    FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(due)b::int8[], %(status)b::int2[],
                %(fails)b::int2[], %(etag)b::text[], %(last_modified)b::text[], %(depth)b::int2[],
                %(cut)b::int2[])
         AS news (qid, crawl, uid, due, status, fails, etag, last_modified, depth, cut)
    JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = news.qid AND url.crawl = news.crawl
            AND url.uid = news.uid
), counted AS (
    UPDATE queue
    SET open = queue.open + change.open, again = queue.again + change.again
    FROM (SELECT news.qid, news.crawl, news.lane, count(*) FILTER (WHERE news.again) AS again,
                 count(*) FILTER (WHERE news.again OR news.due < 9223372036854775807)
                 - count(*) FILTER (WHERE news.due_before < 9223372036854775807) AS open
          FROM news GROUP BY news.qid, news.crawl, news.lane) AS change
    WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = change.qid AND queue.crawl = change.crawl
      AND queue.lane = change.lane AND (change.open <> 0 OR change.again <> 0)
)
UPDATE url
SET due = CASE WHEN news.again THEN %(now)b::int8 ELSE news.due END,
    cut = CASE WHEN news.again THEN (news.cut & 191) | 64 WHEN news.cut < 0 THEN url.cut ELSE news.cut END,
    status = news.status, fails = news.fails, etag = news.etag, last_modified = news.last_modified
FROM news
WHERE url.bucket = %(bucket)b::int2 AND url.qid = news.qid AND url.crawl = news.crawl AND url.uid = news.uid

-- name: refresh_queues
-- Recomputes when the queues of hosts have something to do, and how good the best of it is. What clients hold as a
-- range is there to do when the hold ends.
UPDATE queue
SET next_due = first.due, class = first.class
FROM (SELECT host.qid, queue.crawl, queue.lane, least(ahead.due, held.until) AS due,
             CASE WHEN held.until < ahead.due THEN queue.class ELSE coalesce(ahead.class, 0) END AS class
      FROM unnest(%(qid)b::int8[]) AS given (qid)
      JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = given.qid
      JOIN queue ON queue.bucket = %(bucket)b::int2 AND queue.qid = given.qid
      LEFT JOIN LATERAL (
          SELECT queue.held_to AS due, queue.held_until AS until
          WHERE queue.held_until > %(now)b::int8 AND EXISTS (
              SELECT FROM url
              WHERE url.bucket = %(bucket)b::int2 AND url.qid = given.qid AND url.crawl = queue.crawl
                AND url.lane = queue.lane AND url.due <= queue.held_to AND url.due < 9223372036854775807)
          ) AS held ON true
      CROSS JOIN LATERAL (
          SELECT coalesce(min(near.due), 9223372036854775807) AS due,
                 least(7, floor(8 * max(near.score)
                     FILTER (WHERE near.due <= greatest(%(now)b::int8, near.first))))::int2 AS class
          FROM (SELECT early.due, early.score, min(early.due) OVER () AS first
                FROM (SELECT url.due, url.score FROM url
                      WHERE url.bucket = %(bucket)b::int2 AND url.qid = given.qid AND url.crawl = queue.crawl
                        AND url.lane = queue.lane AND url.due > coalesce(held.due, -9223372036854775807)
                        AND url.due < 9223372036854775807
                      ORDER BY url.due LIMIT 20) AS early) AS near) AS ahead) AS first
WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = first.qid AND queue.crawl = first.crawl
  AND queue.lane = first.lane AND (queue.next_due, queue.class) IS DISTINCT FROM (first.due, first.class)
RETURNING queue.qid

-- name: write_alike
-- Pages of hosts that are alike, as counted now. The hosts are locked before.
UPDATE host SET alike = news.alike
FROM unnest(%(qid)b::int8[], %(alike)b::bytea[]) AS news (qid, alike)
WHERE host.bucket = %(bucket)b::int2 AND host.qid = news.qid

-- name: release_hosts
-- Ends leases: the delay runs from now if a request was sent, and the host is ready when its queues are.
UPDATE host
SET token = NULL,
    delay_ms = first.delay_ms,
    blocked_until = first.blocked_until,
    not_before = greatest(host.not_before, first.touched_at + first.delay_ms),
    ready_at = greatest(host.not_before, first.touched_at + first.delay_ms, first.blocked_until, first.due),
    class = first.class,
    visits = host.visits + first.visits,
    earned = host.earned + first.earned
FROM (SELECT held.qid, held.token, held.visits, held.earned, coalesce(held.delay_ms, host.delay_ms) AS delay_ms,
             greatest(host.blocked_until, held.blocked_until) AS blocked_until,
             CASE WHEN held.touched THEN %(now)b::int8 END AS touched_at,
             coalesce(ahead.due, 9223372036854775807) AS due, coalesce(ahead.class, 0) AS class
      FROM unnest(%(qid)b::int8[], %(token)b::int8[], %(delay_ms)b::int4[], %(blocked_until)b::int8[],
                  %(touched)b::bool[], %(visits)b::int8[], %(earned)b::float8[])
           AS held (qid, token, delay_ms, blocked_until, touched, visits, earned)
      JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = held.qid
      CROSS JOIN LATERAL (
          SELECT min(near.next_due) AS due,
                 max(near.class) FILTER (WHERE near.next_due <= greatest(%(now)b::int8, near.first)) AS class
          FROM (SELECT queue.next_due, queue.class, min(queue.next_due) OVER () AS first FROM queue
                WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = held.qid AND queue.active)
               AS near) AS ahead) AS first
WHERE host.bucket = %(bucket)b::int2 AND host.qid = first.qid AND host.token = first.token

-- name: refresh_hosts
-- Recomputes when hosts that are not leased can be leased (repair).
UPDATE host
SET token = NULL, ready_at = greatest(host.not_before, host.blocked_until, first.due), class = first.class
FROM (SELECT given.qid, coalesce(ahead.due, 9223372036854775807) AS due, coalesce(ahead.class, 0) AS class
      FROM unnest(%(qid)b::int8[]) AS given (qid)
      CROSS JOIN LATERAL (
          SELECT min(near.next_due) AS due,
                 max(near.class) FILTER (WHERE near.next_due <= greatest(%(now)b::int8, near.first)) AS class
          FROM (SELECT queue.next_due, queue.class, min(queue.next_due) OVER () AS first FROM queue
                WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = given.qid AND queue.active)
               AS near) AS ahead) AS first
WHERE host.bucket = %(bucket)b::int2 AND host.qid = first.qid
  AND (host.token IS NULL OR host.lease_end + host.delay_ms < %(now)b::int8)
RETURNING host.qid

-- name: find_sleepers
-- Hosts that sleep although something of theirs is due earlier (repair; finds none when all is well).
SELECT host.qid FROM host
CROSS JOIN LATERAL (
    SELECT min(least(queue.next_due, ahead.due)) AS due, bool_or(ahead.due < queue.next_due) AS stale
    FROM queue CROSS JOIN LATERAL (
        SELECT min(url.due) AS due FROM url
        WHERE url.bucket = %(bucket)b::int2 AND url.qid = host.qid AND url.crawl = queue.crawl
          AND url.lane = queue.lane AND url.due < 9223372036854775807
          AND url.due > CASE WHEN queue.held_until > %(now)b::int8 THEN queue.held_to
                             ELSE -9223372036854775807 END) AS ahead
    WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = host.qid AND queue.active) AS first
WHERE host.bucket = %(bucket)b::int2 AND (host.token IS NULL OR host.lease_end + host.delay_ms < %(now)b::int8)
  AND (first.stale OR host.ready_at > greatest(host.not_before, host.blocked_until, first.due))

-- name: held_by
-- The leases of workers, by the workers' numbers.
SELECT host.qid, host.token, host.delay_ms FROM host
WHERE host.bucket = %(bucket)b::int2 AND host.token IS NOT NULL AND (host.token >> 32) = ANY(%(workers)b::int8[])

-- name: host_figures
-- Hosts of a bucket: all, leased, ready.
SELECT count(*), count(*) FILTER (WHERE host.token IS NOT NULL AND host.lease_end >= %(now)b::int8),
       count(*) FILTER (WHERE host.ready_at <= %(now)b::int8)
FROM host WHERE host.bucket = %(bucket)b::int2

-- name: crawl_figures
-- What each crawl has in a bucket, in the lanes that an interest fits, and when its next host can be leased.
SELECT queue.crawl, sum(queue.known)::int8, sum(queue.open)::int8, count(DISTINCT queue.qid),
       count(DISTINCT queue.qid)
           FILTER (WHERE queue.open > 0 AND host.token IS NOT NULL AND host.lease_end >= %(now)b::int8),
       min(greatest(queue.next_due, host.ready_at)) FILTER (WHERE queue.open > 0 AND queue.active),
       min(queue.next_due) FILTER (WHERE queue.open > 0 AND queue.active), sum(queue.again)::int8
FROM queue JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = queue.qid
WHERE queue.bucket = %(bucket)b::int2
  AND (%(require)b::text[] IS NULL OR queue.lane = ANY(ARRAY(
      SELECT lane.lane FROM lane
      WHERE (lane.tags @> %(require)b::text[] OR lane.tags && ARRAY['kind=context', 'kind=robots'])
        AND NOT lane.tags && %(forbid)b::text[])))
GROUP BY queue.crawl

-- name: count_death
-- A worker died while it analysed this document.
UPDATE url SET deaths = least(url.deaths + 1, 1000)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = %(qid)b::int8 AND url.crawl = %(crawl)b::int4
  AND url.uid = %(uid)b::int8

-- name: find_put_off
-- Whether a URL is still put off until a time that is to come: then nobody has been lent it since.
SELECT FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.qid = %(qid)b::int8 AND url.crawl = %(crawl)b::int4
  AND url.uid = %(uid)b::int8 AND url.due = %(until)b::int8 AND url.due > %(now)b::int8

-- name: put_off_further
-- Puts such a URL off until later. Its queue may be looked at in vain before.
UPDATE url SET due = %(until)b::int8
WHERE url.bucket = %(bucket)b::int2 AND url.qid = %(qid)b::int8 AND url.crawl = %(crawl)b::int4
  AND url.uid = %(uid)b::int8 AND url.due = %(before)b::int8 AND url.due > %(now)b::int8

-- name: credit_hosts
-- Visits that the links of other hosts have earned.
UPDATE host SET earned = host.earned + news.earned
FROM unnest(%(qid)b::int8[], %(earned)b::float8[]) AS news (qid, earned)
WHERE host.bucket = %(bucket)b::int2 AND host.qid = news.qid

-- name: judge_limits
-- Queues with a limit are active until so many of their URLs are done.
UPDATE queue SET active = NOT queue.paused AND queue.known - queue.open < queue.most_done
WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = ANY(%(qid)b::int8[]) AND queue.most_done IS NOT NULL
  AND queue.active <> (NOT queue.paused AND queue.known - queue.open < queue.most_done)
RETURNING queue.qid

-- name: tell_known
-- Writes what clients say of known URLs, of all or of those known by the `exact` text: when they are due, and their
-- metadata. Ends their holds, and keeps the queues' count of open URLs right. Returns the positions of those that are
-- known so, and of those whose queues have to be looked at: they have a limit, or another next due time. They have
-- none where the URL was in a range that is held, or not the first.
WITH news AS MATERIALIZED (
    SELECT news.*, url.lane, url.due AS due_before
    FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(url)b::text[], %(due)b::int8[],
                %(metadata)b::text[])
         WITH ORDINALITY AS news (qid, crawl, uid, url, due, metadata, place)
    JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = news.qid AND url.crawl = news.crawl
            AND url.uid = news.uid AND (url.url = news.url OR NOT %(exact)b::bool)
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
SELECT coalesce(array_agg(news.place), '{}') AS told,
       coalesce(array_agg(news.place) FILTER (WHERE
           queue.most_done IS NOT NULL OR news.due < queue.next_due
           OR news.due_before <= CASE WHEN queue.held_until > %(now)b::int8 AND news.due_before <= queue.held_to
                                      THEN -9223372036854775807 ELSE queue.next_due END), '{}') AS affected
FROM news JOIN queue ON queue.bucket = %(bucket)b::int2 AND queue.qid = news.qid AND queue.crawl = news.crawl
                    AND queue.lane = news.lane

-- name: write_ranges
-- Ranges of locked hosts become holds in the rows of the URLs, which then may go to other queues.
WITH range AS (
    UPDATE queue SET held_to = NULL, held_until = NULL
    FROM (SELECT queue.qid, queue.crawl, queue.lane, queue.held_to, queue.held_until FROM queue
          WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = ANY(%(qid)b::int8[]) AND queue.held_to IS NOT NULL)
         AS before
    WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = before.qid AND queue.crawl = before.crawl
      AND queue.lane = before.lane
    RETURNING before.qid, before.crawl, before.lane, before.held_to, before.held_until
)
UPDATE url SET due = range.held_until, held_until = range.held_until
FROM range
WHERE url.bucket = %(bucket)b::int2 AND url.qid = range.qid AND url.crawl = range.crawl AND url.lane = range.lane
  AND url.due <= range.held_to AND url.due < 9223372036854775807

-- name: read_unreachable
-- Of hosts that were just leased.
SELECT unreachable.qid, unreachable.authority, unreachable.since, unreachable.tries, unreachable.next_at,
       unreachable.reason, unreachable.given_up
FROM unreachable
WHERE unreachable.bucket = %(bucket)b::int2 AND unreachable.qid = ANY(%(qid)b::int8[])

-- name: write_unreachable
-- The latest try counts.
INSERT INTO unreachable (bucket, qid, authority, since, tries, next_at, reason, given_up)
SELECT %(bucket)b::int2, new.*
FROM unnest(%(qid)b::int8[], %(authority)b::text[], %(since)b::int8[], %(tries)b::int2[], %(next_at)b::int8[],
            %(reason)b::text[], %(given_up)b::bool[]) AS new
ON CONFLICT (bucket, qid, authority) DO UPDATE
SET since = excluded.since, tries = excluded.tries, next_at = excluded.next_at, reason = excluded.reason,
    given_up = excluded.given_up

-- name: clear_reached
-- Somebody answered there.
DELETE FROM unreachable
USING unnest(%(qid)b::int8[], %(authority)b::text[]) AS reached (qid, authority)
WHERE unreachable.bucket = %(bucket)b::int2 AND unreachable.qid = reached.qid
  AND unreachable.authority = reached.authority

-- name: defer_urls
-- All URLs of what cannot be reached wait for the next try, so that they are not lent one after another before.
UPDATE url SET due = later.next_at
FROM unnest(%(qid)b::int8[], %(authority)b::text[], %(next_at)b::int8[], %(given_up)b::bool[])
     AS later (qid, authority, next_at, given_up)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = later.qid AND url.due < later.next_at
  AND url.due < 9223372036854775807 AND NOT later.given_up AND starts_with(url.url, later.authority || '/')

-- name: fail_urls
-- What was never requested fails with the place that is given up, at once instead of lease by lease: a document may
-- name any number of URLs of a host that is not there. Seeds, what is watched (2) and what others wait for are
-- lent, to be recorded each by itself.
WITH failed AS (
    UPDATE url SET due = 9223372036854775807, status = 5
    FROM (SELECT known.qid, known.crawl, known.uid
          FROM unnest(%(qid)b::int8[], %(authority)b::text[], %(given_up)b::bool[]) AS lost (qid, authority, given_up)
          JOIN url AS known ON known.bucket = %(bucket)b::int2 AND known.qid = lost.qid
          WHERE lost.given_up AND known.due < 9223372036854775807 AND known.status = 0 AND known.fails = 0
            AND known.depth > 0 AND known.crawl <> 2 AND known.held_until IS NULL
            AND NOT EXISTS (SELECT FROM queue WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = known.qid
                AND queue.crawl = known.crawl AND queue.lane = known.lane AND queue.held_to >= known.due)
            AND NOT EXISTS (SELECT FROM unnest(known.tags) AS tag WHERE starts_with(tag, 'kind='))
            AND starts_with(known.url, lost.authority || '/')
          LIMIT 20000) AS lost
    WHERE url.bucket = %(bucket)b::int2 AND url.qid = lost.qid AND url.crawl = lost.crawl AND url.uid = lost.uid
    RETURNING url.qid, url.crawl, url.lane
)
UPDATE queue SET open = queue.open - gone.urls
FROM (SELECT failed.qid, failed.crawl, failed.lane, count(*) AS urls FROM failed
      GROUP BY failed.qid, failed.crawl, failed.lane) AS gone
WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = gone.qid AND queue.crawl = gone.crawl
  AND queue.lane = gone.lane

-- name: find_deferred
-- Hosts with something that waits for a later try.
SELECT DISTINCT unreachable.qid FROM unreachable
WHERE unreachable.bucket = %(bucket)b::int2 AND NOT unreachable.given_up AND unreachable.next_at > %(now)b::int8

-- name: resume_urls
-- A new run does not wait: what was deferred is due now.
UPDATE url SET due = %(now)b::int8
FROM unreachable
WHERE url.bucket = %(bucket)b::int2 AND unreachable.bucket = %(bucket)b::int2 AND url.qid = unreachable.qid
  AND url.qid = ANY(%(qid)b::int8[]) AND url.due = unreachable.next_at AND NOT unreachable.given_up

-- name: resume_hosts
-- The same for what is known of the hosts.
UPDATE unreachable SET next_at = %(now)b::int8
WHERE unreachable.bucket = %(bucket)b::int2 AND unreachable.qid = ANY(%(qid)b::int8[])
  AND NOT unreachable.given_up

-- name: deferred
-- What URLs of a crawl still wait for, with the reason of the last try.
SELECT unreachable.authority, unreachable.since, unreachable.reason FROM unreachable
WHERE unreachable.bucket = %(bucket)b::int2 AND NOT unreachable.given_up
  AND EXISTS (SELECT FROM queue WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = unreachable.qid
              AND queue.crawl = %(crawl)b::int4 AND queue.open > 0)
ORDER BY unreachable.authority

-- name: one_lease_at_a_time
-- Leases are made one after another, so that each sees the others.
SELECT pg_advisory_xact_lock(7413, 0)

-- name: write_addresses
-- The addresses that hosts are about to be asked at.
UPDATE host SET address = lent.address
FROM unnest(%(qid)b::int8[], %(address)b::text[]) AS lent (qid, address)
WHERE host.bucket = %(bucket)b::int2 AND host.qid = lent.qid AND host.token = %(token)b::int8
  AND host.address IS DISTINCT FROM lent.address

-- name: count_lent
-- How many hosts of addresses are lent now, but for those of one lease.
SELECT host.address, count(*) FROM host
WHERE host.bucket = %(bucket)b::int2 AND host.address = ANY(%(address)b::text[])
  AND host.token IS NOT NULL AND host.token <> %(token)b::int8 AND host.lease_end >= %(now)b::int8
GROUP BY host.address

-- name: put_back
-- Hosts that were lent and not touched are ready again a little later.
UPDATE host
SET token = NULL, not_before = %(now)b::int8, ready_at = greatest(host.blocked_until, %(later)b::int8)
WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(qid)b::int8[]) AND host.token = %(token)b::int8
