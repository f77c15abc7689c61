-- Captures: every attempt, the files that hold its quads, what each document holds now, and JSON-LD contexts.

-- One partition for each month. Ids begin with their time, so the key divides them. The last partition has no end, so
-- that there is always room for a capture: tamias.database.months divides it before its first month begins.
CREATE TABLE capture (
    bucket int2 NOT NULL,
    capture uuid NOT NULL,                      -- time-ordered (UUIDv7)
    qid int8 NOT NULL,
    crawl int4 NOT NULL,
    uid int8 NOT NULL,
    started_at int8 NOT NULL,
    ended_at int8 NOT NULL,
    outcome int2 NOT NULL,                      -- tamias.model.outcome.Outcome
    status int2,
    depth int2 NOT NULL,
    bytes int8,
    quads int8 NOT NULL DEFAULT 0,
    links int8 NOT NULL DEFAULT 0,
    sha256 bytea,
    segment int8,                               -- where its quads are: see docs/formats.md
    frame int8,
    start int8,
    length int8,
    url text COLLATE "C" NOT NULL,              -- as requested
    final_url text COLLATE "C",                 -- null when it is the same
    told_type text,
    found_type text,
    reason text NOT NULL,
    hops jsonb,
    problems jsonb,
    renamed_graphs jsonb,
    worker text NOT NULL,
    agent text NOT NULL,
    signals jsonb,                              -- usage signals in force: source, key, value
    deferred bool,                              -- whether it is repeated because nobody could be reached
    saving_ms int4,                             -- from the end of the response until all is written; null: not known
    PRIMARY KEY (bucket, capture)
) PARTITION BY RANGE (capture);

DO $$
DECLARE
    -- The first day of a month, at least a week from now: nobody's clock is there yet.
    month timestamp := date_trunc('month', now() AT TIME ZONE 'UTC' + interval '7 days') + interval '1 month';
    place uuid := (lpad(to_hex((extract(epoch FROM month) * 1000)::int8), 12, '0') || repeat('0', 20))::uuid;
BEGIN
    EXECUTE format('CREATE TABLE capture_first PARTITION OF capture FOR VALUES FROM (MINVALUE) TO (%L)', place);
    EXECUTE format('CREATE TABLE %I PARTITION OF capture FOR VALUES FROM (%L) TO (MAXVALUE)',
                   to_char(month, '"capture_"YYYY_MM'), place);
END $$;

CREATE INDEX capture_first_url ON capture_first (bucket, qid, crawl, uid);
CREATE INDEX capture_url ON capture (bucket, qid, crawl, uid);
-- Attempts that were refused or failed (tamias.model.outcome.Outcome), newest last, by queue.
CREATE INDEX capture_first_trouble ON capture_first (bucket, qid, capture) WHERE outcome IN (4, 5);
CREATE INDEX capture_trouble ON capture (bucket, qid, capture) WHERE outcome IN (4, 5);

-- The sums of captures of months that are over, so that nobody counts them again. `written` is how much had been
-- written to the partition by the server's own count: where that is another by now, the sums are computed again.
CREATE TABLE capture_sum (
    part text NOT NULL,                         -- the partition of capture
    outcome int2 NOT NULL,
    attempts int8 NOT NULL,
    quads int8 NOT NULL,
    bytes int8 NOT NULL,
    written int8 NOT NULL,
    PRIMARY KEY (part, outcome)
);

-- Captures of old months in Parquet files (docs/formats.md), each a stored_file of the kind 'captures'. Their sums are
-- in capture_sum, by the name of the file, with -1 for what was written.
CREATE TABLE moved_captures (
    file uuid PRIMARY KEY,                      -- of stored_file
    part text NOT NULL,                         -- the partition that they were moved from
    first uuid NOT NULL,                        -- the least and the greatest id of a capture
    last uuid NOT NULL,
    captures int8 NOT NULL,
    digest text NOT NULL                        -- of their rows, as the database computes it
);

-- Attempts of five minutes that are over, by outcome. `capture` is on many machines in a cluster: no triggers there.
CREATE TABLE attempts (
    bucket int2 NOT NULL,
    slot int8 NOT NULL,                         -- milliseconds / 300000
    outcome int2 NOT NULL,                      -- 0: the slot was counted, though it may be empty
    n int8 NOT NULL,
    bytes int8 NOT NULL,
    duration int8 NOT NULL,                     -- milliseconds
    saving int8 NOT NULL DEFAULT 0,             -- milliseconds, of those that were measured
    measured int8 NOT NULL DEFAULT 0,
    PRIMARY KEY (bucket, slot, outcome)
);

-- Files of quads, of captures and WARC files, in the data directory of the machine that wrote them or in the archive's
-- store. Readers find them by these rows (docs/formats.md).
CREATE TABLE stored_file (
    file uuid PRIMARY KEY,
    kind text NOT NULL,                         -- its folder: 'rdf', 'warc' or 'captures'
    name text NOT NULL UNIQUE,                  -- its name there
    segment int8 UNIQUE,                        -- how rows of captures name it, if it holds quads
    worker int8 NOT NULL,
    committed int8 NOT NULL DEFAULT 0,          -- the length up to which it is durable
    sealed bool NOT NULL DEFAULT false,         -- nothing will be added
    in_store bool NOT NULL DEFAULT false,       -- in the store, not in a data directory
    parts int8[] NOT NULL DEFAULT '{}',         -- where each object of it starts; none: it is one object, or a file
    sha256 bytea                                -- of the whole, once it is one object
);
CREATE INDEX stored_file_open ON stored_file (worker) WHERE NOT sealed;
CREATE INDEX stored_file_parts ON stored_file (file) WHERE parts <> '{}';

-- What each document holds now: one row for a document, so that nothing current is searched for in all captures.
CREATE TABLE current_document (
    bucket int2 NOT NULL,
    document_key bytea NOT NULL,                -- the first half of the SHA-256 of the document's URL
    qid int8 NOT NULL,
    started_at int8 NOT NULL,
    capture uuid NOT NULL,                      -- the reading, or what ended it
    segment int8,                               -- where its quads are; null: it holds none any more
    frame int8,
    start int8,
    length int8,
    cut bool NOT NULL,                          -- read up to a limit only
    document text COLLATE "C" NOT NULL,
    PRIMARY KEY (bucket, document_key)
);
CREATE INDEX current_document_capture ON current_document (bucket, capture);

-- JSON-LD contexts, fetched once for all workers; without a body: there is none to be had.
CREATE TABLE context (
    url_key bytea PRIMARY KEY,                  -- the SHA-256 of the URL
    fetched_at int8 NOT NULL,
    body bytea,
    url text COLLATE "C" NOT NULL
);
