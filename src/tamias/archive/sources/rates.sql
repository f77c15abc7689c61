-- What the schedule needs to know of all resources, and what it makes of it.

-- name: read_rates
-- How often each watched resource changes: one that somebody named.
SELECT resource.change_rate, resource.importance, resource.host FROM resource
WHERE resource.state <> 'stopped' AND resource.change_rate IS NOT NULL
  AND EXISTS (SELECT FROM source WHERE source.resource = resource.resource)

-- name: set_importances
-- What watched resources count: by the user's word, the portals that name them and measures of their quality.
UPDATE resource SET importance = wanted.importance
FROM (SELECT resource.resource,
             (coalesce(resource.priority, 1)
              * coalesce((SELECT max(rule.factor)
                          FROM source JOIN unnest(%(portal)b::text[], %(portal_factor)b::float8[])
                               AS rule (portal, factor) ON rule.portal = source.portal
                          WHERE source.resource = resource.resource), 1)
              * coalesce((SELECT exp(sum(ln(greatest(1 + (rule.factor - 1) * measure.value, 0.001))))
                          FROM measure JOIN unnest(%(metric)b::text[], %(metric_factor)b::float8[])
                               AS rule (metric, factor) ON rule.metric = measure.metric
                          WHERE measure.subject = resource.resource), 1))::real AS importance
      FROM resource) AS wanted
WHERE resource.resource = wanted.resource AND resource.importance <> wanted.importance

-- name: read_figure
-- A figure of the archive as a whole.
SELECT figure.value FROM figure WHERE figure.name = %(name)b::text

-- name: write_figure
-- The same, from now on.
INSERT INTO figure (name, value, set_at) VALUES (%(name)b::text, %(value)b::jsonb, %(now)b::int8)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, set_at = excluded.set_at
