-- The archive: bodies in packs, watched resources, every version of them, and what is known of their content.
-- When a resource is due is the frontier's business (crawl `watch`).

CREATE TABLE pack (
    pack uuid PRIMARY KEY,                      -- the name of a file or object, see docs/blobs.md
    state text NOT NULL DEFAULT 'open',         -- open: may get more blobs; sealed: will not; gone: to be removed
    made_at timestamptz NOT NULL DEFAULT now(),
    CHECK (state IN ('open', 'sealed', 'gone'))
);
CREATE INDEX pack_unsealed ON pack (state) WHERE state <> 'sealed';

-- Bodies: each once, by its digest, in packs.
CREATE TABLE blob (
    sha256 bytea PRIMARY KEY,                   -- of the body
    size int8 NOT NULL,                         -- of the body
    codec text NOT NULL,                        -- tamias.archive.blobs.blob.Codec
    base bytea,                                 -- the blob it is decoded with; of one in chunks, their list
    depth int2 NOT NULL,                        -- bases to be decoded before it
    stored int8 NOT NULL,                       -- bytes of the payload, with which its record ends
    pack uuid NOT NULL,
    start int8 NOT NULL,                        -- of its record in the pack
    length int8 NOT NULL,                       -- of its record
    kept_at timestamptz NOT NULL DEFAULT now()  -- when somebody last relied on it
) WITH (fillfactor = 90);
CREATE INDEX blob_place ON blob (pack, start);
CREATE INDEX blob_base ON blob (base) WHERE base IS NOT NULL;

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
    visited_at int8,                            -- the last attempt that showed whether it changed
    tried_at int8,                              -- the last attempt
    next_visit int8,
    fails int NOT NULL DEFAULT 0,               -- attempts in a row without a usable answer
    gone_at int8,
    hint_at int8,                               -- the latest time at which somebody says it changed
    frequency text,                             -- how often it changes, by a sitemap or a catalogue
    every int8 CHECK (every > 0),               -- how often the user wants it visited, in ms; null: by the schedule
    wanted_at int8,                             -- when somebody last asked for a visit: an earlier one is no answer
    priority real CHECK (priority > 0),         -- what it counts beside others, by the user; null: by the settings
    trouble text,                               -- why the latest visit brought nothing; null when it did
    error text,                                 -- the latest trouble; it stays when a later visit succeeds
    error_at int8,
    items int8,                                 -- of the current version: its rows, statements, items or files
    suspicious text,                            -- of the current version: why it was suspicious
    suspicious_since int8,                      -- responses are suspicious since then; null: the last one was not
    CHECK (state IN ('active', 'gone', 'stopped'))
) WITH (fillfactor = 80);
CREATE INDEX resource_host ON resource (host, resource);
CREATE INDEX resource_type ON resource (media_type, resource);
CREATE INDEX resource_change ON resource (captured_at);
CREATE INDEX resource_gone ON resource (gone_at) WHERE gone_at IS NOT NULL;
CREATE INDEX resource_trouble ON resource (tried_at DESC) WHERE trouble IS NOT NULL AND state <> 'stopped';

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
CREATE INDEX source_name ON source (source);

CREATE TABLE version (
    resource text COLLATE "C" NOT NULL REFERENCES resource ON DELETE CASCADE,
    number int NOT NULL,
    captured_at int8 NOT NULL,
    sha256 bytea NOT NULL,
    byte_size int8 NOT NULL,
    media_type text,                            -- found
    told_type text,
    fingerprint bytea,                          -- of the content, where its kind has one
    noise text,                                 -- why only bytes differ from the version before; null: content does
    capture uuid NOT NULL,
    suspicious text,                            -- why it was, until it was accepted because it stayed; null: never
    PRIMARY KEY (resource, number)
);
CREATE INDEX version_sha256 ON version (sha256);
CREATE INDEX version_captured ON version (captured_at, resource);
-- The same content under other URLs.
CREATE INDEX version_fingerprint ON version (fingerprint) WHERE fingerprint IS NOT NULL;

-- Suspicious responses: an error page for data, one body under many URLs. Never a version by themselves.
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

