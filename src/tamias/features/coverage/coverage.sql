-- How much of a list was reached, by depth. The list stands in temporary tables of one transaction; every
-- reference to host, queue or url names the bucket, as everywhere.

-- name: make_lines
-- The lines of the list as they come.
CREATE TEMPORARY TABLE listed_line (bucket int2, qid int8, uid int8, domain int8, count float8) ON COMMIT DROP

-- name: copy_lines
-- Fills them.
COPY listed_line (bucket, qid, uid, domain, count) FROM STDIN (FORMAT BINARY)

-- name: merge_lines
-- The list itself: each URL once, with how often it was seen and its rank by that.
CREATE TEMPORARY TABLE listed ON COMMIT DROP AS
SELECT line.bucket, line.qid, line.uid, line.domain, sum(line.count) AS weight,
       row_number() OVER (ORDER BY sum(line.count) DESC, line.domain, line.uid) AS rank
FROM listed_line AS line
GROUP BY line.bucket, line.qid, line.uid, line.domain

-- name: make_reached
-- The URLs of the list that were reached.
CREATE TEMPORARY TABLE reached (qid int8, uid int8, depth int2) ON COMMIT DROP

-- name: make_reached_domain
-- The domains that were reached, of the list or not; one may come from several buckets.
CREATE TEMPORARY TABLE reached_domain (domain int8, depth int2) ON COMMIT DROP

-- name: make_named
-- The domain of each host.
CREATE TEMPORARY TABLE named (bucket int2, qid int8, domain int8, PRIMARY KEY (bucket, qid)) ON COMMIT DROP

-- name: make_effective
-- URLs that a redirect led to: the addresses from which answers came.
CREATE TEMPORARY TABLE effective (bucket int2, qid int8, uid int8, domain int8, depth int2) ON COMMIT DROP

-- name: redirected
-- Some fetches of a bucket after a given one that ended elsewhere than they began.
SELECT capture.capture, capture.final_url, capture.depth FROM capture
WHERE capture.bucket = %(bucket)b::int2 AND capture.capture > %(after)b::uuid AND capture.final_url IS NOT NULL
  AND capture.crawl = ANY(%(crawl)b::int4[]) AND capture.outcome = ANY(%(visited)b::int2[])
ORDER BY capture.capture LIMIT %(most)b::int4

-- name: copy_effective
-- Fills them.
COPY effective (bucket, qid, uid, domain, depth) FROM STDIN (FORMAT BINARY)

-- name: hosts
-- The hosts of a bucket by their keys.
SELECT host.qid, host.hkey FROM host WHERE host.bucket = %(bucket)b::int2

-- name: copy_named
-- Fills the domains of hosts.
COPY named (bucket, qid, domain) FROM STDIN (FORMAT BINARY)

-- name: analyse
-- Lets the planner know how many URLs, redirects and hosts there are.
ANALYZE listed, effective, named

-- name: reach_urls
-- Finds the listed URLs of a bucket, at the least depth of all crawls: requested ones, and those that redirects
-- led to.
INSERT INTO reached (qid, uid, depth)
SELECT found.qid, found.uid, min(found.depth)
FROM (SELECT listed.qid, listed.uid, url.depth
      FROM listed JOIN url ON url.bucket = %(bucket)b::int2 AND url.qid = listed.qid AND url.uid = listed.uid
      WHERE listed.bucket = %(bucket)b::int2 AND url.crawl = ANY(%(crawl)b::int4[])
        AND url.status = ANY(%(status)b::int2[])
      UNION ALL
      SELECT listed.qid, listed.uid, effective.depth
      FROM listed JOIN effective ON effective.bucket = listed.bucket AND effective.qid = listed.qid
                                AND effective.uid = listed.uid
      WHERE listed.bucket = %(bucket)b::int2) AS found
GROUP BY found.qid, found.uid

-- name: reach_domains
-- Finds the domains of a bucket that were reached. Host by host first: joined URL by URL, the planner expects
-- a few and tries each against all hosts.
WITH least AS MATERIALIZED (
    SELECT url.qid, min(url.depth) AS depth FROM url
    WHERE url.bucket = %(bucket)b::int2 AND url.crawl = ANY(%(crawl)b::int4[])
      AND url.status = ANY(%(status)b::int2[])
    GROUP BY url.qid)
INSERT INTO reached_domain (domain, depth)
SELECT named.domain, least.depth FROM least
JOIN named ON named.bucket = %(bucket)b::int2 AND named.qid = least.qid

-- name: reach_effective_domains
-- The domains that redirects led to.
INSERT INTO reached_domain (domain, depth)
SELECT effective.domain, min(effective.depth) FROM effective GROUP BY effective.domain

-- name: analyse_reached
-- Lets the planner know how many there are.
ANALYZE reached

-- name: crawled_urls
-- URLs of a bucket that were reached, of the list or not, by depth.
SELECT url.depth, count(*) FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = ANY(%(crawl)b::int4[])
  AND url.status = ANY(%(status)b::int2[])
GROUP BY url.depth

-- name: crawled_domains
-- Domains that were reached, of the list or not, by depth.
SELECT least.depth, count(*)
FROM (SELECT min(domain.depth) AS depth FROM reached_domain AS domain GROUP BY domain.domain) AS least
GROUP BY least.depth

-- name: listed_totals
-- The whole list: URLs, those on top, and how often all were seen; the same of domains.
SELECT count(*), count(*) FILTER (WHERE listed.rank <= %(top)b::int8), coalesce(sum(listed.weight), 0)::float8,
       count(DISTINCT listed.domain),
       count(DISTINCT listed.domain) FILTER (WHERE listed.rank <= %(top)b::int8)
FROM listed

-- name: covered_urls
-- The URLs of the list that were reached, by depth: all, those on top, and how often they were seen.
SELECT reached.depth, count(*), count(*) FILTER (WHERE listed.rank <= %(top)b::int8), sum(listed.weight)::float8
FROM listed JOIN reached ON reached.qid = listed.qid AND reached.uid = listed.uid
GROUP BY reached.depth

-- name: covered_domains
-- The same of the domains of the list; one is on top when one of its URLs is.
SELECT near.depth, count(*), count(*) FILTER (WHERE wanted.rank <= %(top)b::int8), sum(wanted.weight)::float8
FROM (SELECT listed.domain, sum(listed.weight) AS weight, min(listed.rank) AS rank
      FROM listed GROUP BY listed.domain) AS wanted
JOIN (SELECT domain.domain, min(domain.depth) AS depth
      FROM reached_domain AS domain GROUP BY domain.domain) AS near ON near.domain = wanted.domain
GROUP BY near.depth

-- name: by_frequency
-- How many URLs of the list were seen how often, in powers of two, and how many of them were reached.
SELECT power(2::float8, floor(ln(listed.weight) / ln(2::float8) + 1e-9)) AS least, count(*), count(reached.uid)
FROM listed LEFT JOIN reached ON reached.qid = listed.qid AND reached.uid = listed.uid
GROUP BY least ORDER BY least
