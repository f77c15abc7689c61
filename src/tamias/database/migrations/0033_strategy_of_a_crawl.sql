-- A strategy belongs to one crawl, and so does rescoring; people insert links as well as URLs; how long it took to
-- analyse and store a response; the last error of a resource; who set a tag.

ALTER TABLE strategy ADD COLUMN crawl int4 NOT NULL DEFAULT 1;
DROP INDEX strategy_in_force;
CREATE UNIQUE INDEX strategy_in_force ON strategy (crawl) WHERE state = 'in force';

-- One row for each crawl that ever had a strategy.
ALTER TABLE rescoring ADD COLUMN of_crawl int4 NOT NULL DEFAULT 1;
ALTER TABLE rescoring ADD PRIMARY KEY (of_crawl);

-- An entry with from_url is a link, inserted into the view links; its url is where the link leads.
ALTER TABLE inbox ADD COLUMN from_url text, ADD COLUMN anchor text, ADD COLUMN context_left text,
                  ADD COLUMN context_right text, ADD COLUMN count int4, ADD COLUMN language text;

CREATE FUNCTION insert_link() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wanted int;
BEGIN
    IF NEW.from_url IS NULL OR NEW.to_url IS NULL OR NEW.from_url = '' OR NEW.to_url = ''
       OR length(NEW.from_url) > 8192 OR length(NEW.to_url) > 8192 THEN
        RAISE EXCEPTION 'links: from_url and to_url must have between 1 and 8192 characters';
    END IF;
    IF NEW.count < 1 THEN
        RAISE EXCEPTION 'links: count must be at least 1';
    END IF;
    SELECT crawl.crawl INTO wanted FROM tamias.crawl WHERE crawl.name = coalesce(NEW.crawl, 'default');
    IF wanted IS NULL THEN
        RAISE EXCEPTION 'links: there is no crawl "%"', NEW.crawl;
    END IF;
    INSERT INTO tamias.inbox (crawl, depth, url, from_url, anchor, context_left, context_right, count, language)
    VALUES (wanted, 0, NEW.to_url, NEW.from_url, NEW.anchor, NEW.context_left, NEW.context_right,
            coalesce(NEW.count, 1), NEW.language);
    RETURN NEW;
END
$$;
CREATE TRIGGER insert_link INSTEAD OF INSERT ON links FOR EACH ROW EXECUTE FUNCTION insert_link();

-- From the end of the response until all of it was analysed and written; null where that was not measured.
ALTER TABLE capture ADD COLUMN saving_ms int4;
ALTER TABLE attempts ADD COLUMN saving int8 NOT NULL DEFAULT 0,     -- milliseconds, of those that were measured
                     ADD COLUMN measured int8 NOT NULL DEFAULT 0;

-- The latest reason why a visit brought nothing; unlike trouble it stays when a later visit succeeds.
ALTER TABLE resource ADD COLUMN error text, ADD COLUMN error_at int8;
UPDATE resource SET error = trouble, error_at = tried_at WHERE trouble IS NOT NULL;

-- Tags that somebody set, as far as that is known; those that the crawler finds itself have no row.
CREATE TABLE tagged (
    bucket int2 NOT NULL,
    qid int8 NOT NULL,
    crawl int4 NOT NULL,
    uid int8 NOT NULL,
    tag text NOT NULL,
    set_by text NOT NULL,
    set_at int8 NOT NULL,
    PRIMARY KEY (bucket, qid, crawl, uid, tag)
);
