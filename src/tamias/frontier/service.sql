-- Queues steered and looked at by hand, and the tables beside them, which have no bucket: the service's own row, its
-- instances, the crawls.

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

-- name: read_buckets
-- Into how many parts the frontier is divided.
SELECT meta.buckets FROM meta

-- name: service_row
-- Whether URLs are given out, and the usual delay.
SELECT service.active, service.delay_ms FROM service

-- name: is_tamias_at_work
-- Whether crawls or the archive of Tamias itself work on this frontier, or have done so.
SELECT EXISTS (SELECT FROM crawl WHERE crawl.policy <> '{}') OR EXISTS (SELECT FROM resource)

-- name: set_active
-- Starts or stops giving out URLs.
UPDATE service SET active = %(active)b::bool

-- name: set_usual_delay
-- The delay of hosts that have none of their own.
UPDATE service SET delay_ms = %(delay_ms)b::int4

-- name: make_crawl
-- Makes a crawl known by name.
INSERT INTO crawl (name, own_politeness) SELECT %(name)b::text, %(own)b::bool
WHERE NOT EXISTS (SELECT FROM crawl WHERE crawl.name = %(name)b::text)
ON CONFLICT DO NOTHING

-- name: find_crawl
-- The number of a crawl, and whether its queues have a politeness of their own.
SELECT crawl.crawl, crawl.own_politeness FROM crawl WHERE crawl.name = %(name)b::text

-- name: crawls_with_own_politeness
-- The crawls whose queues share no host's row with other crawls.
SELECT crawl.crawl FROM crawl WHERE crawl.own_politeness

-- name: list_crawls
-- All crawls by number.
SELECT crawl.crawl, crawl.name FROM crawl ORDER BY crawl.crawl

-- name: announce_node
-- An instance is alive.
INSERT INTO node (address, seen_at) VALUES (%(address)b::text, %(now)b::int8)
ON CONFLICT (address) DO UPDATE SET seen_at = excluded.seen_at

-- name: remove_node
-- An instance has stopped.
DELETE FROM node WHERE node.address = %(address)b::text

-- name: list_nodes
-- The instances that were alive lately.
SELECT node.address FROM node WHERE node.seen_at >= %(since)b::int8 ORDER BY node.address

-- name: analyse_frontier
-- Gathers statistics of hosts, queues and URLs where those that there are know of fewer URLs.
SELECT analyse_frontier(%(least)b::int4)

-- name: crawl_rows
-- All crawls: number, name, state, limit, what they were told.
SELECT crawl.crawl, crawl.name, crawl.state, crawl.most_done, crawl.policy FROM crawl ORDER BY crawl.crawl

-- name: set_state
-- A crawl goes on, or is paused.
UPDATE crawl SET state = %(state)b::text WHERE crawl.crawl = %(crawl)b::int4

-- name: change_state
-- The same, if it was in one of some states.
UPDATE crawl SET state = %(state)b::text
WHERE crawl.crawl = %(crawl)b::int4 AND crawl.state = ANY(%(before)b::text[])

-- name: next_run
-- The user of a crawl lets it go on: limits of a run count from here.
UPDATE crawl SET run = crawl.run + 1 WHERE crawl.crawl = %(crawl)b::int4

-- name: set_most_done
-- A crawl is paused when so many of its URLs are done; null takes the limit away.
UPDATE crawl SET most_done = %(limit)b::int8 WHERE crawl.crawl = %(crawl)b::int4

-- name: forget_crawl
-- Removes a crawl whose queues are removed. The first two are always there.
DELETE FROM crawl WHERE crawl.crawl = %(crawl)b::int4 AND crawl.crawl > 2

-- name: forget_budget
-- Removes what a crawl that goes on may still spend.
DELETE FROM visit_budget WHERE visit_budget.crawl = %(crawl)b::int4

-- name: forget_shares
-- Removes what its workers have taken of a limit.
DELETE FROM visit_share WHERE visit_share.crawl = %(crawl)b::int4

-- name: limited_crawls
-- The crawls that go on and have a limit, and all crawls.
SELECT coalesce(array_agg(crawl.crawl) FILTER (WHERE crawl.most_done IS NOT NULL AND crawl.state IN ('active', 'service')), '{}'),
       array_agg(crawl.crawl)
FROM crawl

-- name: have_queues
-- A queue of one of some crawls in a bucket, if there is one.
SELECT queue.qid FROM queue
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = ANY(%(crawls)b::int4[]) LIMIT 1

-- name: count_done
-- How many URLs of a crawl are done in a bucket.
SELECT coalesce(sum(queue.known - queue.open), 0)::int8 FROM queue
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4

-- name: pause_queues
-- Pauses queues of a crawl on locked hosts, or ends the pause.
UPDATE queue
SET paused = %(paused)b::bool,
    active = NOT %(paused)b::bool
             AND (queue.most_done IS NULL OR queue.known - queue.open < queue.most_done)
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4 AND queue.qid = ANY(%(qid)b::int8[])
