-- The peer of the benchmark: all that is known in one table, and the query that comes to mind first.

-- name: make_table
-- One row for each URL. Due in the future while leased; 9223372036854775807 when visited.
CREATE TABLE naive (
    url text COLLATE "C" PRIMARY KEY,
    host text COLLATE "C" NOT NULL,
    due int8 NOT NULL,
    score real NOT NULL
)

-- name: fill_table
-- The same URLs as the frontier has.
INSERT INTO naive (url, host, due, score)
SELECT url.url, host.hkey, url.due, url.score FROM url JOIN host ON host.bucket = url.bucket AND host.qid = url.qid

-- name: make_index
-- For the search by due time.
CREATE INDEX naive_due ON naive (due)

-- name: put
-- Adds URLs that are not known, due now.
INSERT INTO naive (url, host, due, score)
SELECT new.url, new.host, %(now)b::int8, new.score
FROM unnest(%(url)b::text[], %(host)b::text[], %(score)b::float8[]) AS new (url, host, score)
ON CONFLICT DO NOTHING

-- name: lease
-- The best due URLs of the hosts with the best due URLs.
WITH ranked AS (
    SELECT naive.url, naive.host, naive.score,
           row_number() OVER (PARTITION BY naive.host ORDER BY naive.score DESC) AS place
    FROM naive WHERE naive.due <= %(now)b::int8
), best AS (
    SELECT ranked.host FROM ranked WHERE ranked.place = 1 ORDER BY ranked.score DESC LIMIT %(hosts)b::int4
), chosen AS (
    SELECT naive.url FROM naive
    JOIN ranked ON ranked.url = naive.url AND ranked.place <= %(per_host)b::int4
    JOIN best ON best.host = ranked.host
    WHERE naive.due <= %(now)b::int8
    FOR UPDATE OF naive SKIP LOCKED
)
UPDATE naive SET due = %(lease_end)b::int8 FROM chosen WHERE naive.url = chosen.url
RETURNING naive.url, naive.host

-- name: finish
-- Visited, and not to be visited again.
UPDATE naive SET due = 9223372036854775807 WHERE naive.url = ANY(%(url)b::text[])
