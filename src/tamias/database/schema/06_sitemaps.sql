-- Sitemaps: which sites have been opened, and datasets that a site offers as a whole (Semantic Sitemaps).

-- Sites whose sitemaps and well-known addresses have been put into the frontier of a crawl.
CREATE TABLE site (
    bucket int2 NOT NULL,
    qid int8 NOT NULL,
    crawl int4 NOT NULL,
    authority text COLLATE "C" NOT NULL,        -- scheme://host:port
    opened_at int8 NOT NULL,
    depth int2 NOT NULL DEFAULT 0,              -- of the URL that opened it
    sitemaps int8 NOT NULL DEFAULT 0,           -- files that its sitemaps have brought
    sitemap_urls int8 NOT NULL DEFAULT 0,       -- addresses that its sitemaps have brought
    PRIMARY KEY (bucket, qid, crawl, authority)
);

-- Datasets that a site offers as a whole, and how this crawl gets them. A copy covers what it describes: some of the
-- URIs that it should cover are looked up in it, and documents are compared with it statement by statement.
CREATE TABLE site_dataset (
    crawl int4 NOT NULL,
    dataset bytea NOT NULL,                     -- digest of the sitemap's URL and the dataset's place in it
    sitemap text COLLATE "C" NOT NULL,
    state text NOT NULL,                        -- claimed, copying, had, released
    prefixes text[] NOT NULL,                   -- what it covers, while copying or had
    description jsonb NOT NULL,                 -- tamias.model.semantic.SemanticDataset
    plan jsonb NOT NULL,                        -- the ways in, in order: tamias.model.access_plan.Access
    attempt int NOT NULL DEFAULT 0,             -- which of them is under way
    missing text[] NOT NULL DEFAULT '{}',       -- URLs of this attempt that have not been read yet
    seen_at int8 NOT NULL,
    copies jsonb NOT NULL DEFAULT '[]',         -- tamias.model.record.Extent of each document it was read from
    compared int4,                              -- URIs that were looked up; null: not yet
    described int4,                             -- those of them that it describes
    documents int4,                             -- documents that were compared with it; null: not yet
    statements int4,                            -- what they say about their resources
    confirmed int4,                             -- statements of these that the copy has
    PRIMARY KEY (crawl, dataset)
);

-- What sitemaps say of places on other hosts: used only when the other side says the same.
CREATE TABLE site_claim (
    crawl int4 NOT NULL,
    host text COLLATE "C" NOT NULL,             -- of the sitemap
    statement bytea NOT NULL,                   -- digest of what is claimed
    PRIMARY KEY (crawl, statement, host)
);
