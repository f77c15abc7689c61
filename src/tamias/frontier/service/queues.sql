-- Queues steered and looked at by hand: pauses, delays, limits, lists, counts, removal.

-- name: set_pause
-- A host is not to be asked before this time; 0 ends a pause.
UPDATE host SET blocked_until = %(until)b::int8
WHERE host.bucket = %(bucket)b::int2 AND host.qid = %(qid)b::int8

-- name: set_delay
-- The delay of one host, from now on. A pause of the old length that is under way gets the new one.
UPDATE host
SET delay_ms = %(delay_ms)b::int4, delay_set = true,
    not_before = CASE WHEN host.not_before > %(now)b::int8
                      THEN greatest(0, host.not_before - host.delay_ms + %(delay_ms)b::int4)
                      ELSE host.not_before END
WHERE host.bucket = %(bucket)b::int2 AND host.qid = %(qid)b::int8

-- name: forget_politeness
-- Hosts that no queue is left of are as new. Those that Tamias asks too wait for one usual delay at most, and stay
-- blocked: that may be the operator's word.
UPDATE host
SET delay_ms = %(delay_ms)b::int4, delay_set = false,
    blocked_until = CASE WHEN %(shared)b::bool THEN host.blocked_until ELSE 0 END,
    not_before = CASE WHEN %(shared)b::bool
                      THEN least(host.not_before, %(now)b::int8 + %(delay_ms)b::int4) ELSE 0 END
WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(qid)b::int8[]) AND host.token IS NULL
  AND NOT EXISTS (SELECT FROM queue WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = host.qid)

-- name: find_undelayed
-- Hosts whose delay is the usual one, in the order in which they are locked.
SELECT host.qid FROM host
WHERE host.bucket = %(bucket)b::int2 AND host.qid > %(after)b::int8 AND NOT host.delay_set
  AND host.delay_ms = %(usual_ms)b::int4
ORDER BY host.qid LIMIT %(limit)b::int4

-- name: set_delays
-- Gives hosts whose delay is the usual one another.
UPDATE host SET delay_ms = %(delay_ms)b::int4
WHERE host.bucket = %(bucket)b::int2 AND host.qid = ANY(%(qid)b::int8[]) AND NOT host.delay_set

-- name: set_limit
-- A queue is served until so many of its URLs are done; null takes the limit away.
UPDATE queue
SET most_done = %(limit)b::int8,
    active = NOT queue.paused
             AND (%(limit)b::int8 IS NULL OR queue.known - queue.open < %(limit)b::int8)
WHERE queue.bucket = %(bucket)b::int2 AND queue.qid = %(qid)b::int8 AND queue.crawl = %(crawl)b::int4
RETURNING queue.qid

-- name: crawls_here
-- The crawls that have queues in a bucket.
SELECT DISTINCT queue.crawl FROM queue WHERE queue.bucket = %(bucket)b::int2

-- name: count_queues
-- How many queues of a crawl a list has; the busy ones have something scheduled and are not paused.
SELECT count(DISTINCT queue.qid)
FROM queue JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = queue.qid
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4
  AND (NOT %(busy)b::bool OR (queue.open > 0 AND host.blocked_until <= %(now)b::int8))

-- name: list_queues
-- A page of the queues of a crawl.
SELECT DISTINCT ON (queue.qid) host.hkey
FROM queue JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = queue.qid
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4
  AND (NOT %(busy)b::bool OR (queue.open > 0 AND host.blocked_until <= %(now)b::int8))
ORDER BY queue.qid OFFSET %(start)b::int8 LIMIT %(size)b::int8

-- name: queue_figures
-- What a queue, or all queues of a crawl, hold: scheduled, done, queues, queues with something scheduled.
SELECT coalesce(sum(queue.open), 0)::int8, coalesce(sum(queue.known - queue.open), 0)::int8,
       count(DISTINCT queue.qid), count(DISTINCT queue.qid) FILTER (WHERE queue.open > 0)
FROM queue
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4
  AND (%(qid)b::int8 IS NULL OR queue.qid = %(qid)b::int8)

-- name: count_held
-- How many URLs of a queue, or of a crawl, clients hold now.
SELECT (SELECT count(*) FROM url
        WHERE url.bucket = %(bucket)b::int2 AND url.held_until = url.due AND url.due > %(now)b::int8
          AND url.crawl = %(crawl)b::int4 AND (%(qid)b::int8 IS NULL OR url.qid = %(qid)b::int8))
     + (SELECT count(*) FROM queue JOIN url
          ON url.bucket = %(bucket)b::int2 AND url.qid = queue.qid AND url.crawl = queue.crawl
         AND url.lane = queue.lane AND url.due <= queue.held_to AND url.due < 9223372036854775807
        WHERE queue.bucket = %(bucket)b::int2 AND queue.held_until > %(now)b::int8
          AND queue.crawl = %(crawl)b::int4 AND (%(qid)b::int8 IS NULL OR queue.qid = %(qid)b::int8))

-- name: url_status
-- One URL by its number: when it is due, since when it is known, its metadata and tags.
SELECT coalesce(url.spelling, url.url),
       CASE WHEN queue.held_until > %(now)b::int8 AND url.due <= queue.held_to THEN queue.held_until
            ELSE url.due END,
       url.first_seen, url.metadata::text, url.tags, url.url
