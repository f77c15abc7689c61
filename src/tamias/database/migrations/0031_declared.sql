-- Datasets that sites declare are told of in the catalogue: whoever keeps one is noted of each that is new or changed.
CREATE FUNCTION tell_of_declared() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.catalogue_news (kind, name)
    SELECT DISTINCT 'declared', changed.sitemap FROM changed WHERE EXISTS (SELECT FROM tamias.catalogue);
    RETURN NULL;
END $$;

CREATE TRIGGER tell_added AFTER INSERT ON site_dataset REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_declared();
CREATE TRIGGER tell_changed AFTER UPDATE ON site_dataset REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_declared();
