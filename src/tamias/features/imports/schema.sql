-- Which records of other crawlers are here.

-- name: version_1
-- By a digest of all of a record: one that was forgotten stays in the list, and is not taken again.
CREATE TABLE IF NOT EXISTS imported_record (
    digest bytea PRIMARY KEY
);

-- name: rights
-- Only the owner imports.
GRANT SELECT ON imported_record TO tamias_worker;
