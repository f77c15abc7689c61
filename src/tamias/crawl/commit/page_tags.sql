-- Pages that are almost the same as one that was seen before, by their SimHash.

-- name: keep_likeness
-- Notes a page's number under its four quarters, with the time at which it was first seen so.
INSERT INTO likeness (quarter, hash, page, seen_at)
SELECT named.quarter, %(hash)b::int8, %(page)b::int8, %(now)b::int8 FROM unnest(%(quarters)b::int4[]) AS named (quarter)
ORDER BY named.quarter
ON CONFLICT DO NOTHING

-- name: find_alike
-- Whether another page that is almost the same was seen earlier; looks at some of those that share a quarter.
SELECT EXISTS (
    SELECT FROM (
        SELECT likeness.hash, likeness.page, likeness.seen_at FROM likeness
        WHERE likeness.quarter = ANY(%(quarters)b::int4[]) LIMIT %(most)b::int4) AS near
    WHERE near.page <> %(page)b::int8 AND bit_count((near.hash # %(hash)b::int8)::bit(64)) <= %(near)b::int4
      AND (near.seen_at, near.page) < (
          SELECT likeness.seen_at, likeness.page FROM likeness
          WHERE likeness.quarter = %(first)b::int4 AND likeness.hash = %(hash)b::int8
            AND likeness.page = %(page)b::int8))
