-- What only the pages ask. Every one of them reads a bounded number of rows.

-- name: datasets
-- Watched resources with a version, those that changed last first: all, or of a state, a host, a type, a portal.
SELECT resource.resource, resource.url, resource.host, resource.title, resource.state, resource.media_type,
       resource.versions, resource.captured_at, resource.trouble
FROM resource
WHERE (resource.captured_at, resource.resource) < (%(at)b::int8, %(resource)b::text COLLATE "C")
  AND (%(state)b::text IS NULL OR (resource.state = CASE %(state)b::text WHEN 'failing' THEN 'active' ELSE %(state)b::text END
                                   AND (%(state)b::text <> 'failing' OR resource.trouble IS NOT NULL)))
  AND (%(host)b::text IS NULL OR resource.host = %(host)b::text)
  AND (%(type)b::text IS NULL OR resource.media_type = %(type)b::text)
  AND (%(portal)b::text IS NULL OR EXISTS (SELECT FROM source WHERE source.resource = resource.resource
                                                               AND source.portal = %(portal)b::text))
ORDER BY resource.captured_at DESC, resource.resource DESC LIMIT %(limit)b::int4

-- name: datasets_without_version
-- The same of those without any version, in the order of their names.
SELECT resource.resource, resource.url, resource.host, resource.title, resource.state, resource.media_type,
       resource.versions, resource.captured_at, resource.trouble
FROM resource
WHERE resource.captured_at IS NULL AND resource.resource > %(resource)b::text COLLATE "C"
  AND (%(state)b::text IS NULL OR (resource.state = CASE %(state)b::text WHEN 'failing' THEN 'active' ELSE %(state)b::text END
                                   AND (%(state)b::text <> 'failing' OR resource.trouble IS NOT NULL)))
  AND (%(host)b::text IS NULL OR resource.host = %(host)b::text)
  AND (%(type)b::text IS NULL OR resource.media_type = %(type)b::text)
  AND (%(portal)b::text IS NULL OR EXISTS (SELECT FROM source WHERE source.resource = resource.resource
                                                               AND source.portal = %(portal)b::text))
ORDER BY resource.resource LIMIT %(limit)b::int4

-- name: datasets_weeks
-- New versions of some resources by week, of their newest versions.
SELECT version.resource, ((version.captured_at - %(first)b::int8) / %(week)b::int8)::int4, count(*)::int8
FROM resource
JOIN version ON version.resource = resource.resource AND version.number > resource.versions - %(most)b::int4
WHERE resource.resource = ANY(%(resource)b::text[]) AND version.captured_at >= %(first)b::int8
  AND version.noise IS NULL
GROUP BY 1, 2

-- name: types
-- Media types of datasets, the most frequent first.
SELECT counted.key
FROM (SELECT tally.key, tally.n FROM tally WHERE tally.what = 'type'
      UNION ALL
      SELECT news.key, news.n FROM tally_news AS news WHERE news.what = 'type') AS counted
WHERE counted.key <> '' GROUP BY counted.key HAVING sum(counted.n) > 0 ORDER BY sum(counted.n) DESC, counted.key LIMIT 30

-- name: attempts
-- Attempts of the last day in slots of five minutes, by outcome: those that are counted already.
SELECT attempts.slot, attempts.outcome, sum(attempts.n)::int8 FROM attempts
WHERE attempts.slot >= %(first)b::int8 AND attempts.n > 0 GROUP BY attempts.slot, attempts.outcome

-- name: fresh_attempts
-- The same of those not counted yet, and the last minute by itself. Ids of captures begin with their time.
SELECT capture.started_at / 300000, capture.outcome, count(*)::int8,
       count(*) FILTER (WHERE capture.started_at > %(minute)b::int8)::int8,
       coalesce(sum(capture.bytes) FILTER (WHERE capture.started_at > %(minute)b::int8), 0)::int8
