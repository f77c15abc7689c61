-- What reports of crawls are made of, beside captures.

-- name: remaining
-- How many URLs are left to visit, by host.
SELECT host.hkey, sum(queue.open)::int8
FROM host JOIN queue ON queue.bucket = host.bucket AND queue.qid = host.qid
WHERE queue.open > 0 GROUP BY host.hkey
