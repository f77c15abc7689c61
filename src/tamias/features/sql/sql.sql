-- name: grants
-- What the role of readers lacks: partitions of new months, and tables of features that came later.
SELECT format('GRANT SELECT ON tamias.%%I TO tamias_reader', it.relname)
FROM pg_class AS it
WHERE it.relnamespace = 'tamias'::regnamespace AND it.relkind IN ('r', 'p', 'v', 'm')
  AND it.relname <> ALL(%(secret)b::text[]) AND NOT has_table_privilege('tamias_reader', it.oid, 'SELECT')
