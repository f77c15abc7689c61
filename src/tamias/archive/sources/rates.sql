-- What the schedule needs to know of all resources, and what it makes of it.

-- name: read_rates
-- How often each resource changes.
SELECT resource.change_rate, resource.importance, resource.host FROM resource
WHERE resource.state <> 'stopped' AND resource.change_rate IS NOT NULL

-- name: read_figure
-- A figure of the archive as a whole.
SELECT figure.value FROM figure WHERE figure.name = %(name)b::text

-- name: write_figure
-- The same, from now on.
INSERT INTO figure (name, value, set_at) VALUES (%(name)b::text, %(value)b::jsonb, %(now)b::int8)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, set_at = excluded.set_at
