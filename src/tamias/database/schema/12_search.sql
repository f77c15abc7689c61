-- Search: the words of each resource.

-- The words of a text, as they are searched: lower case, divided by signs, none longer than people write.
CREATE FUNCTION search_words(told text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(array_agg(DISTINCT part.word), '{}')
        FROM regexp_split_to_table(lower(left(told, 20000)), '[\u0001-/:-@[-`{-\u00bf\u2000-\u206f\u3000-\u303f]+') AS part (word)
        WHERE part.word <> '' AND length(part.word) <= 60);

-- Not in `resource`: that row changes with every visit, its words hardly ever.
CREATE TABLE findable (
    resource text COLLATE "C" PRIMARY KEY REFERENCES resource ON DELETE CASCADE,
    words tsvector NOT NULL                     -- of title, address and the columns of the current version
);
CREATE INDEX findable_words ON findable USING gin (words);

-- Computes the words of some resources. In PL/pgSQL: Citus takes no SQL function whose statement has a parameter.
CREATE FUNCTION note_words(wanted text[]) RETURNS void LANGUAGE plpgsql AS $$
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

CREATE FUNCTION find_new() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE names text[] := ARRAY(SELECT changed.resource FROM changed);
BEGIN
    PERFORM tamias.note_words(names);
    RETURN NULL;
END $$;

CREATE FUNCTION find_renamed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tamias.note_words(ARRAY[NEW.resource]);
    RETURN NULL;
END $$;

-- A body that was profiled may be the current one of several resources.
CREATE FUNCTION find_profiled() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE bodies bytea[] := ARRAY(SELECT changed.sha256 FROM changed WHERE changed.kind = 'table');
BEGIN
    PERFORM tamias.note_words(ARRAY(
        SELECT DISTINCT version.resource FROM tamias.version WHERE version.sha256 = ANY(bodies)));
    RETURN NULL;
END $$;

CREATE TRIGGER find_added AFTER INSERT ON resource REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION find_new();
CREATE TRIGGER find_renamed AFTER UPDATE OF title ON resource
    FOR EACH ROW WHEN (NEW.title IS DISTINCT FROM OLD.title) EXECUTE FUNCTION find_renamed();
CREATE TRIGGER find_profiled AFTER INSERT ON profile REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION find_profiled();
CREATE TRIGGER find_profiled_anew AFTER UPDATE ON profile REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION find_profiled();
