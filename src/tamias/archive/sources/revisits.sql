-- What a crawl that goes on knows of its URLs' changes. Every statement names one bucket, as in frontier.sql.

-- name: read_revisits
-- What is known of URLs before a visit is judged.
SELECT revisit.qid, revisit.crawl, revisit.uid, encode(revisit.sha256, 'hex'), revisit.history, revisit.visited_at,
       revisit.hint_at, revisit.frequency, revisit.priority, revisit.moved
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) AS wanted (qid, crawl, uid)
JOIN revisit ON revisit.bucket = %(bucket)b::int2 AND revisit.qid = wanted.qid AND revisit.crawl = wanted.crawl
            AND revisit.uid = wanted.uid

-- name: write_revisits
-- What is known after it.
INSERT INTO revisit (bucket, qid, crawl, uid, sha256, history, rate, importance, visited_at, moved)
SELECT %(bucket)b::int2, new.* FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(sha256)b::bytea[],
     %(history)b::bytea[], %(rate)b::float8[], %(importance)b::float8[], %(visited_at)b::int8[], %(moved)b::bool[])
     AS new
ORDER BY 1, 2, 3, 4
ON CONFLICT (bucket, qid, crawl, uid) DO UPDATE
SET sha256 = coalesce(excluded.sha256, revisit.sha256), history = excluded.history, rate = excluded.rate,
    importance = excluded.importance, visited_at = excluded.visited_at, moved = excluded.moved

-- name: note_url_hints
-- What a sitemap says of URLs, visited or not. Given back are those that were visited, and for which it is news.
INSERT INTO revisit (bucket, qid, crawl, uid, hint_at, frequency, priority)
SELECT %(bucket)b::int2, new.* FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(hint_at)b::int8[],
     %(frequency)b::text[], %(priority)b::float8[]) AS new
ORDER BY 1, 2, 3, 4
ON CONFLICT (bucket, qid, crawl, uid) DO UPDATE
SET hint_at = greatest(revisit.hint_at, excluded.hint_at),
    frequency = coalesce(excluded.frequency, revisit.frequency),
    priority = coalesce(excluded.priority, revisit.priority)
RETURNING revisit.qid, revisit.uid, revisit.visited_at, revisit.hint_at

-- name: crawl_rates
-- How often each URL of a crawl changes that is visited again.
SELECT revisit.rate, revisit.importance, host.hkey
FROM revisit JOIN host ON host.bucket = %(bucket)b::int2 AND host.qid = revisit.qid
WHERE revisit.bucket = %(bucket)b::int2 AND revisit.crawl = %(crawl)b::int4 AND revisit.rate IS NOT NULL

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