FROM capture
WHERE capture.bucket = %(bucket)b::int2
  AND capture.capture >= (SELECT (lpad(to_hex(300000 * greatest(%(first)b::int8, max(attempts.slot) + 1)), 12, '0')
                                  || repeat('0', 20))::uuid
                          FROM attempts WHERE attempts.bucket = %(bucket)b::int2)
GROUP BY 1, 2

-- name: daily
-- New versions by day, of so many newest ones at most.
SELECT newest.captured_at / 86400000, count(*)::int8
FROM (SELECT version.captured_at FROM version WHERE version.captured_at >= %(since)b::int8
      ORDER BY version.captured_at DESC LIMIT %(most)b::int4) AS newest
GROUP BY 1

-- name: planned
-- Visits that are due, by hour from now on, in a sample of so many per cent; what is overdue counts as now.
SELECT greatest(0, (resource.next_visit - %(now)b::int8) / 3600000)::int4, count(*)::int8
FROM resource TABLESAMPLE SYSTEM (%(percent)b::float4)
WHERE resource.state <> 'stopped' AND resource.next_visit < %(now)b::int8 + %(hours)b::int8 * 3600000
GROUP BY 1

-- name: troubles
-- Hosts with URLs whose latest attempt was refused or failed, among the newest attempts, with the latest reason.
-- What has succeeded since is no trouble.
SELECT host.hkey AS host, count(*)::int8 AS urls, max(latest.started_at) AS last,
       (array_agg(latest.reason ORDER BY latest.capture DESC))[1] AS reason
FROM (SELECT DISTINCT ON (newest.qid, newest.crawl, newest.uid)
             newest.capture, newest.qid, newest.outcome, newest.started_at, newest.reason
      FROM (SELECT capture.capture, capture.qid, capture.crawl, capture.uid, capture.outcome, capture.started_at,
                   capture.reason
            FROM capture
            WHERE capture.bucket = %(bucket)b::int2 ORDER BY capture.capture DESC LIMIT %(most)b::int4) AS newest
      ORDER BY newest.qid, newest.crawl, newest.uid, newest.capture DESC) AS latest
JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = latest.qid
WHERE latest.outcome IN (4, 5)
GROUP BY host.hkey ORDER BY 2 DESC, 1 LIMIT 20

-- name: attention
-- Watched resources whose latest visit brought nothing, those that were tried last first.
SELECT resource.resource, resource.url, resource.title, resource.state, resource.tried_at AS last,
       resource.fails, resource.trouble
FROM resource
WHERE resource.trouble IS NOT NULL AND resource.state <> 'stopped'
ORDER BY resource.tried_at DESC LIMIT %(limit)b::int4

-- name: host_troubles
-- The latest attempts at one queue that were refused or failed.
SELECT capture.started_at AS at, capture.outcome, capture.status, capture.url, capture.reason FROM capture
WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = %(qid)b::int8 AND capture.outcome IN (4, 5)
ORDER BY capture.capture DESC LIMIT %(limit)b::int4

-- name: host_outcomes
-- How attempts at one queue ended, of so many at most.
SELECT tried.outcome, count(*)::int8
FROM (SELECT capture.outcome FROM capture
      WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = %(qid)b::int8 LIMIT %(most)b::int4) AS tried
GROUP BY tried.outcome

-- name: readiness
-- Hosts by what they wait for, in the order in which it is asked; each counts once.
SELECT count(*)::int8, count(*) FILTER (WHERE waiting.state = 1)::int8, count(*) FILTER (WHERE waiting.state = 2)::int8,
       count(*) FILTER (WHERE waiting.state = 3)::int8, count(*) FILTER (WHERE waiting.state = 4)::int8,
       count(*) FILTER (WHERE waiting.state IS NULL)::int8
FROM (SELECT CASE WHEN host.blocked_until > %(now)b::int8 THEN 1
                  WHEN host.token IS NOT NULL AND host.lease_end >= %(now)b::int8 THEN 2
                  WHEN host.ready_at <= %(now)b::int8 THEN 3
                  WHEN host.ready_at < 9223372036854775807 THEN 4 END AS state
      FROM host WHERE host.bucket = %(bucket)b::int2) AS waiting

