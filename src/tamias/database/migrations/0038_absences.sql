-- Every time that a dataset or a file left a portal, or a resource its server, and came back. An absence that still
-- lasts is `gone_at` of its row; one that is over stands here.
ALTER TABLE offered ADD COLUMN first_seen int8;  -- the start of the harvest that saw it first
ALTER TABLE offered ADD COLUMN gone_at int8;     -- the start of the first harvest that read its dataset without it
UPDATE offered SET first_seen = described.first_seen FROM described
WHERE described.portal = offered.portal AND described.record = offered.record;

CREATE TABLE absence (
    portal int8 NOT NULL REFERENCES portal ON DELETE CASCADE,
    record text COLLATE "C" NOT NULL,
    url text COLLATE "C" NOT NULL,              -- of the file; empty: the dataset as a whole
    gone_at int8 NOT NULL,
    back_at int8 NOT NULL,
    PRIMARY KEY (portal, record, url, gone_at)
);

CREATE TABLE resource_absence (
    resource text COLLATE "C" NOT NULL REFERENCES resource ON DELETE CASCADE,
    gone_at int8 NOT NULL,                      -- when its server said so
    back_at int8 NOT NULL,
    PRIMARY KEY (resource, gone_at)
);

CREATE FUNCTION note_dataset_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.absence (portal, record, url, gone_at, back_at)
    VALUES (NEW.portal, NEW.record, '', OLD.gone_at, NEW.last_seen) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION note_file_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.absence (portal, record, url, gone_at, back_at)
    VALUES (NEW.portal, NEW.record, NEW.url, OLD.gone_at, NEW.last_seen) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION note_resource_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.resource_absence (resource, gone_at, back_at)
    VALUES (NEW.resource, OLD.gone_at, coalesce(NEW.tried_at, NEW.captured_at, OLD.gone_at)) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER note_back AFTER UPDATE OF gone_at ON described
    FOR EACH ROW WHEN (OLD.gone_at < NEW.last_seen AND NEW.gone_at IS NULL) EXECUTE FUNCTION note_dataset_back();
CREATE TRIGGER note_back AFTER UPDATE OF gone_at ON offered
    FOR EACH ROW WHEN (OLD.gone_at < NEW.last_seen AND NEW.gone_at IS NULL) EXECUTE FUNCTION note_file_back();
CREATE TRIGGER note_back AFTER UPDATE OF gone_at ON resource
    FOR EACH ROW WHEN (OLD.gone_at IS NOT NULL AND NEW.gone_at IS NULL) EXECUTE FUNCTION note_resource_back();
