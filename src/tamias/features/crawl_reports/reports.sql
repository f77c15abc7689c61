-- What reports of crawls are made of, beside captures.

-- name: remaining
-- How many URLs of a bucket are left to visit, by host.
SELECT host.hkey, sum(queue.open)::int8
FROM host JOIN queue ON queue.bucket = %(bucket)b::int2 AND queue.qid = host.qid
WHERE host.bucket = %(bucket)b::int2 AND queue.open > 0 GROUP BY host.hkey
