-- Times that only a wrong clock can have written: leases, waits and visits beyond what the settings allow.

-- name: count_far_times
-- How many hosts have such a lease or wait, and how many URLs such a visit; 9223372036854775806 is no time.
SELECT (SELECT count(*) FROM host WHERE host.bucket = %(bucket)b::int2
        AND greatest(host.lease_end, host.not_before, host.blocked_until) > %(soon)b::int8),
       (SELECT count(*) FROM url WHERE url.bucket = %(bucket)b::int2
        AND url.due > %(late)b::int8 AND url.due < 9223372036854775806)

-- name: find_far_hosts
-- The hosts of both.
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
