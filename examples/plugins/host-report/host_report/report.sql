-- name: hosts
-- Hosts with watched resources, those with the most versions first.
SELECT host, count(*), sum(versions)::int8
FROM resource
GROUP BY host
ORDER BY sum(versions) DESC, host
LIMIT 1000
