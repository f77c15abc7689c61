-- Files of quads and WARC files, in the data directory of the machine that wrote them or in the archive's store.
-- Readers find them by these rows; no number comes from a sequence any more (docs/formats.md).
CREATE TABLE stored_file (
    file uuid PRIMARY KEY,
    kind text NOT NULL,                         -- the folder it stands in: 'rdf' or 'warc'
    name text NOT NULL UNIQUE,                  -- its name there
    segment int8 UNIQUE,                        -- what rows of captures call it, if it holds quads
    worker int8 NOT NULL,
    committed int8 NOT NULL DEFAULT 0,          -- the length up to which it is durable
    sealed bool NOT NULL DEFAULT false,         -- nothing will be added
    in_store bool NOT NULL DEFAULT false,       -- in the store, not in a data directory
    parts int8[] NOT NULL DEFAULT '{}',         -- where each object of it starts; none: it is one object, or a file
    sha256 bytea                                -- of the whole, once it is one object
);
INSERT INTO stored_file (file, kind, name, segment, worker, committed, sealed)
SELECT gen_random_uuid(), 'rdf', segment.segment || '.nq.zst', segment.segment, segment.worker, segment.committed,
       segment.sealed
FROM segment;
DROP TABLE segment;
CREATE INDEX stored_file_open ON stored_file (worker) WHERE NOT sealed;
CREATE INDEX stored_file_parts ON stored_file (file) WHERE parts <> '{}';