FROM url LEFT JOIN queue ON queue.bucket = %(bucket)b::int2 AND queue.qid = url.qid AND queue.crawl = url.crawl
                        AND queue.lane = url.lane
WHERE url.bucket = %(bucket)b::int2 AND url.qid = %(qid)b::int8 AND url.crawl = %(crawl)b::int4
  AND url.uid = %(uid)b::int8

-- name: list_urls
-- A page of the URLs of a crawl or of one queue, in the order of their rows, after a given row.
SELECT url.qid, url.uid, host.hkey, coalesce(url.spelling, url.url),
       CASE WHEN queue.held_until > %(now)b::int8 AND url.due <= queue.held_to THEN queue.held_until
            ELSE url.due END,
       url.first_seen, url.metadata::text, url.tags
FROM url JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = url.qid
LEFT JOIN queue ON queue.bucket = %(bucket)b::int2 AND queue.qid = url.qid AND queue.crawl = url.crawl
               AND queue.lane = url.lane
WHERE url.bucket = %(bucket)b::int2
  AND (url.qid, url.crawl, url.uid) > (%(after_qid)b::int8, %(crawl)b::int4, %(after_uid)b::int8)
  AND url.crawl = %(crawl)b::int4 AND (%(qid)b::int8 IS NULL OR url.qid = %(qid)b::int8)
  AND (%(part)b::text IS NULL
       OR CASE WHEN %(any_case)b::bool
               THEN strpos(lower(coalesce(url.spelling, url.url)), lower(%(part)b::text)) > 0
               ELSE strpos(coalesce(url.spelling, url.url), %(part)b::text) > 0 END)
ORDER BY url.qid, url.crawl, url.uid OFFSET %(start)b::int8 LIMIT %(size)b::int8

-- name: count_urls
-- How many URLs of a crawl or of one queue contain a text.
SELECT count(*) FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4
  AND (%(qid)b::int8 IS NULL OR url.qid = %(qid)b::int8)
  AND CASE WHEN %(any_case)b::bool
           THEN strpos(lower(coalesce(url.spelling, url.url)), lower(%(part)b::text)) > 0
           ELSE strpos(coalesce(url.spelling, url.url), %(part)b::text) > 0 END

-- name: some_queues
-- Queues of a crawl after a given one, to be worked on one after another.
SELECT DISTINCT queue.qid FROM queue
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4 AND queue.qid > %(after)b::int8
ORDER BY queue.qid LIMIT %(limit)b::int4

-- name: delete_urls
-- Removes the URLs of queues whose hosts are locked.
DELETE FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.qid = ANY(%(qid)b::int8[])

-- name: delete_queues
-- Removes queues whose hosts are locked.
DELETE FROM queue
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4 AND queue.qid = ANY(%(qid)b::int8[])

-- name: purge_urls
-- Removes URLs that are known for longer than since a given time, except those that were told of meanwhile.
DELETE FROM url
USING (SELECT url.qid, url.uid, url.due FROM url
       WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.qid = ANY(%(qid)b::int8[])
         AND url.first_seen < %(before)b::int8) AS old
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.qid = old.qid AND url.uid = old.uid
  AND url.due = old.due
RETURNING url.qid, url.lane, old.due < 9223372036854775807

-- name: count_purged
-- Takes removed URLs out of their queues' counts.
UPDATE queue SET known = queue.known - gone.urls, open = queue.open - gone.open
FROM unnest(%(qid)b::int8[], %(lane)b::int4[], %(urls)b::int8[], %(open)b::int8[]) AS gone (qid, lane, urls, open)
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4 AND queue.qid = gone.qid
  AND queue.lane = gone.lane

-- name: forget_revisits
-- Removes the plans of visits of queues whose URLs are gone.
DELETE FROM revisit
WHERE revisit.bucket = %(bucket)b::int2 AND revisit.crawl = %(crawl)b::int4 AND revisit.qid = ANY(%(qid)b::int8[])
  AND NOT EXISTS (SELECT FROM url WHERE url.bucket = %(bucket)b::int2 AND url.qid = revisit.qid
                  AND url.crawl = revisit.crawl AND url.uid = revisit.uid)


-- name: forget_links
-- Removes the links to URLs of queues whose URLs are gone.
DELETE FROM link
WHERE link.bucket = %(bucket)b::int2 AND link.crawl = %(crawl)b::int4 AND link.qid = ANY(%(qid)b::int8[])
  AND NOT EXISTS (SELECT FROM url WHERE url.bucket = %(bucket)b::int2 AND url.qid = link.qid
                  AND url.crawl = link.crawl AND url.uid = link.uid)


-- name: forget_tagged
-- Removes who set the tags of URLs of queues whose URLs are gone.
DELETE FROM tagged
WHERE tagged.bucket = %(bucket)b::int2 AND tagged.crawl = %(crawl)b::int4 AND tagged.qid = ANY(%(qid)b::int8[])
  AND NOT EXISTS (SELECT FROM url WHERE url.bucket = %(bucket)b::int2 AND url.qid = tagged.qid
                  AND url.crawl = tagged.crawl AND url.uid = tagged.uid)
-- name: delete_empty_queues
-- Removes queues of which no URL is left.
DELETE FROM queue
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4 AND queue.qid = ANY(%(qid)b::int8[])
  AND queue.known = 0
