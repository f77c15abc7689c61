-- Captures by month. The table that was there becomes the first partition as it is; ids of captures begin with their
-- time, so the key divides them. The last partition has no end, so that there is always room for a capture:
-- tamias.database.months divides it before its first month begins.

ALTER TABLE capture RENAME TO capture_first;
ALTER INDEX capture_pkey RENAME TO capture_first_pkey;
ALTER INDEX capture_url RENAME TO capture_first_url;
ALTER INDEX capture_trouble RENAME TO capture_first_trouble;

CREATE TABLE capture (LIKE capture_first INCLUDING DEFAULTS) PARTITION BY RANGE (capture);
ALTER TABLE capture ADD PRIMARY KEY (bucket, capture);
CREATE INDEX capture_url ON capture (bucket, qid, crawl, uid);
CREATE INDEX capture_trouble ON capture (bucket, qid, capture) WHERE outcome IN (4, 5);

DO $$
DECLARE
    -- The first day of a month, at least a week from now: nobody's clock is there yet.
    month timestamp := date_trunc('month', now() AT TIME ZONE 'UTC' + interval '7 days') + interval '1 month';
    place uuid := (lpad(to_hex((extract(epoch FROM month) * 1000)::int8), 12, '0') || repeat('0', 20))::uuid;
BEGIN
    -- On a cluster the whole is placed as its part is.
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        EXECUTE 'SELECT create_distributed_table(''tamias.capture'', ''bucket'', colocate_with => ''tamias.host'')
                 FROM pg_dist_partition WHERE logicalrelid = ''tamias.host''::regclass';
    END IF;
    EXECUTE format('ALTER TABLE capture ATTACH PARTITION capture_first FOR VALUES FROM (MINVALUE) TO (%L)', place);
    EXECUTE format('CREATE TABLE %I PARTITION OF capture FOR VALUES FROM (%L) TO (MAXVALUE)',
                   to_char(month, '"capture_"YYYY_MM'), place);
END $$;
