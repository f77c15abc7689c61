-- Hosts that share an IP address, where addresses have a cap. The rules of frontier.sql hold.

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
