-- Due times that change other than by a put or a finish. The rules of frontier.sql hold; hosts are locked before. New
-- URLs of a crawl with a budget wait (due 9223372036854775806) until their share is released, best first.

-- name: forget_answers
-- Nothing is known of what these URLs answered: their next visit asks for all, and reads it.
UPDATE url SET status = 0, etag = NULL, last_modified = NULL
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS wanted (qid, crawl, uid)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = wanted.qid AND url.crawl = wanted.crawl AND url.uid = wanted.uid

-- name: make_urls_due
-- Makes known URLs due now, except those that are due already or that a client holds.
UPDATE url
SET due = %(now)b::int8
FROM (SELECT url.qid, url.crawl, url.uid, url.due
      FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS wanted (qid, crawl, uid)
      JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = wanted.qid AND url.crawl = wanted.crawl
              AND url.uid = wanted.uid
      WHERE url.due > %(now)b::int8 AND (url.held_until IS NULL OR url.held_until <> url.due)) AS later
WHERE url.bucket = %(bucket)b::int2 AND url.qid = later.qid AND url.crawl = later.crawl AND url.uid = later.uid
  AND url.due = later.due
RETURNING url.qid, url.crawl, url.lane, url.due, url.score, later.due = 9223372036854775807, false

-- name: retire_urls
-- Makes URLs due never; what is being visited at this moment is settled by its visit.
UPDATE url
SET due = 9223372036854775807
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS unwanted (qid, crawl, uid)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = unwanted.qid AND url.crawl = unwanted.crawl
  AND url.uid = unwanted.uid AND url.due < 9223372036854775807
RETURNING url.qid, url.crawl, url.lane

-- name: count_retired
-- Takes them out of the count of open URLs.
UPDATE queue SET open = queue.open - retired.urls
FROM (SELECT each.qid, each.crawl, each.lane, count(*) AS urls
      FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(lane)b::int4[]) AS each (qid, crawl, lane)
      GROUP BY each.qid, each.crawl, each.lane) AS retired
WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = retired.qid AND queue.crawl = retired.crawl
  AND queue.lane = retired.lane

-- name: find_cut
-- A page of the URLs of a crawl that are done with, of which something was cut for one of these reasons.
SELECT url.qid, url.uid FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775807
  AND url.cut & %(reasons)b::int2 <> 0 AND (url.qid, url.uid) > (%(after_qid)b::int8, %(after_uid)b::int8)
ORDER BY url.qid, url.uid LIMIT %(page)b::int4

-- name: reopen_urls
-- Makes URLs due now that are done with; `bits` of tamias.model.cut say that they are to be read once more, whatever
-- their servers say. The hosts are locked before.
UPDATE url
SET due = %(now)b::int8, cut = url.cut | %(bits)b::int2
FROM unnest(%(qid)b::int8[], %(uid)b::int8[]) AS wanted (qid, uid)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = wanted.qid AND url.crawl = %(crawl)b::int4
  AND url.uid = wanted.uid AND url.due = 9223372036854775807
RETURNING url.qid, url.crawl, url.lane, url.due, url.score, true, true

-- name: count_cut
-- On how many hosts `find_cut` finds URLs, and how many. Reads all URLs of the crawl: for its end, and a dry run.
SELECT count(DISTINCT url.qid), count(*) FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775807
  AND url.cut & %(reasons)b::int2 <> 0

-- part: visited_so
-- URLs of a crawl that are done with, by how their latest visit ended; what is null matches all.
FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775807
  AND url.status <> 0 AND (%(outcome)b::int2 IS NULL OR url.status = %(outcome)b::int2)
  AND (%(match)b::text IS NULL OR url.url ~ %(match)b::text)
  AND (%(reason)b::text IS NULL OR strpos(
      (SELECT capture.reason FROM capture
       WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = url.qid AND capture.crawl = url.crawl
         AND capture.uid = url.uid
       ORDER BY capture.capture DESC LIMIT 1), %(reason)b::text) > 0)
  AND (%(media_type)b::text IS NULL OR EXISTS (
      SELECT FROM capture
      WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = url.qid AND capture.crawl = url.crawl
        AND capture.uid = url.uid AND capture.found_type ~ %(media_type)b::text))
  AND NOT coalesce(url.tags && ARRAY['kind=probe', 'kind=context', 'kind=robots'], false)

-- name: count_by_visit
-- How many `find_by_visit` finds on all pages.
SELECT count(*) {visited_so}

-- name: find_by_visit
-- A page of such URLs, after a given one.
SELECT url.qid, url.uid {visited_so}
  AND (url.qid, url.uid) > (%(after_qid)b::int8, %(after_uid)b::int8)
