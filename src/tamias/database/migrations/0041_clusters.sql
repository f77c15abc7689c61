-- What a Citus cluster needs (docs/scaling.md).

-- Tables of one row get a key: without one they cannot be copied to a new node while they are in use.
ALTER TABLE meta ADD COLUMN single bool NOT NULL DEFAULT true CHECK (single);
ALTER TABLE meta ADD PRIMARY KEY (single);
ALTER TABLE service ADD COLUMN single bool NOT NULL DEFAULT true CHECK (single);
ALTER TABLE service ADD PRIMARY KEY (single);

-- Triggers read the rows of their statement by themselves, and write what they found in a statement of its own:
-- Citus plans none that has both a table that it knows and such rows.
CREATE OR REPLACE FUNCTION tally_resources() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign int := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
    hosts text[] := ARRAY(SELECT changed.host FROM changed);
BEGIN
    INSERT INTO tamias.tally_news (what, key, n, bytes)
    SELECT 'host', each.host, sign * count(*), 0 FROM unnest(hosts) AS each (host) GROUP BY each.host;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tally_versions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign int := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
    types text[];
    sizes int8[];
BEGIN
    SELECT array_agg(coalesce(changed.media_type, '')), array_agg(changed.byte_size) INTO types, sizes FROM changed;
    INSERT INTO tamias.tally_news (what, key, n, bytes)
    SELECT 'type', each.type, sign * count(*), sign * sum(each.size)
    FROM unnest(types, sizes) AS each (type, size) GROUP BY 2
    UNION ALL
    SELECT 'size', tamias.size_bucket(each.size), sign * count(*), 0 FROM unnest(sizes) AS each (size) GROUP BY 2;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tally_sources() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign int := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
    names text[];
    counts int8[];
    found int8 := 0;
    known int8;
BEGIN
    SELECT array_agg(each.source), array_agg(each.n) INTO names, counts
    FROM (SELECT changed.source, count(*) AS n FROM changed GROUP BY changed.source) AS each;
    FOR place IN 1 .. coalesce(cardinality(names), 0) LOOP
        SELECT count(*) INTO known
        FROM (SELECT FROM tamias.source WHERE source.source = names[place] LIMIT counts[place] + 1) AS those;
        IF (known = CASE TG_OP WHEN 'INSERT' THEN counts[place] ELSE 0 END) THEN
            found := found + 1;
        END IF;
    END LOOP;
    IF found > 0 THEN
        INSERT INTO tamias.tally_news (what, key, n, bytes)
        VALUES ('source', '', sign * found, 0);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tally_blobs() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign int := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
    number int8;
    total int8;
BEGIN
    SELECT count(*), sum(changed.length) INTO number, total FROM changed;
    IF number > 0 THEN
        INSERT INTO tamias.tally_news (what, key, n, bytes) VALUES ('blob', '', sign * number, sign * total);
    END IF;
    RETURN NULL;
END $$;