-- name: queues
-- The queues with most to do. They are chosen before anything is joined.
SELECT host.hkey AS host, crawl.name AS crawl, most.known, most.open,
       CASE WHEN NOT most.active THEN 'paused' WHEN most.open = 0 THEN 'done'
            WHEN host.blocked_until > %(now)b::int8 THEN 'blocked'
            WHEN host.token IS NOT NULL AND host.lease_end > %(now)b::int8 THEN 'fetching'
            WHEN greatest(most.next_due, host.ready_at) <= %(now)b::int8 THEN 'ready' ELSE 'waiting' END AS state,
       greatest(most.next_due, host.ready_at) AS ready_at, host.delay_ms / 1000::float8 AS delay_seconds, lane.tags
FROM (SELECT queue.* FROM queue WHERE queue.bucket = %(bucket)b::int2
      ORDER BY queue.open DESC, queue.qid, queue.crawl, queue.lane LIMIT %(limit)b::int4) AS most
JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = most.qid
JOIN crawl ON crawl.crawl = most.crawl
JOIN lane ON lane.lane = most.lane
ORDER BY most.open DESC, host.hkey, crawl.name

-- name: blocks
-- Hosts that are left in peace for now.
SELECT host.hkey AS host, host.blocked_until AS until, host.delay_ms / 1000::float8 AS delay_seconds FROM host
WHERE host.bucket = %(bucket)b::int2 AND host.blocked_until > %(now)b::int8
ORDER BY host.blocked_until DESC, host.hkey LIMIT %(limit)b::int4

-- name: portal_resources
-- The resources that a portal names, after a given one.
SELECT resource.resource, resource.url, resource.host, resource.title, resource.state, resource.media_type,
       resource.versions, resource.captured_at, resource.trouble
FROM (SELECT DISTINCT source.resource FROM source
      WHERE source.portal = %(url)b::text AND source.resource > %(after)b::text
      ORDER BY source.resource LIMIT %(limit)b::int4) AS named
JOIN resource ON resource.resource = named.resource ORDER BY resource.resource

-- name: host_resources
-- The resources of a host, after a given one.
SELECT resource.resource, resource.url, resource.host, resource.title, resource.state, resource.media_type,
       resource.versions, resource.captured_at, resource.trouble
FROM resource WHERE resource.host = %(host)b::text AND resource.resource > %(after)b::text
ORDER BY resource.resource LIMIT %(limit)b::int4

-- name: portal_hosts
-- Where the files of a portal are, and in what state, of so many at most.
SELECT resource.host, count(*)::int8 AS datasets, count(*) FILTER (WHERE resource.state = 'gone')::int8 AS gone,
       count(*) FILTER (WHERE resource.versions = 0)::int8 AS never,
       count(*) FILTER (WHERE resource.fails > 0 AND resource.state <> 'gone')::int8 AS failing
FROM (SELECT DISTINCT source.resource FROM source WHERE source.portal = %(url)b::text LIMIT %(most)b::int4) AS named
JOIN resource ON resource.resource = named.resource
GROUP BY resource.host ORDER BY 2 DESC, 1

-- name: vanished
-- Datasets that a portal no longer has, the latest first.
SELECT described.title, described.iri, described.gone_at
FROM described JOIN portal ON portal.portal = described.portal
WHERE portal.url = %(url)b::text AND described.gone_at IS NOT NULL
ORDER BY described.gone_at DESC, described.record LIMIT %(limit)b::int4

-- name: graph_hosts
-- Hosts of the frontier, with how many URLs are known of each.
SELECT host.hkey, coalesce(sum(queue.known), 0)::int8
FROM (SELECT host.qid, host.hkey FROM host WHERE host.bucket = %(bucket)b::int2 LIMIT %(most)b::int4) AS host
LEFT JOIN queue ON queue.bucket = %(bucket)b::int2 AND queue.qid = host.qid
GROUP BY host.hkey

