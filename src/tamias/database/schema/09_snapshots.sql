-- Snapshots: the corpus as it was at a time, under a name, to be cited and exported again with the same bytes.

CREATE TABLE snapshot (
    name text COLLATE "C" PRIMARY KEY,
    at int8 NOT NULL,
    made_at int8 NOT NULL,
    about text NOT NULL,                        -- tamias.features.snapshots.SnapshotAbout as JSON
    datacite text NOT NULL,                     -- metadata in the terms of DataCite, as it is exported
    licences text NOT NULL,                     -- what is declared, by source, as it is exported
    manifest bytea NOT NULL,                    -- a blob: a line of JSON for each version and each graph
    provenance bytea NOT NULL                   -- a blob: the fetches that brought them, as sorted N-Quads
);

-- What brought the versions and graphs that snapshots name. Rules that free old content leave these alone.
CREATE TABLE snapshot_capture (
    capture uuid NOT NULL,
    snapshot text COLLATE "C" NOT NULL REFERENCES snapshot ON DELETE CASCADE,
    PRIMARY KEY (capture, snapshot)
);
