-- Walls, counted.

-- name: count_walls
-- Responses of each host that were refused as walls, by the index of refusals and failures.
SELECT found.host, string_agg(DISTINCT found.wall, ', '), count(*)::int8, max(found.started_at)
FROM (SELECT substring(capture.url FROM '^[a-z]+://(?:[^/?#@]*@)?([^/?#:]+)') AS host,
             substring(capture.reason FROM '^wall: (.*) challenge') AS wall, capture.started_at
      FROM capture WHERE capture.outcome = 4 AND starts_with(capture.reason, 'wall: ')) AS found
GROUP BY found.host ORDER BY 3 DESC, 1 LIMIT 1000
