-- How many links lead from the pages of a host to another, for the graph of hosts. Not part of the frontier: no bucket.
CREATE TABLE host_link (
    from_host text COLLATE "C" NOT NULL,
    to_host text COLLATE "C" NOT NULL,
    links int8 NOT NULL,
    PRIMARY KEY (from_host, to_host)
) WITH (fillfactor = 80);

-- Feeds say when a resource went.
CREATE INDEX resource_gone ON resource (gone_at) WHERE gone_at IS NOT NULL;
