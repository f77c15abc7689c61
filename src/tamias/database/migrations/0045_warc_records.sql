-- Where responses stand in WARC files, so that they can be listed and replayed by URL and time.

CREATE TABLE warc_record (
    file text COLLATE "C" NOT NULL,             -- the name of the WARC file, wherever it is kept
    position int8 NOT NULL,                     -- of its first byte
    length int8 NOT NULL,                       -- as compressed
    url text COLLATE "C" NOT NULL,
    captured_at int8 NOT NULL,
    status int2 NOT NULL,
    sha256 bytea,                               -- of the body; null: the server said that it has not changed
    revisit bool NOT NULL,                      -- the body stands in another record, or in none
    told_type text,
    crawl int4,                                 -- null where it is not known
    capture uuid,                               -- the visit; null where it is not known
    PRIMARY KEY (file, position)
);
CREATE INDEX warc_record_url ON warc_record (url, captured_at);
CREATE INDEX warc_record_body ON warc_record (sha256) WHERE NOT revisit;

-- All that can be replayed, as lines of one index: versions, and the records of WARC files that are no version.
CREATE VIEW index_line AS
SELECT resource.url, version.captured_at, ''::text COLLATE "C" AS file, version.number::int8 AS position,
       version.byte_size AS length, CASE WHEN resource.url LIKE 'http%' THEN 200 END::int2 AS status, version.sha256,
       version.media_type, version.resource, resource.host, false AS revisit, version.capture
FROM resource JOIN version ON version.resource = resource.resource
UNION ALL
SELECT record.url, record.captured_at, record.file, record.position, record.length, record.status, record.sha256,
       lower(trim(split_part(record.told_type, ';', 1))), NULL, split_part(split_part(record.url, '/', 3), ':', 1),
       record.revisit, record.capture
FROM warc_record AS record
WHERE NOT EXISTS (SELECT FROM resource JOIN version ON version.resource = resource.resource
                  WHERE resource.url = record.url AND version.captured_at = record.captured_at
                    AND version.sha256 = record.sha256);
