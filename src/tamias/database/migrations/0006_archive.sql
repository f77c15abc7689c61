-- The archive: resources under watch, every version of them, and what was seen in between.
-- Not part of the frontier: no bucket. When a resource is due is the frontier's business (crawl `watch`).

INSERT INTO crawl (crawl, name) VALUES (2, 'watch');
SELECT setval(pg_get_serial_sequence('tamias.crawl', 'crawl'), 2);

CREATE TABLE resource (
    resource text COLLATE "C" PRIMARY KEY,      -- tamias.model.resource.resource_id
    url text COLLATE "C" NOT NULL UNIQUE,       -- the form to fetch
    host text COLLATE "C" NOT NULL,
    state text NOT NULL DEFAULT 'active',       -- active, gone, stopped
    title text,
    expected text,                              -- the media type that its sources promise
    added_at int8 NOT NULL,
    importance real NOT NULL DEFAULT 1,
    -- the current version
    versions int NOT NULL DEFAULT 0,
    sha256 bytea,
    fingerprint bytea,
    media_type text,
    captured_at int8,
    -- the schedule
    history bytea,                              -- tamias.schedule: what visits have seen, as MessagePack
    change_rate float8,                         -- changes a day
    visited_at int8,                            -- the last attempt that told whether it changed
    tried_at int8,                              -- the last attempt
    next_visit int8,
    fails int NOT NULL DEFAULT 0,               -- attempts in a row that told nothing
    gone_at int8,
    hint_at int8,                               -- the latest time at which somebody says it changed
    CHECK (state IN ('active', 'gone', 'stopped'))
) WITH (fillfactor = 80);
CREATE INDEX resource_host ON resource (host, resource);
CREATE INDEX resource_type ON resource (media_type, resource);
CREATE INDEX resource_change ON resource (captured_at);

CREATE TABLE source (
    resource text COLLATE "C" NOT NULL REFERENCES resource ON DELETE CASCADE,
    source text COLLATE "C" NOT NULL,
    portal text COLLATE "C",
    title text,
    format text,
    first_seen int8 NOT NULL,
    last_seen int8 NOT NULL,
    PRIMARY KEY (resource, source)
);
CREATE INDEX source_portal ON source (portal, resource);

CREATE TABLE version (
    resource text COLLATE "C" NOT NULL REFERENCES resource ON DELETE CASCADE,
    number int NOT NULL,
    captured_at int8 NOT NULL,
    sha256 bytea NOT NULL,
    byte_size int8 NOT NULL,
    media_type text,                            -- found
    told_type text,
    fingerprint bytea,                          -- of the content, where its kind has one
    noise bool NOT NULL DEFAULT false,          -- other bytes than the version before, the same content
    capture uuid NOT NULL,
    PRIMARY KEY (resource, number)
);
CREATE INDEX version_sha256 ON version (sha256);
CREATE INDEX version_captured ON version (captured_at, resource);

-- Bodies that look like a lie: an error page for data, one body under many URLs. Never a version by themselves.
CREATE TABLE suspect (
    resource text COLLATE "C" NOT NULL REFERENCES resource ON DELETE CASCADE,
    seen_at int8 NOT NULL,
    sha256 bytea NOT NULL,
    byte_size int8 NOT NULL,
    media_type text,
    reason text NOT NULL,
    capture uuid NOT NULL,
    PRIMARY KEY (resource, seen_at)
);

-- How many URLs of a host gave one and the same body.
CREATE TABLE shared_body (
    host text COLLATE "C" NOT NULL,
    sha256 bytea NOT NULL,
    resources int NOT NULL DEFAULT 0,
    PRIMARY KEY (host, sha256)
);

-- What was found out about the content of a version; one row for each kind of knowledge.
CREATE TABLE profile (
    sha256 bytea NOT NULL,
    kind text NOT NULL,                         -- table, triples, archive, json, ...
    made_at int8 NOT NULL,
    profile jsonb NOT NULL,
    PRIMARY KEY (sha256, kind)
);

-- Quality, measured: of a resource or a portal.
CREATE TABLE measure (
    subject text COLLATE "C" NOT NULL,
    metric text NOT NULL,
    value float8 NOT NULL,
    measured_at int8 NOT NULL,
    PRIMARY KEY (subject, metric)
);

-- Figures and settings of the archive as a whole, such as the threshold of the schedule.
CREATE TABLE figure (
    name text PRIMARY KEY,
    value jsonb NOT NULL,
    set_at int8 NOT NULL
);
