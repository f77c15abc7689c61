-- The stores that SPARQL queries are put to: how far each has followed, and what has changed since.

-- One row for each store. Its documents come by the outbox, as those of any sink.
CREATE TABLE catalogue (
    sink int4 PRIMARY KEY,                      -- its number among the sinks
    service text NOT NULL,                      -- what the IRIs of its resources begin with
    seen xid8 NOT NULL,                         -- news of older transactions are in it
    refreshed_at timestamptz NOT NULL DEFAULT now()
);

-- Every statement that changes what the catalogue says leaves a note here, so that writers never wait for one
-- another. Ordered by transaction: a store asks for those that it may not have seen yet.
CREATE TABLE catalogue_news (
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    kind text NOT NULL,                         -- resource, version, portal, declared
    name text COLLATE "C" NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX catalogue_news_xid ON catalogue_news (xid);

-- Notes names, if there is a store.
CREATE FUNCTION tell_catalogue(kind text, names text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(names) > 0 AND EXISTS (SELECT FROM tamias.catalogue) THEN
        INSERT INTO tamias.catalogue_news (kind, name) SELECT $1, each.name FROM unnest($2) AS each (name);
    END IF;
END $$;

-- Notes all versions of resources.
CREATE FUNCTION tell_of_all_versions(resources text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(resources) > 0 AND EXISTS (SELECT FROM tamias.catalogue) THEN
        PERFORM tamias.tell_catalogue('version', ARRAY(
            SELECT version.resource || '_' || version.number FROM tamias.version
            WHERE version.resource = ANY(resources)));
    END IF;
END $$;

CREATE FUNCTION tell_of_resources() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE names text[] := ARRAY(SELECT DISTINCT changed.resource FROM changed);
BEGIN
    PERFORM tamias.tell_catalogue('resource', names);
    RETURN NULL;
END $$;

-- The title of a resource is part of the titles of its versions.
CREATE FUNCTION tell_of_changed_resources() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    names text[] := ARRAY(SELECT DISTINCT changed.resource FROM changed);
    renamed text[] := ARRAY(SELECT changed.resource FROM changed JOIN was ON was.resource = changed.resource
                            WHERE was.title IS DISTINCT FROM changed.title);
BEGIN
    PERFORM tamias.tell_catalogue('resource', names);
    PERFORM tamias.tell_of_all_versions(renamed);
    RETURN NULL;
END $$;

-- Every version has a graph of its own, which is written once. So it is noted which ones are to be written: new and
-- removed ones, those whose content was profiled, and those whose title has changed.
CREATE FUNCTION tell_of_versions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    names text[] := ARRAY(SELECT DISTINCT changed.resource FROM changed);
    added text[] := ARRAY(SELECT changed.resource || '_' || changed.number FROM changed);
BEGIN
    PERFORM tamias.tell_catalogue('resource', names);
    PERFORM tamias.tell_catalogue('version', added);
    RETURN NULL;
END $$;

-- The version after a removed one names another one as the one before.
CREATE FUNCTION tell_of_versions_taken() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    names text[];
    numbers int[];
    taken text[] := ARRAY(SELECT changed.resource || '_' || changed.number FROM changed);
BEGIN
    SELECT array_agg(first.resource), array_agg(first.number) INTO names, numbers
    FROM (SELECT changed.resource, min(changed.number) AS number FROM changed GROUP BY changed.resource) AS first;
    PERFORM tamias.tell_catalogue('resource', names);
    PERFORM tamias.tell_catalogue('version', taken || ARRAY(
        SELECT later.resource || '_' || later.number
        FROM tamias.version AS later JOIN unnest(names, numbers) AS first (resource, number)
             ON later.resource = first.resource AND later.number > first.number));
    RETURN NULL;
END $$;

CREATE FUNCTION tell_of_source_titles() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE named text[] := ARRAY(SELECT changed.resource FROM changed WHERE changed.title IS NOT NULL);
BEGIN
    PERFORM tamias.tell_of_all_versions(named);
    RETURN NULL;
END $$;

CREATE FUNCTION tell_of_changed_source_titles() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    renamed text[] := ARRAY(
        SELECT changed.resource FROM changed
        JOIN was ON was.resource = changed.resource AND was.source = changed.source
        WHERE changed.title IS DISTINCT FROM was.title);
BEGIN
    PERFORM tamias.tell_of_all_versions(renamed);
    RETURN NULL;
END $$;

-- The head of a resource says nothing of profiles.
CREATE FUNCTION tell_of_profiles() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE bodies bytea[] := ARRAY(SELECT DISTINCT changed.sha256 FROM changed WHERE changed.kind = 'content');
BEGIN
    IF cardinality(bodies) > 0 AND EXISTS (SELECT FROM tamias.catalogue) THEN
        PERFORM tamias.tell_catalogue('version', ARRAY(
            SELECT DISTINCT version.resource || '_' || version.number FROM tamias.version
            WHERE version.sha256 = ANY(bodies)));
    END IF;
    RETURN NULL;
END $$;

-- A subject is a resource, a portal, or a description; descriptions are measured with their portal.
CREATE FUNCTION tell_of_measures() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE subjects text[] := ARRAY(SELECT DISTINCT changed.subject FROM changed);
BEGIN
    PERFORM tamias.tell_catalogue('resource', ARRAY(
        SELECT each.subject FROM unnest(subjects) AS each (subject) WHERE each.subject ~ '^[0-9a-f]{24}$'));
    PERFORM tamias.tell_catalogue('portal', ARRAY(
        SELECT portal.url FROM tamias.portal WHERE portal.url = ANY(subjects)));
    RETURN NULL;
END $$;

CREATE FUNCTION tell_of_portals() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE names text[] := ARRAY(SELECT DISTINCT changed.url FROM changed);
BEGIN
    PERFORM tamias.tell_catalogue('portal', names);
    RETURN NULL;
END $$;

-- Datasets that sites declare.
CREATE FUNCTION tell_of_declared() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE names text[] := ARRAY(SELECT DISTINCT changed.sitemap FROM changed);
BEGIN
    PERFORM tamias.tell_catalogue('declared', names);
    RETURN NULL;
END $$;

CREATE FUNCTION tell_of_forgotten() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE names text[] := ARRAY(SELECT DISTINCT changed.resource FROM changed);
BEGIN
    PERFORM tamias.tell_catalogue('resource', names);
    RETURN NULL;
END $$;

CREATE TRIGGER tell_added AFTER INSERT ON resource REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_changed AFTER UPDATE ON resource REFERENCING OLD TABLE AS was NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_changed_resources();
CREATE TRIGGER tell_taken AFTER DELETE ON resource REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_added AFTER INSERT ON source REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_changed AFTER UPDATE ON source REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_taken AFTER DELETE ON source REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_titles AFTER INSERT ON source REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_source_titles();
CREATE TRIGGER tell_titles_changed AFTER UPDATE ON source REFERENCING OLD TABLE AS was NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_changed_source_titles();
CREATE TRIGGER tell_titles_taken AFTER DELETE ON source REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_source_titles();
CREATE TRIGGER tell_added AFTER INSERT ON version REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_versions();
CREATE TRIGGER tell_taken AFTER DELETE ON version REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_versions_taken();
CREATE TRIGGER tell_added AFTER INSERT ON suspect REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_added AFTER INSERT ON profile REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_profiles();
CREATE TRIGGER tell_changed AFTER UPDATE ON profile REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_profiles();
CREATE TRIGGER tell_added AFTER INSERT ON measure REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_measures();
CREATE TRIGGER tell_changed AFTER UPDATE ON measure REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_measures();
CREATE TRIGGER tell_added AFTER INSERT ON portal REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_portals();
CREATE TRIGGER tell_changed AFTER UPDATE ON portal REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_portals();
CREATE TRIGGER tell_added AFTER INSERT ON site_dataset REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_declared();
CREATE TRIGGER tell_changed AFTER UPDATE ON site_dataset REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_declared();
-- Joins belong to the resource whose column is contained.
CREATE TRIGGER tell_added AFTER INSERT ON join_candidate REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_taken AFTER DELETE ON join_candidate REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_added AFTER INSERT ON forgotten REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_forgotten();
