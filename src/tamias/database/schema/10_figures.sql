-- Quality, and counts that are maintained so that nobody has to count.
-- Triggers read the rows of their statement into variables, and write what they found in a statement of its own: Citus
-- plans none that has both a table that it knows and such rows. That holds for all files.

-- Quality, measured: of a resource or a portal.
CREATE TABLE measure (
    subject text COLLATE "C" NOT NULL,
    metric text NOT NULL,
    value float8 NOT NULL,
    measured_at int8 NOT NULL,
    PRIMARY KEY (subject, metric)
);

-- Counts as of the last fold; what came since is in `tally_news`. The truth is the sum of both.
CREATE TABLE tally (
    what text NOT NULL,                         -- host, type, size, source, blob: see tamias.features.stats.figures
    key text COLLATE "C" NOT NULL,
    n int8 NOT NULL,
    bytes int8 NOT NULL,
    PRIMARY KEY (what, key)
);

-- Every statement that adds or removes rows leaves its difference here: writers never wait for one another.
CREATE TABLE tally_news (
    what text NOT NULL,
    key text COLLATE "C" NOT NULL,
    n int8 NOT NULL,
    bytes int8 NOT NULL
);

-- Sizes are divided by 5 %: bucket b holds those below 1.05^b - 1.
CREATE FUNCTION size_bucket(size int8) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (floor(ln((size + 1)::float8) / ln(1.05::float8)) + 1)::int::text;

CREATE FUNCTION tally_resources() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign int := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
    hosts text[] := ARRAY(SELECT changed.host FROM changed);
BEGIN
    INSERT INTO tamias.tally_news (what, key, n, bytes)
    SELECT 'host', each.host, sign * count(*), 0 FROM unnest(hosts) AS each (host) GROUP BY each.host;
    RETURN NULL;
END $$;

CREATE FUNCTION tally_versions() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- A source counts once, however many resources it names: with its first row and until its last one.
CREATE FUNCTION tally_sources() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE FUNCTION tally_blobs() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE FUNCTION tally_moved_blob() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.tally_news (what, key, n, bytes) VALUES ('blob', '', 0, NEW.length - OLD.length);
    RETURN NULL;
END $$;

CREATE TRIGGER tally_added AFTER INSERT ON resource REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tally_resources();
CREATE TRIGGER tally_taken AFTER DELETE ON resource REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tally_resources();
CREATE TRIGGER tally_added AFTER INSERT ON version REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tally_versions();
CREATE TRIGGER tally_taken AFTER DELETE ON version REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tally_versions();
CREATE TRIGGER tally_added AFTER INSERT ON source REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tally_sources();
CREATE TRIGGER tally_taken AFTER DELETE ON source REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tally_sources();
CREATE TRIGGER tally_added AFTER INSERT ON blob REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tally_blobs();
CREATE TRIGGER tally_taken AFTER DELETE ON blob REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tally_blobs();
CREATE TRIGGER tally_moved AFTER UPDATE OF length ON blob
    FOR EACH ROW WHEN (NEW.length <> OLD.length) EXECUTE FUNCTION tally_moved_blob();

-- Computes all counts from the rows.
CREATE FUNCTION recount() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE tamias.resource, tamias.source, tamias.version, tamias.blob IN SHARE MODE;
    DELETE FROM tamias.tally;
    DELETE FROM tamias.tally_news;
    INSERT INTO tamias.tally (what, key, n, bytes)
    SELECT 'host', resource.host, count(*), 0 FROM tamias.resource GROUP BY resource.host
    UNION ALL
    SELECT 'type', coalesce(version.media_type, ''), count(*), sum(version.byte_size) FROM tamias.version GROUP BY 2
    UNION ALL
    SELECT 'size', tamias.size_bucket(version.byte_size), count(*), 0 FROM tamias.version GROUP BY 2
    UNION ALL
    SELECT 'source', '', count(DISTINCT source.source), 0 FROM tamias.source
    UNION ALL
    SELECT 'blob', '', count(*), coalesce(sum(blob.length), 0) FROM tamias.blob;
END $$;
SELECT recount();
