-- Tables beside the frontier: the service's own row, its instances, the crawls. They have no bucket.

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