-- News for the catalogue, if somebody keeps one.
CREATE FUNCTION tell_catalogue(kind text, names text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(names) > 0 AND EXISTS (SELECT FROM tamias.catalogue) THEN
        INSERT INTO tamias.catalogue_news (kind, name) SELECT $1, each.name FROM unnest($2) AS each (name);
    END IF;
END $$;

-- The same of all versions of resources.
CREATE FUNCTION tell_of_all_versions(resources text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(resources) > 0 AND EXISTS (SELECT FROM tamias.catalogue) THEN
        PERFORM tamias.tell_catalogue('version', ARRAY(
            SELECT version.resource || '_' || version.number FROM tamias.version
            WHERE version.resource = ANY(resources)));
    END IF;
END $$;

CREATE OR REPLACE FUNCTION tell_of_resources() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE names text[] := ARRAY(SELECT DISTINCT changed.resource FROM changed);
BEGIN
    PERFORM tamias.tell_catalogue('resource', names);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_of_versions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    names text[] := ARRAY(SELECT DISTINCT changed.resource FROM changed);
    added text[] := ARRAY(SELECT changed.resource || '_' || changed.number FROM changed);
BEGIN
    PERFORM tamias.tell_catalogue('resource', names);
    PERFORM tamias.tell_catalogue('version', added);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_of_versions_taken() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE FUNCTION tell_of_profiles() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE bodies bytea[] := ARRAY(SELECT changed.sha256 FROM changed);
BEGIN
    IF EXISTS (SELECT FROM tamias.catalogue) THEN
        PERFORM tamias.tell_catalogue('resource', ARRAY(
            SELECT DISTINCT version.resource FROM tamias.version WHERE version.sha256 = ANY(bodies)));
        PERFORM tamias.tell_catalogue('version', ARRAY(
            SELECT DISTINCT version.resource || '_' || version.number FROM tamias.version
            WHERE version.sha256 = ANY(bodies)));
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_of_changed_resources() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    names text[] := ARRAY(SELECT DISTINCT changed.resource FROM changed);
    renamed text[] := ARRAY(SELECT changed.resource FROM changed JOIN was ON was.resource = changed.resource
                            WHERE was.title IS DISTINCT FROM changed.title);
BEGIN
    PERFORM tamias.tell_catalogue('resource', names);
    PERFORM tamias.tell_of_all_versions(renamed);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_of_source_titles() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE named text[] := ARRAY(SELECT changed.resource FROM changed WHERE changed.title IS NOT NULL);
BEGIN
    PERFORM tamias.tell_of_all_versions(named);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_of_changed_source_titles() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    renamed text[] := ARRAY(
        SELECT changed.resource FROM changed
        JOIN was ON was.resource = changed.resource AND was.source = changed.source
        WHERE changed.title IS DISTINCT FROM was.title);
BEGIN
    PERFORM tamias.tell_of_all_versions(renamed);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_of_measures() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE subjects text[] := ARRAY(SELECT DISTINCT changed.subject FROM changed);
BEGIN
    PERFORM tamias.tell_catalogue('resource', ARRAY(
        SELECT each.subject FROM unnest(subjects) AS each (subject) WHERE each.subject ~ '^[0-9a-f]{24}$'));
    PERFORM tamias.tell_catalogue('portal', ARRAY(
        SELECT portal.url FROM tamias.portal WHERE portal.url = ANY(subjects)));
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_of_portals() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE names text[] := ARRAY(SELECT DISTINCT changed.url FROM changed);
BEGIN
    PERFORM tamias.tell_catalogue('portal', names);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_of_declared() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE names text[] := ARRAY(SELECT DISTINCT changed.sitemap FROM changed);
BEGIN
    PERFORM tamias.tell_catalogue('declared', names);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION find_new() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE names text[] := ARRAY(SELECT changed.resource FROM changed);
BEGIN
    PERFORM tamias.note_words(names);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION find_profiled() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE bodies bytea[] := ARRAY(SELECT changed.sha256 FROM changed WHERE changed.kind = 'table');
BEGIN
    PERFORM tamias.note_words(ARRAY(
        SELECT DISTINCT version.resource FROM tamias.version WHERE version.sha256 = ANY(bodies)));
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_versions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    names text[];
    numbers int[];
    times int8[];
BEGIN
    SELECT array_agg(added.resource), array_agg(added.number), array_agg(added.captured_at)
    INTO names, numbers, times FROM added;
    INSERT INTO tamias.event_news (kind, resource, number, at)
    SELECT 'version', each.resource, each.number, each.at
    FROM unnest(names, numbers, times) AS each (resource, number, at);
    RETURN NULL;
END $$;

-- As before, but in PL/pgSQL: Citus takes no SQL function whose statement has a parameter.
CREATE OR REPLACE FUNCTION note_words(wanted text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.findable (resource, words)
    SELECT resource.resource,
           array_to_tsvector(tamias.search_words(concat_ws(' ', resource.title, resource.url, named.columns)))
    FROM tamias.resource
    LEFT JOIN LATERAL (
        SELECT string_agg(col.value ->> 'name', ' ') AS columns
        FROM tamias.profile
        CROSS JOIN LATERAL jsonb_array_elements(profile.profile) AS tab
        CROSS JOIN LATERAL jsonb_array_elements(coalesce(tab.value -> 'columns', '[]')) AS col
        WHERE profile.sha256 = resource.sha256 AND profile.kind = 'table') AS named ON true
    WHERE resource.resource = ANY(wanted)
    ORDER BY resource.resource
    ON CONFLICT (resource) DO UPDATE SET words = excluded.words WHERE findable.words <> excluded.words;
END $$;

CREATE OR REPLACE FUNCTION note_profiles_due() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    bodies bytea[];
    names text[];
    types text[];
    times int8[];
BEGIN
    SELECT array_agg(each.sha256), array_agg(each.resource), array_agg(each.media_type), array_agg(each.captured_at)
    INTO bodies, names, types, times
    FROM (SELECT DISTINCT ON (added.sha256) added.sha256, added.resource, added.media_type, added.captured_at
          FROM added ORDER BY added.sha256) AS each;
    INSERT INTO tamias.profile_due (sha256, resource, media_type, captured_at)
    SELECT each.sha256, each.resource, each.media_type, each.captured_at
    FROM unnest(bodies, names, types, times) AS each (sha256, resource, media_type, captured_at)
    ORDER BY each.sha256
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
