-- The steps of the schema after the first, which is in `schema/`. Data out there has taken them: a change is a new one.

-- name: version_78
-- The view `pages` of data from before captures were divided by month reads the first partition alone: a view follows
-- the table that it names when that is renamed.
CREATE OR REPLACE VIEW pages AS
SELECT capture.url, coalesce(capture.final_url, capture.url) AS final_url, crawl.name AS crawl,
       to_timestamp(capture.started_at / 1000.0) AS visited_at,
       (ARRAY['new', 'ok', 'unchanged', 'gone', 'refused', 'failed', 'skipped'])[capture.outcome + 1] AS outcome,
       capture.status::int AS status, capture.found_type AS media_type, capture.bytes, capture.quads,
       capture.links, capture.depth::int AS depth
FROM capture JOIN crawl ON crawl.crawl = capture.crawl;

-- name: version_79
-- Versions of each watched resource that probably came and went between two visits.
ALTER TABLE resource ADD COLUMN missed float8 NOT NULL DEFAULT 0;

-- name: version_80
-- Functions that only data from before the first schema was written anew has; nothing calls them.
DROP FUNCTION IF EXISTS put_few, put_one;

-- name: version_81
-- Features make their own tables; what is here of each, by its name, is the number of its last step.
ALTER TABLE meta ADD COLUMN features jsonb NOT NULL DEFAULT '{}';

-- The limit of a run holds for all workers of the crawl together.
ALTER TABLE crawl ADD COLUMN run int4 NOT NULL DEFAULT 0;
CREATE TABLE visit_share (
    crawl int4 PRIMARY KEY,
    run int4 NOT NULL,
    shares jsonb NOT NULL                       -- URLs that each worker has taken in this run, by its number
);

-- name: version_82
-- Frames of segments that were merged into others (docs/blobs.md): plain bytes of the only frame of such a segment. One
-- that is merged into itself was looked at, and stays as it is.
CREATE TABLE merged_frame (
    segment int8 NOT NULL,
    frame int8 NOT NULL,                        -- where it stood
    into_segment int8 NOT NULL,
    start int8 NOT NULL,
    length int8 NOT NULL,
    next_frame int8 NOT NULL,                   -- where the frame behind it stood
    PRIMARY KEY (segment, frame)
);
CREATE INDEX merged_frame_into ON merged_frame (into_segment);

-- name: version_83
-- Searches rank: words have places and weights. A: titles; B: what portals say; C: columns; D: the address. The title as
-- a whole is one more word, so that what is called exactly so is found among any number.
CREATE FUNCTION weighted_words(told text, weight text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(string_agg(format('''%s'':%s%s', part.word, least(part.place, 16000), weight), ' '), '')::tsvector
        FROM regexp_split_to_table(lower(left(told, 20000)), '[\u0001-/:-@[-`{-\u00bf\u2000-\u206f\u3000-\u303f]+')
             WITH ORDINALITY AS part (word, place)
        WHERE part.word <> '' AND length(part.word) <= 60);

CREATE FUNCTION whole_title(told text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '=' || trim(regexp_replace(lower(left(told, 300)), '[\u0001-/:-@[-`{-\u00bf\u2000-\u206f\u3000-\u303f]+', ' ', 'g'));

CREATE OR REPLACE FUNCTION note_words(wanted text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tamias.findable (resource, words)
    SELECT resource.resource,
           array_to_tsvector(ARRAY[tamias.whole_title(coalesce(resource.title, ''))])
           || tamias.weighted_words(coalesce(resource.title, ''), 'A')
           || tamias.weighted_words(coalesce(said.words, ''), 'B')
           || tamias.weighted_words(coalesce(named.columns, ''), 'C') || tamias.weighted_words(resource.url, 'D')
    FROM tamias.resource
    LEFT JOIN LATERAL (
        SELECT string_agg(concat_ws(' ', described.title, described.told ->> 'publisher_name', described.told ->> 'about'),
                          ' ') AS words
        FROM tamias.offered
        JOIN tamias.described ON described.portal = offered.portal AND described.record = offered.record
        WHERE offered.url = resource.url) AS said ON true
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

-- A portal calls its datasets, or says of them, something else.
CREATE FUNCTION find_described() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    portals int8[];
    records text[];
BEGIN
    SELECT array_agg(now.portal), array_agg(now.record) INTO portals, records
    FROM now JOIN was ON was.portal = now.portal AND was.record = now.record
    WHERE (was.title, was.told) IS DISTINCT FROM (now.title, now.told);
    PERFORM tamias.note_words(ARRAY(
        SELECT DISTINCT resource.resource
        FROM unnest(portals, records) AS each (portal, record)
        JOIN tamias.offered ON offered.portal = each.portal AND offered.record = each.record
        JOIN tamias.resource ON resource.url = offered.url));
    RETURN NULL;
END $$;
CREATE TRIGGER find_described AFTER UPDATE ON described REFERENCING OLD TABLE AS was NEW TABLE AS now
    FOR EACH STATEMENT EXECUTE FUNCTION find_described();

CREATE FUNCTION find_unoffered() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE urls text[] := ARRAY(SELECT DISTINCT changed.url FROM changed);
BEGIN
    PERFORM tamias.note_words(ARRAY(SELECT resource.resource FROM tamias.resource WHERE resource.url = ANY(urls)));
    RETURN NULL;
END $$;
CREATE TRIGGER find_unoffered AFTER DELETE ON offered REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION find_unoffered();

SELECT note_words(ARRAY(SELECT resource.resource FROM resource));

-- name: version_84
-- Portals and other sources that are harvested are steered one by one. `state` is 'active', 'stopped' or 'removed'; null
-- for what is only known, from pages or from a crawl.
ALTER TABLE portal ADD COLUMN state text;
ALTER TABLE portal ADD COLUMN every int8;       -- milliseconds between two harvests; null: schedule.harvests
ALTER TABLE portal ADD COLUMN found text COLLATE "C";       -- the portal that was found at an address of it
ALTER TABLE portal ADD COLUMN named_by text COLLATE "C";    -- the query that names its datasets
INSERT INTO portal (url, kind, first_seen, state)
SELECT DISTINCT ON (url.url) url.url, substring(tags.tag FROM 6), url.first_seen, 'active'
FROM lane CROSS JOIN unnest(lane.tags) AS tags (tag)
JOIN queue ON queue.lane = lane.lane AND queue.crawl = 2
JOIN url ON url.bucket = queue.bucket AND url.qid = queue.qid AND url.crawl = 2 AND url.lane = queue.lane
WHERE url.due < 9223372036854775807 AND tags.tag LIKE 'kind=%'
  AND tags.tag NOT IN ('kind=sitemap', 'kind=probe', 'kind=context', 'kind=robots', 'kind=dump', 'kind=refresh',
                       'kind=requisite')
ORDER BY url.url, tags.tag = 'kind=portal'
ON CONFLICT (url) DO UPDATE SET state = excluded.state;
