-- The budget of a crawl that goes on.

-- name: grant_visits
-- Visits that may be made now: what time brought since they were last granted, up to a burst.
INSERT INTO visit_budget AS known (crawl, at, balance, released_at)
VALUES (%(crawl)b::int4, %(now)b::int8, %(burst)b::float8, %(now)b::int8)
ON CONFLICT (crawl) DO UPDATE
SET balance = least(%(burst)b::float8,
                    known.balance + greatest(0, %(now)b::int8 - known.at) * %(per_ms)b::float8),
    at = greatest(known.at, %(now)b::int8)
RETURNING known.balance

-- name: charge_visits
-- So many were taken.
UPDATE visit_budget SET balance = visit_budget.balance - %(visits)b::float8
WHERE visit_budget.crawl = %(crawl)b::int4
