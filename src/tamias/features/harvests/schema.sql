-- The table of harvests.

-- name: version_1
-- Every harvest of a watched portal or other source; one that a pause or a death interrupted is several rows.
CREATE TABLE IF NOT EXISTS harvest_job (
    url text COLLATE "C" NOT NULL,
    started_at int8 NOT NULL,
    kind text NOT NULL,
    ended_at int8,                              -- null while it runs
    outcome int2,                               -- tamias.model.capture.Outcome; null: it runs, or its worker died
    reason text NOT NULL DEFAULT '',
    requests int8 NOT NULL DEFAULT 0,
    added int8 NOT NULL DEFAULT 0,              -- datasets, as are the next two
    changed int8 NOT NULL DEFAULT 0,
    vanished int8 NOT NULL DEFAULT 0,
    failed int8 NOT NULL DEFAULT 0,             -- records that could not be read
    PRIMARY KEY (url, started_at)
);

-- name: rights
-- Workers write harvests, and the web service shows them.
GRANT SELECT, INSERT, UPDATE, DELETE ON harvest_job TO tamias_worker;
GRANT SELECT ON harvest_job TO tamias_service;
