-- Where responses are in WARC files, so that they can be listed and replayed by URL and time.

CREATE TABLE warc_record (
    file text COLLATE "C" NOT NULL,             -- the name of the WARC file, wherever it is stored
    position int8 NOT NULL,                     -- of its first byte
    length int8 NOT NULL,                       -- as compressed
    url text COLLATE "C" NOT NULL,
    captured_at int8 NOT NULL,
    status int2 NOT NULL,
    sha256 bytea,                               -- of the body; null: the server said that it has not changed
    revisit bool NOT NULL,                      -- the body is in another record, or in none
    told_type text,
    crawl int4,                                 -- null where it is not known
    capture uuid,                               -- the visit; null where it is not known
    PRIMARY KEY (file, position)
);
CREATE INDEX warc_record_url ON warc_record (url, captured_at);
CREATE INDEX warc_record_body ON warc_record (sha256) WHERE NOT revisit;
-- Whether some record says that its body is that of another.
CREATE INDEX warc_record_revisit ON warc_record (sha256) WHERE revisit;

-- Captures that a retention rule removes: their rows of the index are gone, and their records are to be erased.
CREATE TABLE erasing_capture (
    url text COLLATE "C" NOT NULL,
    captured_at int8 NOT NULL,
    sha256 bytea NOT NULL,                      -- of the body
    PRIMARY KEY (url, captured_at, sha256)
);
