-- Captures in WARC files that a retention rule does not keep: their rows of the index are gone, and their records are
-- to be erased. Not part of the frontier: no bucket.
CREATE TABLE erasing_capture (
    url text COLLATE "C" NOT NULL,
    captured_at int8 NOT NULL,
    sha256 bytea NOT NULL,                      -- of the body
    PRIMARY KEY (url, captured_at, sha256)
);

-- Whether some record says that its body is that of another.
CREATE INDEX warc_record_revisit ON warc_record (sha256) WHERE revisit;
