-- The frontier as clients of the API ask for it. Every statement names one bucket.

-- name: page_queues
-- Queues after a given one, up to those of a given host, all or of a crawl.
SELECT queue.qid, queue.crawl, queue.lane, host.hkey, crawl.name, queue.known, queue.open, queue.active,
       host.token IS NOT NULL AND host.lease_end > %(now)b::int8,
       CASE WHEN queue.next_due < %(never)b::int8 THEN queue.next_due END,
       CASE WHEN host.ready_at < %(never)b::int8 THEN host.ready_at END,
       CASE WHEN host.blocked_until > 0 THEN least(host.blocked_until, %(never)b::int8) END,
       host.delay_ms / 1000::float8
FROM queue
JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = queue.qid
JOIN crawl ON crawl.crawl = queue.crawl
WHERE queue.bucket = %(bucket)b::int2
  AND (queue.qid, queue.crawl, queue.lane) > (%(qid)b::int8, %(after_crawl)b::int4, %(lane)b::int4)
  AND queue.qid <= %(to)b::int8 AND (%(crawl)b::text IS NULL OR crawl.name = %(crawl)b::text)
ORDER BY queue.qid, queue.crawl, queue.lane LIMIT %(limit)b::int4

-- name: one_host
-- How politely a host is asked.
SELECT host.hkey, host.delay_ms / 1000::float8,
       CASE WHEN host.blocked_until > %(now)b::int8 THEN least(host.blocked_until, %(never)b::int8) END,
       CASE WHEN host.ready_at < %(never)b::int8 THEN host.ready_at END,
       host.token IS NOT NULL AND host.lease_end > %(now)b::int8
FROM host WHERE host.bucket = %(bucket)b::int2 AND host.qid = %(qid)b::int8

-- name: page_blocks
-- Hosts that are left in peace for now, after a given one.
SELECT host.qid, host.hkey, CASE WHEN host.blocked_until < %(never)b::int8 THEN host.blocked_until END FROM host
WHERE host.bucket = %(bucket)b::int2 AND host.blocked_until > %(now)b::int8 AND host.qid > %(qid)b::int8
ORDER BY host.qid LIMIT %(limit)b::int4

-- name: tag_sums
-- How many URLs of a bucket each tag has, and how many of them are open. A lane is a set of tags.
SELECT tag.tag, sum(lane_sums.known)::int8, sum(lane_sums.open)::int8
FROM (SELECT queue.lane, sum(queue.known) AS known, sum(queue.open) AS open
      FROM queue WHERE queue.bucket = %(bucket)b::int2 AND queue.lane > 0 GROUP BY queue.lane) AS lane_sums
JOIN lane ON lane.lane = lane_sums.lane
CROSS JOIN LATERAL unnest(lane.tags) AS tag (tag)
GROUP BY tag.tag
