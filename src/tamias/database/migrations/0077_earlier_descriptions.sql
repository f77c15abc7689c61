-- What portals said of datasets and files until they said something else, so that an earlier day has its own titles.
-- The present words are in the rows of `described` and `offered`. Of data from before, `told_at` is the last harvest
-- that saw them.
ALTER TABLE described ADD COLUMN told_at int8;   -- the start of the harvest that brought its title and IRI
ALTER TABLE offered ADD COLUMN told_at int8;     -- the start of the harvest that brought its title and format
UPDATE described SET told_at = last_seen;
UPDATE offered SET told_at = last_seen;
ALTER TABLE described ALTER COLUMN told_at SET NOT NULL;
ALTER TABLE offered ALTER COLUMN told_at SET NOT NULL;

CREATE TABLE earlier_description (
    portal int8 NOT NULL,
    record text COLLATE "C" NOT NULL,
    url text COLLATE "C" NOT NULL,              -- of the file; empty: the dataset as a whole
    until int8 NOT NULL,                        -- the start of the harvest that brought other words
    told_at int8 NOT NULL,                            -- the start of the harvest that brought these
    iri text COLLATE "C",                       -- of the dataset
    title text,
    format text,                                -- of the file
    PRIMARY KEY (portal, record, url, until),
    FOREIGN KEY (portal, record) REFERENCES described ON DELETE CASCADE
);

-- A portal that says something else with every harvest has its first thousand; of later ones only the last is known.
CREATE FUNCTION note_dataset_reworded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.earlier_description (portal, record, url, until, told_at, iri, title)
    SELECT OLD.portal, OLD.record, '', NEW.told_at, OLD.told_at, left(OLD.iri, 2000), left(OLD.title, 2000)
    WHERE (SELECT count(*) FROM tamias.earlier_description AS earlier
           WHERE earlier.portal = OLD.portal AND earlier.record = OLD.record AND earlier.url = '') < 1000
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION note_file_reworded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.earlier_description (portal, record, url, until, told_at, title, format)
    SELECT OLD.portal, OLD.record, OLD.url, NEW.told_at, OLD.told_at, left(OLD.title, 2000), left(OLD.format, 2000)
    WHERE (SELECT count(*) FROM tamias.earlier_description AS earlier
           WHERE earlier.portal = OLD.portal AND earlier.record = OLD.record AND earlier.url = OLD.url) < 1000
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER note_reworded AFTER UPDATE OF told_at ON described
    FOR EACH ROW WHEN (OLD.told_at < NEW.told_at) EXECUTE FUNCTION note_dataset_reworded();
CREATE TRIGGER note_reworded AFTER UPDATE OF told_at ON offered
    FOR EACH ROW WHEN (OLD.told_at < NEW.told_at) EXECUTE FUNCTION note_file_reworded();
