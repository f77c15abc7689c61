-- What of hosts could not be reached. The rules of frontier.sql hold here too.

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
