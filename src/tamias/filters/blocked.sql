-- What block lists kept out, by list.

-- name: count_blocked
-- Adds to the counts. In the order of names, so that two workers never wait for each other in a circle.
INSERT INTO blocked (list, urls, latest)
SELECT new.list, new.urls, %(now)b::int8
FROM unnest(%(list)b::text[], %(urls)b::int8[]) AS new (list, urls)
ORDER BY new.list
ON CONFLICT (list) DO UPDATE SET urls = blocked.urls + excluded.urls, latest = greatest(blocked.latest, excluded.latest)

-- name: blocked_figures
-- The counts of all lists, the busiest first.
SELECT blocked.list, blocked.urls, blocked.latest FROM blocked ORDER BY blocked.urls DESC, blocked.list
