-- A version may come with its profile: then nobody has to make one, and the catalogue is told of the version alone.

-- Bodies that have a profile do not wait for one.
CREATE OR REPLACE FUNCTION note_profiles_due() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    bodies bytea[];
    names text[];
    types text[];
    times int8[];
    known bytea[];
BEGIN
    SELECT array_agg(each.sha256), array_agg(each.resource), array_agg(each.media_type), array_agg(each.captured_at)
    INTO bodies, names, types, times
    FROM (SELECT DISTINCT ON (added.sha256) added.sha256, added.resource, added.media_type, added.captured_at
          FROM added ORDER BY added.sha256) AS each;
    known := ARRAY(SELECT profile.sha256 FROM tamias.profile
                   WHERE profile.sha256 = ANY(bodies) AND profile.kind = 'content');
    INSERT INTO tamias.profile_due (sha256, resource, media_type, captured_at)
    SELECT each.sha256, each.resource, each.media_type, each.captured_at
    FROM unnest(bodies, names, types, times) AS each (sha256, resource, media_type, captured_at)
    WHERE each.sha256 <> ALL(known)
    ORDER BY each.sha256
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

-- The head of a resource says nothing of profiles.
CREATE OR REPLACE FUNCTION tell_of_profiles() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE bodies bytea[] := ARRAY(SELECT DISTINCT changed.sha256 FROM changed WHERE changed.kind = 'content');
BEGIN
    IF cardinality(bodies) > 0 AND EXISTS (SELECT FROM tamias.catalogue) THEN
        PERFORM tamias.tell_catalogue('version', ARRAY(
            SELECT DISTINCT version.resource || '_' || version.number FROM tamias.version
            WHERE version.sha256 = ANY(bodies)));
    END IF;
    RETURN NULL;
END $$;
