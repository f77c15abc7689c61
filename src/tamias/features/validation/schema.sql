-- Schemas of tables, and what was found against them.

-- name: version_1
-- `tables` are the resources that a version of a schema is for. Of a file that was looked for and is no schema, or is
-- not there, the number is 0. `is_valid` is null where a version was not checked; its faults say why.
CREATE TABLE IF NOT EXISTS schema_file (
    file text COLLATE "C" NOT NULL,             -- its resource
    number int4 NOT NULL,
    captured_at int8 NOT NULL,
    tables text[] NOT NULL,
    PRIMARY KEY (file, number)
);
CREATE TABLE IF NOT EXISTS schema_check (
    resource text COLLATE "C" NOT NULL,
    number int4 NOT NULL,
    file text COLLATE "C" NOT NULL,
    file_number int4 NOT NULL,
    is_valid bool,
    faults jsonb NOT NULL,
    checked_at int8 NOT NULL,
    PRIMARY KEY (resource, number, file)
);
CREATE INDEX IF NOT EXISTS resource_of_schema ON resource (resource)
    WHERE url ~ '(-metadata|[./]schema|/datapackage)\.json$';

-- name: rights
-- The service and workers check after visits.
GRANT SELECT, INSERT, UPDATE ON schema_file, schema_check TO tamias_worker, tamias_service;
