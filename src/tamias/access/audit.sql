-- The log of writing calls.

-- name: put_entry
-- One writing call.
INSERT INTO audit (at, who, what, targets, count, outcome)
VALUES (%(at)b::int8, %(who)b::text, %(what)b::text, %(targets)b::text[], %(count)b::int4, %(outcome)b::text)

-- name: list_entries
-- The latest calls before one, all or of one caller.
SELECT audit.entry, audit.at, audit.who, audit.what, audit.targets, audit.count, audit.outcome
FROM audit
WHERE audit.entry < %(before)b::int8 AND audit.at >= %(since)b::int8
  AND (%(who)b::text IS NULL OR audit.who = %(who)b::text)
ORDER BY audit.entry DESC LIMIT %(limit)b::int4
