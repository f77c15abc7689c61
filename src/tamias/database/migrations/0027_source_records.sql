-- Records of catalogues as they came: every version of each, to be read again without a request.
CREATE TABLE source_record (
    resource text COLLATE "C" NOT NULL,         -- tamias.model.resource.resource_id of the IRI
    number int NOT NULL,                        -- of the version, from 1
    portal int8 NOT NULL REFERENCES portal ON DELETE CASCADE,
    iri text COLLATE "C" NOT NULL,              -- CATALOGUE#RECORD
    record text COLLATE "C" NOT NULL,           -- the portal's own identifier
    catalogue text COLLATE "C" NOT NULL,
    mapping text NOT NULL,                      -- the rules it is read by, such as ckan
    captured_at int8 NOT NULL,                  -- the start of the harvest that first saw it so
    media_type text NOT NULL,
    sha256 bytea NOT NULL,                      -- of the record
    byte_size int8 NOT NULL,
    body bytea NOT NULL,                        -- the record, in a zstd frame
    PRIMARY KEY (resource, number)
);
CREATE INDEX source_record_portal ON source_record (portal, resource, number);
ALTER TABLE source_record ALTER COLUMN body SET STORAGE EXTERNAL;
