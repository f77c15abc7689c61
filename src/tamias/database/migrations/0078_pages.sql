-- The view `pages` of data from before captures were divided by month reads the first partition alone: a view follows
-- the table that it names when that is renamed.
CREATE OR REPLACE VIEW pages AS
SELECT capture.url, coalesce(capture.final_url, capture.url) AS final_url, crawl.name AS crawl,
       to_timestamp(capture.started_at / 1000.0) AS visited_at,
       (ARRAY['new', 'ok', 'unchanged', 'gone', 'refused', 'failed', 'skipped'])[capture.outcome + 1] AS outcome,
       capture.status::int AS status, capture.found_type AS media_type, capture.bytes, capture.quads,
       capture.links, capture.depth::int AS depth
FROM capture JOIN crawl ON crawl.crawl = capture.crawl;