-- name: graph_datasets
-- The hosts with most datasets.
SELECT counted.key, sum(counted.n)::int8
FROM (SELECT tally.key, tally.n FROM tally WHERE tally.what = 'host'
      UNION ALL
      SELECT news.key, news.n FROM tally_news AS news WHERE news.what = 'host') AS counted
GROUP BY counted.key HAVING sum(counted.n) > 0 ORDER BY 2 DESC, 1 LIMIT %(most)b::int4

-- name: graph_sources
-- Who names resources of which host, the portal or the source itself: the pairs with most resources.
SELECT coalesce(source.portal, source.source), resource.host, count(*)::int8
FROM (SELECT source.* FROM source LIMIT %(most)b::int4) AS source
JOIN resource ON resource.resource = source.resource
GROUP BY 1, 2 ORDER BY 3 DESC LIMIT %(links)b::int4

-- name: graph_redirects
-- Where redirects led to another place, of the newest attempts.
SELECT newest.url, newest.final_url
FROM (SELECT capture.url, capture.final_url FROM capture
      WHERE capture.bucket = %(bucket)b::int2 ORDER BY capture.capture DESC LIMIT %(most)b::int4) AS newest
WHERE newest.final_url IS NOT NULL

-- name: newest_changes
-- The newest versions of all resources.
SELECT version.resource, resource.url, resource.title, version.number, version.captured_at, version.byte_size,
       version.media_type, version.noise
FROM version JOIN resource ON resource.resource = version.resource
ORDER BY version.captured_at DESC, version.resource DESC, version.number DESC LIMIT %(limit)b::int4

-- name: host_changes
-- The resources of a host that changed last, each with its newest version.
SELECT version.resource, newest.url, newest.title, version.number, version.captured_at, version.byte_size,
       version.media_type, version.noise
FROM (SELECT resource.* FROM resource WHERE resource.host = %(host)b::text AND resource.captured_at IS NOT NULL
      ORDER BY resource.captured_at DESC, resource.resource LIMIT %(limit)b::int4) AS newest
JOIN version ON version.resource = newest.resource AND version.number = newest.versions
ORDER BY version.captured_at DESC, version.resource

-- name: portal_changes
-- The same of the resources that a portal names, of so many at most.
SELECT version.resource, newest.url, newest.title, version.number, version.captured_at, version.byte_size,
       version.media_type, version.noise
FROM (SELECT resource.*
      FROM (SELECT DISTINCT source.resource FROM source WHERE source.portal = %(url)b::text
            LIMIT %(most)b::int4) AS named
      JOIN resource ON resource.resource = named.resource
      WHERE resource.captured_at IS NOT NULL
      ORDER BY resource.captured_at DESC, resource.resource LIMIT %(limit)b::int4) AS newest
JOIN version ON version.resource = newest.resource AND version.number = newest.versions
ORDER BY version.captured_at DESC, version.resource

-- name: graph_links
-- How many links lead from a host to another, the most first.
SELECT pair.from_host, pair.to_host, pair.links
FROM (SELECT host_link.* FROM host_link LIMIT %(most)b::int4) AS pair
ORDER BY pair.links DESC, pair.from_host, pair.to_host LIMIT %(links)b::int4

-- name: lists
-- What block lists kept out.
SELECT blocked.list, blocked.urls, blocked.latest FROM blocked ORDER BY blocked.urls DESC, blocked.list LIMIT 50

-- name: crawl_span
-- The first and last of the newest attempts of a crawl. So many newest attempts of all crawls are looked at.
SELECT min(newest.started_at), max(newest.started_at), count(*)::int8
FROM (SELECT capture.crawl, capture.started_at FROM capture WHERE capture.bucket = %(bucket)b::int2
      ORDER BY capture.capture DESC LIMIT %(most)b::int4) AS newest
WHERE newest.crawl = %(crawl)b::int4

