-- The URLs of a crawl that goes on.

-- name: grant_releases
-- New URLs that may be released now; what is less than one is kept. A pause earns no more than an hour's.
WITH before AS (
    SELECT visit_budget.crawl, visit_budget.credit
           + least(3600000, greatest(0, %(now)b::int8 - visit_budget.released_at)) * %(per_ms)b::float8 AS credit
    FROM visit_budget WHERE visit_budget.crawl = %(crawl)b::int4 FOR UPDATE)
UPDATE visit_budget
SET credit = before.credit - floor(before.credit), released_at = greatest(visit_budget.released_at, %(now)b::int8)
FROM before WHERE visit_budget.crawl = before.crawl
RETURNING floor(before.credit)::int8

-- name: find_unplanned
-- A page of the URLs of a crawl that were read before it went on, and are not planned again.
SELECT url.qid, url.uid FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.crawl = %(crawl)b::int4 AND url.due = 9223372036854775807
  AND url.status IN (1, 2) AND NOT coalesce(url.tags && ARRAY['kind=context', 'kind=robots', 'kind=dump'], false)
  AND NOT EXISTS (SELECT FROM revisit
                  WHERE revisit.bucket = %(bucket)b::int2 AND revisit.qid = url.qid AND revisit.crawl = url.crawl
                    AND revisit.uid = url.uid)
LIMIT %(page)b::int4
