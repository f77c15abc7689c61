-- The table of server names.

-- name: version_1
-- How often a host named its software in a response.
CREATE TABLE IF NOT EXISTS server_name (
    host text NOT NULL,
    name text NOT NULL,
    responses int8 NOT NULL,
    PRIMARY KEY (host, name)
);

-- name: rights
-- Workers count.
GRANT SELECT, INSERT, UPDATE ON server_name TO tamias_worker;