ORDER BY url.qid, url.uid LIMIT %(page)b::int4

-- name: find_waiting
-- The best of those that wait in a bucket.
SELECT url.qid, url.uid, url.score FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775806
ORDER BY url.score DESC LIMIT %(most)b::int4

-- name: count_waiting
-- How many wait, as far as it matters.
SELECT count(*) FROM (
    SELECT FROM url
    WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775806
    LIMIT %(most)b::int4) AS waiting

-- name: find_first_visit
-- Whether a URL of a bucket is due that was never visited.
SELECT FROM queue JOIN url
  ON url.bucket = %(bucket)b::int2 AND url.qid = queue.qid AND url.crawl = queue.crawl AND url.lane = queue.lane
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4 AND queue.active
  AND queue.next_due <= %(now)b::int8 AND url.due <= %(now)b::int8 AND url.status = 0
LIMIT 1

-- name: release
-- They are due now. The hosts are locked before.
UPDATE url SET due = %(now)b::int8
FROM unnest(%(qid)b::int8[], %(uid)b::int8[]) AS chosen (qid, uid)
WHERE url.bucket = %(bucket)b::int2 AND url.qid = chosen.qid AND url.crawl = %(crawl)b::int4
  AND url.uid = chosen.uid AND url.due = 9223372036854775806
RETURNING url.qid, url.crawl, url.lane, url.due, url.score, false, false

-- name: count_far_times
-- How many hosts have such a lease or wait, how many URLs such a visit, and how many records such a time;
-- 9223372036854775806 is no time.
SELECT (SELECT count(*) FROM host WHERE host.bucket = %(bucket)b::int2
        AND greatest(host.lease_end, host.not_before, host.blocked_until) > %(soon)b::int8),
       (SELECT count(*) FROM url WHERE url.bucket = %(bucket)b::int2
        AND url.due > %(late)b::int8 AND url.due < 9223372036854775806),
       (SELECT count(*) FROM current_document AS known
        WHERE known.bucket = %(bucket)b::int2 AND known.started_at > %(soon)b::int8)
       + (SELECT count(*) FROM outbox WHERE outbox.bucket = %(bucket)b::int2 AND outbox.started_at > %(soon)b::int8)
       + (SELECT count(*) FROM robots WHERE robots.bucket = %(bucket)b::int2 AND robots.expires_at > %(soon)b::int8)

-- name: find_far_hosts
-- The hosts of such leases, waits and visits.
SELECT host.qid FROM host WHERE host.bucket = %(bucket)b::int2
AND greatest(host.lease_end, host.not_before, host.blocked_until) > %(soon)b::int8
UNION
SELECT url.qid FROM url WHERE url.bucket = %(bucket)b::int2
AND url.due > %(late)b::int8 AND url.due < 9223372036854775806

-- name: end_far_leases
-- The leases and waits of locked hosts are over.
UPDATE host
SET lease_end = least(host.lease_end, %(now)b::int8 - host.delay_ms - 1),
    not_before = least(host.not_before, %(now)b::int8), blocked_until = least(host.blocked_until, %(now)b::int8)
WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(qid)b::int8[])
  AND greatest(host.lease_end, host.not_before, host.blocked_until) > %(soon)b::int8

-- name: advance_far_visits
-- The URLs of locked hosts are due now.
UPDATE url SET due = %(now)b::int8
WHERE url.bucket = %(bucket)b::int2 AND url.qid = ANY(%(qid)b::int8[])
  AND url.due > %(late)b::int8 AND url.due < 9223372036854775806

-- name: mend_far_records
-- The next reading of a document counts, what waits for a sink is delivered, robots.txt is fetched again, and
-- continuous crawls are granted visits.
WITH held AS (UPDATE current_document AS known SET started_at = %(now)b::int8
              WHERE known.bucket = %(bucket)b::int2 AND known.started_at > %(soon)b::int8),
rules AS (UPDATE robots SET expires_at = %(now)b::int8
          WHERE robots.bucket = %(bucket)b::int2 AND robots.expires_at > %(soon)b::int8),
budgets AS (UPDATE visit_budget SET at = %(now)b::int8, released_at = %(now)b::int8
            WHERE visit_budget.at > %(soon)b::int8)
UPDATE outbox SET started_at = %(now)b::int8,
                  due = CASE outbox.due WHEN 9223372036854775807 THEN outbox.due ELSE %(now)b::int8 END
WHERE outbox.bucket = %(bucket)b::int2 AND outbox.started_at > %(soon)b::int8
