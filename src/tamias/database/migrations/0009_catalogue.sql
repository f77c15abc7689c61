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
    kind text NOT NULL,                         -- resource, portal
    name text COLLATE "C" NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX catalogue_news_xid ON catalogue_news (xid);

-- Where there is no store, there is nobody to be told.
CREATE FUNCTION tell_of_resources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.catalogue_news (kind, name)
    SELECT DISTINCT 'resource', changed.resource FROM changed WHERE EXISTS (SELECT FROM tamias.catalogue);
    RETURN NULL;
END $$;

CREATE FUNCTION tell_of_profiles() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.catalogue_news (kind, name)
    SELECT DISTINCT 'resource', version.resource FROM changed JOIN tamias.version ON version.sha256 = changed.sha256
    WHERE EXISTS (SELECT FROM tamias.catalogue);
    RETURN NULL;
END $$;

-- A subject is a resource, a portal, or a description; descriptions are measured with their portal.
CREATE FUNCTION tell_of_measures() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.catalogue_news (kind, name)
    SELECT DISTINCT 'resource', changed.subject FROM changed
    WHERE changed.subject ~ '^[0-9a-f]{24}$' AND EXISTS (SELECT FROM tamias.catalogue)
    UNION ALL
    SELECT DISTINCT 'portal', portal.url FROM changed JOIN tamias.portal ON portal.url = changed.subject
    WHERE EXISTS (SELECT FROM tamias.catalogue);
    RETURN NULL;
END $$;

CREATE FUNCTION tell_of_portals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.catalogue_news (kind, name)
    SELECT DISTINCT 'portal', changed.url FROM changed WHERE EXISTS (SELECT FROM tamias.catalogue);
    RETURN NULL;
END $$;

CREATE TRIGGER tell_added AFTER INSERT ON resource REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_changed AFTER UPDATE ON resource REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_taken AFTER DELETE ON resource REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_added AFTER INSERT ON source REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_changed AFTER UPDATE ON source REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_taken AFTER DELETE ON source REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_added AFTER INSERT ON version REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_taken AFTER DELETE ON version REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
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
