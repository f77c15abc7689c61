-- In the catalogue every version has a graph of its own, which is written once. So it is noted which versions are to
-- be written: new and removed ones, those whose content was profiled, and those whose title has changed.

CREATE FUNCTION tell_of_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.catalogue_news (kind, name)
    SELECT noted.kind, noted.name
    FROM (SELECT DISTINCT 'resource' AS kind, changed.resource AS name FROM changed
          UNION ALL
          SELECT 'version', changed.resource || '_' || changed.number FROM changed) AS noted
    WHERE EXISTS (SELECT FROM tamias.catalogue);
    RETURN NULL;
END $$;

-- The version after a removed one names another one as the one before.
CREATE FUNCTION tell_of_versions_taken() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.catalogue_news (kind, name)
    SELECT noted.kind, noted.name
    FROM (SELECT DISTINCT 'resource' AS kind, changed.resource AS name FROM changed
          UNION ALL
          SELECT 'version', changed.resource || '_' || changed.number FROM changed
          UNION ALL
          SELECT 'version', later.resource || '_' || later.number
          FROM (SELECT changed.resource, min(changed.number) AS number FROM changed GROUP BY changed.resource) AS first
          JOIN tamias.version AS later ON later.resource = first.resource AND later.number > first.number) AS noted
    WHERE EXISTS (SELECT FROM tamias.catalogue);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_of_profiles() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.catalogue_news (kind, name)
    SELECT DISTINCT noted.kind, noted.name
    FROM changed JOIN tamias.version ON version.sha256 = changed.sha256
    CROSS JOIN LATERAL (VALUES ('resource', version.resource), ('version', version.resource || '_' || version.number))
         AS noted (kind, name)
    WHERE EXISTS (SELECT FROM tamias.catalogue);
    RETURN NULL;
END $$;

-- The title of a resource is part of the titles of its versions.
CREATE FUNCTION tell_of_changed_resources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.catalogue_news (kind, name)
    SELECT noted.kind, noted.name
    FROM (SELECT DISTINCT 'resource' AS kind, changed.resource AS name FROM changed
          UNION ALL
          SELECT 'version', version.resource || '_' || version.number
          FROM changed JOIN was ON was.resource = changed.resource AND was.title IS DISTINCT FROM changed.title
          JOIN tamias.version ON version.resource = changed.resource) AS noted
    WHERE EXISTS (SELECT FROM tamias.catalogue);
    RETURN NULL;
END $$;

CREATE FUNCTION tell_of_source_titles() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.catalogue_news (kind, name)
    SELECT DISTINCT 'version', version.resource || '_' || version.number
    FROM changed JOIN tamias.version ON version.resource = changed.resource
    WHERE changed.title IS NOT NULL AND EXISTS (SELECT FROM tamias.catalogue);
    RETURN NULL;
END $$;

CREATE FUNCTION tell_of_changed_source_titles() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.catalogue_news (kind, name)
    SELECT DISTINCT 'version', version.resource || '_' || version.number
    FROM changed JOIN was ON was.resource = changed.resource AND was.source = changed.source
    JOIN tamias.version ON version.resource = changed.resource
    WHERE changed.title IS DISTINCT FROM was.title AND EXISTS (SELECT FROM tamias.catalogue);
    RETURN NULL;
END $$;

DROP TRIGGER tell_added ON version;
DROP TRIGGER tell_taken ON version;
CREATE TRIGGER tell_added AFTER INSERT ON version REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_versions();
CREATE TRIGGER tell_taken AFTER DELETE ON version REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_versions_taken();
DROP TRIGGER tell_changed ON resource;
CREATE TRIGGER tell_changed AFTER UPDATE ON resource REFERENCING OLD TABLE AS was NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_changed_resources();
CREATE TRIGGER tell_titles AFTER INSERT ON source REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_source_titles();
CREATE TRIGGER tell_titles_changed AFTER UPDATE ON source REFERENCING OLD TABLE AS was NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_changed_source_titles();
CREATE TRIGGER tell_titles_taken AFTER DELETE ON source REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_source_titles();

-- Stores of earlier versions have other graphs: they are filled from the beginning.
DELETE FROM catalogue;
