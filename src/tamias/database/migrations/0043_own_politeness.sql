-- Over the frontier's API delay, block and window belong to a queue of one crawl, not to the host that several share.
ALTER TABLE crawl ADD COLUMN own_politeness bool NOT NULL DEFAULT false; -- its queues have hosts' rows of their own