-- How often hints about changes proved right.
CREATE TABLE hint_trust (
    host text COLLATE "C" PRIMARY KEY,
    correct int NOT NULL,
    checked int NOT NULL
);

-- Figures and settings of the archive as a whole, such as the threshold of the schedule.
CREATE TABLE figure (
    name text PRIMARY KEY,
    value jsonb NOT NULL,
    set_at int8 NOT NULL
);

-- Every time that a resource left its server and came back. An absence that still lasts is `gone_at` of its row.
CREATE TABLE resource_absence (
    resource text COLLATE "C" NOT NULL REFERENCES resource ON DELETE CASCADE,
    gone_at int8 NOT NULL,                      -- when its server said so
    back_at int8 NOT NULL,
    PRIMARY KEY (resource, gone_at)
);

CREATE FUNCTION note_resource_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.resource_absence (resource, gone_at, back_at)
    VALUES (NEW.resource, OLD.gone_at, coalesce(NEW.tried_at, NEW.captured_at, OLD.gone_at)) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_back AFTER UPDATE OF gone_at ON resource
    FOR EACH ROW WHEN (OLD.gone_at IS NOT NULL AND NEW.gone_at IS NULL) EXECUTE FUNCTION note_resource_back();

-- What was found out about the content of a version; one row for each kind of knowledge.
CREATE TABLE profile (
    sha256 bytea NOT NULL,
    kind text NOT NULL,                         -- table, triples, archive, json, ...
    made_at int8 NOT NULL,
    profile jsonb,                              -- in rows of early versions of Tamias, instead of `packed`
    packed bytea,                               -- MessagePack, compressed with zstd
    PRIMARY KEY (sha256, kind)
);

-- Bodies of versions that wait for their profile. Those that have one do not.
CREATE TABLE profile_due (
    sha256 bytea PRIMARY KEY,
    resource text COLLATE "C" NOT NULL,         -- one that has it
    media_type text,
    captured_at int8 NOT NULL
);
CREATE INDEX profile_due_captured ON profile_due (captured_at);

CREATE FUNCTION note_profiles_due() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    bodies bytea[];
    names text[];
    types text[];
    times int8[];
    known bytea[];
BEGIN
    SELECT array_agg(each.sha256), array_agg(each.resource), array_agg(each.media_type), array_agg(each.captured_at)
    INTO bodies, names, types, times
    FROM (SELECT DISTINCT ON (added.sha256) added.sha256, added.resource, added.media_type, added.captured_at
          FROM added ORDER BY added.sha256) AS each;
    known := ARRAY(SELECT profile.sha256 FROM tamias.profile
                   WHERE profile.sha256 = ANY(bodies) AND profile.kind = 'content');
    INSERT INTO tamias.profile_due (sha256, resource, media_type, captured_at)
    SELECT each.sha256, each.resource, each.media_type, each.captured_at
    FROM unnest(bodies, names, types, times) AS each (sha256, resource, media_type, captured_at)
    WHERE each.sha256 <> ALL(known)
    ORDER BY each.sha256
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_profiles_due AFTER INSERT ON version REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION note_profiles_due();

-- Join candidates: columns of current tables whose values are, by their sketches, among those of another's.
-- Computed by the housekeeping; what is here may be a little older than the tables.
CREATE TABLE join_candidate (
    resource text COLLATE "C" NOT NULL REFERENCES resource ON DELETE CASCADE,
    version int NOT NULL,                       -- its number
    place int NOT NULL,                         -- which table of it, from 1
    number int NOT NULL,                        -- which column, from 1
    name text NOT NULL,
    distinct_values int8 NOT NULL,
    within_resource text COLLATE "C" NOT NULL REFERENCES resource ON DELETE CASCADE,
    within_version int NOT NULL,
    within_place int NOT NULL,
    within_number int NOT NULL,
    within_name text NOT NULL,
    within_distinct int8 NOT NULL,
    containment float8 NOT NULL,                -- the share of its values that the other has, estimated
    shared int NOT NULL,                        -- hashes by which this is known
    PRIMARY KEY (resource, place, number, within_resource, within_place, within_number)
);
CREATE INDEX join_candidate_within ON join_candidate (within_resource, resource);
