-- What others say about when resources change.

-- name: note_hints
-- The latest that is said; gives back the resources that are said to have changed since the last visit.
UPDATE resource
SET hint_at = greatest(resource.hint_at, told.changed_at), frequency = coalesce(told.frequency, resource.frequency)
FROM (SELECT new.url, max(new.changed_at) AS changed_at, max(new.frequency) AS frequency
      FROM unnest(%(url)b::text[], %(changed_at)b::int8[], %(frequency)b::text[]) AS new (url, changed_at, frequency)
      GROUP BY new.url) AS told
WHERE resource.url = told.url
  AND (told.changed_at > coalesce(resource.hint_at, 0) OR told.frequency IS DISTINCT FROM resource.frequency)
RETURNING resource.url, resource.host, resource.visited_at, resource.hint_at

-- name: read_trust
-- How often the dates of hosts proved right.
SELECT hint_trust.host, hint_trust.correct, hint_trust.checked FROM hint_trust
WHERE hint_trust.host = ANY(%(host)b::text[])

-- name: write_trust
-- The same, after one more test.
INSERT INTO hint_trust (host, correct, checked) VALUES (%(host)b::text, %(correct)b::int4, %(checked)b::int4)
ON CONFLICT (host) DO UPDATE SET correct = excluded.correct, checked = excluded.checked