-- name: crawl_attempts
-- The newest attempts of a crawl by time slot, depth, outcome and whether they brought statements.
SELECT (newest.started_at - %(first)b::int8) / %(slot)b::int8, newest.depth, newest.outcome, count(*)::int8,
       sum(newest.quads)::int8, coalesce(sum(newest.bytes), 0)::int8
FROM (SELECT capture.* FROM capture WHERE capture.bucket = %(bucket)b::int2
      ORDER BY capture.capture DESC LIMIT %(most)b::int4) AS newest
WHERE newest.crawl = %(crawl)b::int4
GROUP BY 1, 2, 3

-- name: crawl_hosts
-- The hosts with most of the newest attempts of a crawl.
SELECT host.hkey AS host, counted.n AS attempts, counted.bad AS troubles, counted.quads AS statements
FROM (SELECT newest.qid, count(*)::int8 AS n, count(*) FILTER (WHERE newest.outcome IN (4, 5))::int8 AS bad,
             sum(newest.quads)::int8 AS quads
      FROM (SELECT capture.* FROM capture WHERE capture.bucket = %(bucket)b::int2
            ORDER BY capture.capture DESC LIMIT %(most)b::int4) AS newest
      WHERE newest.crawl = %(crawl)b::int4
      GROUP BY newest.qid ORDER BY 2 DESC, 1 LIMIT %(limit)b::int4) AS counted
JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = counted.qid

-- name: crawl_reasons
-- Why URLs of a crawl are not stored: the latest attempt at each counts, among the newest attempts.
SELECT latest.outcome, latest.reason, count(*)::int8, min(latest.url)
FROM (SELECT DISTINCT ON (newest.qid, newest.uid) newest.outcome, newest.reason, newest.url
      FROM (SELECT capture.* FROM capture WHERE capture.bucket = %(bucket)b::int2
            ORDER BY capture.capture DESC LIMIT %(most)b::int4) AS newest
      WHERE newest.crawl = %(crawl)b::int4
      ORDER BY newest.qid, newest.uid, newest.capture DESC) AS latest
WHERE latest.outcome >= 3
GROUP BY latest.outcome, latest.reason ORDER BY 3 DESC LIMIT %(limit)b::int4

-- name: crawl_waiting
-- What the open queues of a crawl wait for, with their URLs.
SELECT CASE WHEN NOT queue.active THEN 'the queue is paused'
            WHEN host.blocked_until > %(now)b::int8 THEN 'the host asked for a pause, or failed'
            WHEN host.token IS NOT NULL AND host.lease_end > %(now)b::int8 THEN 'being fetched now'
            WHEN greatest(queue.next_due, host.ready_at) <= %(now)b::int8 THEN 'ready, waiting for a worker'
            WHEN queue.next_due > %(now)b::int8 THEN 'due later'
            ELSE 'the delay between two requests' END AS what,
       count(*)::int8 AS queues, sum(queue.open)::int8 AS urls,
       min(greatest(queue.next_due, host.ready_at, host.blocked_until))
           FILTER (WHERE queue.active AND (host.token IS NULL OR host.lease_end <= %(now)b::int8)
                     AND greatest(queue.next_due, host.ready_at, host.blocked_until) > %(now)b::int8) AS until
FROM queue JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = queue.qid
WHERE queue.bucket = %(bucket)b::int2 AND queue.crawl = %(crawl)b::int4 AND queue.open > 0
GROUP BY 1

-- name: newest_documents
-- Documents with statements that were read last, before a given capture; those whose URL has a text in it, among so
-- many. Captures of old months stand in files.
SELECT newest.document, newest.started_at, newest.capture::text, capture.quads, capture.found_type
FROM (SELECT known.document, known.started_at, known.capture FROM current_document AS known
      WHERE known.bucket = %(bucket)b::int2 AND known.segment IS NOT NULL AND known.capture < %(before)b::text::uuid
      ORDER BY known.capture DESC LIMIT %(most)b::int4) AS newest
