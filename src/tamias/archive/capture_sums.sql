-- Sums of captures by month, which `tamias stats` keeps. For the owner only.

-- name: known_sums
-- Of months that are over.
SELECT known.part, known.written, known.outcome, known.attempts, known.quads, known.bytes FROM capture_sum AS known

-- name: forget_sums
-- Those that are made anew.
DELETE FROM capture_sum WHERE capture_sum.part = %(part)b::text

-- name: keep_sum
-- Of one month and outcome.
INSERT INTO capture_sum (part, written, outcome, attempts, quads, bytes)
VALUES (%(part)b::text, %(written)b::int8, %(outcome)b::int2, %(attempts)b::int8, %(quads)b::int8, %(bytes)b::int8)
ON CONFLICT (part, outcome) DO UPDATE
SET written = excluded.written, attempts = excluded.attempts, quads = excluded.quads, bytes = excluded.bytes
