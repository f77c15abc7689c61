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