LEFT JOIN capture ON capture.bucket = %(bucket)b::int2 AND capture.capture = newest.capture
WHERE position(lower(%(part)b::text) IN lower(newest.document)) > 0
ORDER BY newest.capture DESC LIMIT %(limit)b::int4

-- name: documents_of_host
-- The same of the URLs of one queue, of so many attempts at most.
SELECT DISTINCT ON (tried.document) tried.document, tried.started_at, tried.capture::text, tried.quads, tried.found_type
FROM (SELECT coalesce(capture.final_url, capture.url) AS document, capture.* FROM capture
      WHERE capture.bucket = %(bucket)b::int2 AND capture.qid = %(qid)b::int8 LIMIT %(most)b::int4) AS tried
JOIN current_document AS known ON known.bucket = %(bucket)b::int2 AND known.capture = tried.capture
WHERE known.segment IS NOT NULL AND tried.document > %(after)b::text
ORDER BY tried.document, tried.capture DESC LIMIT %(limit)b::int4

-- name: document
-- What a document holds now, from whichever bucket it came: the latest whole reading.
SELECT known.bucket, known.capture, known.started_at, known.segment, known.frame, known.start, known.length, known.cut,
       known.qid
FROM current_document AS known
WHERE known.bucket = %(bucket)b::int2
  AND known.document_key = substr(sha256(convert_to(%(document)b::text, 'UTF8')), 1, 16)

-- name: attempts_like
-- The newest attempts at the URL of one attempt.
SELECT each.started_at, greatest(0, each.ended_at - each.started_at) / 1000::float8, each.outcome, each.status,
       each.bytes, each.quads, each.found_type, each.reason, each.url
FROM capture AS one
JOIN capture AS each ON each.bucket = one.bucket AND each.qid = one.qid AND each.crawl = one.crawl
                    AND each.uid = one.uid
WHERE one.bucket = %(bucket)b::int2 AND one.capture = %(capture)b::uuid
ORDER BY each.capture DESC LIMIT %(limit)b::int4

-- name: attempts_at
-- The newest attempts at a URL, in any crawl.
SELECT capture.started_at, greatest(0, capture.ended_at - capture.started_at) / 1000::float8, capture.outcome,
       capture.status, capture.bytes, capture.quads, capture.found_type, capture.reason, capture.url
FROM crawl
JOIN capture ON capture.bucket = %(bucket)b::int2 AND capture.qid = %(qid)b::int8 AND capture.crawl = crawl.crawl
            AND capture.uid = %(uid)b::int8
WHERE capture.url = %(url)b::text
ORDER BY capture.capture DESC LIMIT %(limit)b::int4

-- name: known_documents
-- Which of some addresses are documents with statements, and by which captures.
SELECT known.document, known.capture::text FROM current_document AS known
WHERE known.bucket = %(bucket)b::int2 AND known.segment IS NOT NULL
  AND known.document_key = ANY(SELECT substr(sha256(convert_to(each, 'UTF8')), 1, 16)
                               FROM unnest(%(documents)b::text[]) AS each)

-- name: links_to
-- Pages that link to a URL, where links are kept.
SELECT link.from_url AS url, link.anchor
FROM crawl
JOIN link ON link.bucket = %(bucket)b::int2 AND link.qid = %(qid)b::int8 AND link.crawl = crawl.crawl
         AND link.uid = %(uid)b::int8
WHERE link.to_url = %(url)b::text
ORDER BY link.first_seen, link.from_url LIMIT %(limit)b::int4

-- name: records_of_file
-- Records of datasets that offer a file, as long as their portals list both.
SELECT DISTINCT ON (portal.url, kept.iri) portal.url AS portal, kept.iri
FROM offered
JOIN described ON described.portal = offered.portal AND described.record = offered.record
JOIN portal ON portal.portal = offered.portal
JOIN source_record AS kept ON kept.portal = offered.portal AND kept.record = offered.record
WHERE offered.url = %(url)b::text AND offered.gone_at IS NULL AND described.gone_at IS NULL LIMIT %(limit)b::int4
