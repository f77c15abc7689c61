-- Quality and figures: what a catalogue says of a dataset, and counts that are kept so that nobody has to count.

ALTER TABLE described ADD COLUMN told jsonb;    -- tamias.archive.quality.told.Told; null: noted before there was such

-- Counts as of the last fold; what came since is in `tally_news`. The truth is the sum of both.
CREATE TABLE tally (
    what text NOT NULL,                         -- host, type, size, source, blob: see tamias.archive.figures
    key text COLLATE "C" NOT NULL,
    n int8 NOT NULL,
    bytes int8 NOT NULL,
    PRIMARY KEY (what, key)
);

-- Every statement that adds or takes rows leaves its difference here: writers never wait for one another.
CREATE TABLE tally_news (
    what text NOT NULL,
    key text COLLATE "C" NOT NULL,
    n int8 NOT NULL,
    bytes int8 NOT NULL
);

-- Attempts of five minutes that are over, by outcome. `capture` is on many machines in a cluster: no triggers there.
CREATE TABLE attempts (
    bucket int2 NOT NULL,
    slot int8 NOT NULL,                         -- milliseconds / 300000
    outcome int2 NOT NULL,                      -- 0: the slot was counted, though it may be empty
    n int8 NOT NULL,
    bytes int8 NOT NULL,
    duration int8 NOT NULL,                     -- milliseconds
    PRIMARY KEY (bucket, slot, outcome)
);

CREATE INDEX source_name ON source (source);

-- Sizes are told apart by 5 %: bucket b holds those below 1.05^b - 1.
CREATE FUNCTION size_bucket(size int8) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (floor(ln((size + 1)::float8) / ln(1.05::float8)) + 1)::int::text;

CREATE FUNCTION tally_resources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.tally_news (what, key, n, bytes)
    SELECT 'host', changed.host, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * count(*), 0
    FROM changed GROUP BY changed.host;
    RETURN NULL;
END $$;

CREATE FUNCTION tally_versions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE sign int := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    INSERT INTO tamias.tally_news (what, key, n, bytes)
    SELECT 'type', coalesce(changed.media_type, ''), sign * count(*), sign * sum(changed.byte_size)
    FROM changed GROUP BY 2
    UNION ALL
    SELECT 'size', tamias.size_bucket(changed.byte_size), sign * count(*), 0 FROM changed GROUP BY 2;
    RETURN NULL;
END $$;

-- A source counts once, however many resources it names: with its first row and until its last one.
CREATE FUNCTION tally_sources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.tally_news (what, key, n, bytes)
    SELECT 'source', '', CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END * count(*), 0
    FROM (SELECT changed.source, count(*) AS n FROM changed GROUP BY changed.source) AS each
    WHERE CASE TG_OP
          WHEN 'INSERT' THEN (SELECT count(*) FROM (SELECT FROM tamias.source WHERE source.source = each.source
                                                    LIMIT each.n + 1) AS known) = each.n
          ELSE NOT EXISTS (SELECT FROM tamias.source WHERE source.source = each.source) END
    HAVING count(*) > 0;
    RETURN NULL;
END $$;

CREATE FUNCTION tally_blobs() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE sign int := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    INSERT INTO tamias.tally_news (what, key, n, bytes)
    SELECT 'blob', '', sign * count(*), sign * sum(changed.length) FROM changed HAVING count(*) > 0;
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

-- All counts anew, from the rows: here for what there is already, later for whoever doubts them.
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
