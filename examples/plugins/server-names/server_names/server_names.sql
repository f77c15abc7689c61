-- name: count
-- Adds to what is counted.
INSERT INTO server_name (host, name, responses)
VALUES (%(host)b::text, %(name)b::text, %(responses)b::int8)
ON CONFLICT (host, name) DO UPDATE SET responses = server_name.responses + excluded.responses

-- name: names
-- The software of all hosts, the most frequent first.
SELECT name, count(*), sum(responses)::int8
FROM server_name
GROUP BY name
ORDER BY sum(responses) DESC, name
LIMIT 1000
