-- Bodies that are kept: each once, by its digest, in packs. Not part of the frontier: they have no bucket.

CREATE TABLE pack (
    pack uuid PRIMARY KEY,                      -- the name of a file or object, see docs/blobs.md
    state text NOT NULL DEFAULT 'open',         -- open: rows of its blobs may come; sealed: none will; gone: to be removed
    made_at timestamptz NOT NULL DEFAULT now(),
    CHECK (state IN ('open', 'sealed', 'gone'))
);
CREATE INDEX pack_unsealed ON pack (state) WHERE state <> 'sealed';

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
