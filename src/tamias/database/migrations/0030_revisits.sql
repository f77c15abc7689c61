-- Crawls that go on: what visits of a URL have seen and how often it changes, the budget of visits of a crawl, and
-- new URLs that wait for their share of it (their due time is 9223372036854775806).

CREATE TABLE revisit (
    bucket int2 NOT NULL,
    qid int8 NOT NULL,
    crawl int4 NOT NULL,
    uid int8 NOT NULL,
    sha256 bytea,                               -- of the body that was read last
    history bytea,                              -- tamias.schedule.history, before the first visit null
    rate real,                                  -- changes a day; null where no further visits are planned
    importance real NOT NULL DEFAULT 1,
    visited_at int8,                            -- the last visit that told whether it changed
    hint_at int8,                               -- when it changed by the word of a sitemap
    frequency text,                             -- how often it changes, by the same
    priority real,                              -- and what it is worth
    moved bool NOT NULL DEFAULT false,          -- the last visit was redirected for good
    PRIMARY KEY (bucket, qid, crawl, uid)
) WITH (fillfactor = 80);

CREATE TABLE visit_budget (
    crawl int4 PRIMARY KEY,
    at int8 NOT NULL,                           -- up to when visits were granted
    balance float8 NOT NULL,                    -- visits that may be made now
    released_at int8 NOT NULL,                  -- up to when new URLs were released
    credit float8 NOT NULL DEFAULT 0            -- of new URLs: less than one
);

CREATE INDEX url_waiting ON url (bucket, crawl, score DESC) WHERE due = 9223372036854775806;

-- What was kept on the way of a crawl, and nobody watches, is promised no visit.
UPDATE resource SET next_visit = NULL
WHERE resource.next_visit IS NOT NULL
  AND NOT EXISTS (SELECT FROM source WHERE source.resource = resource.resource);
