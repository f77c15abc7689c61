-- The frontier as a service: clients without a lease hold single URLs, and steer queues by hand.

-- Until when a client holds the URL. It is held while this equals `due`: whoever writes another due time ends it.
ALTER TABLE url ADD COLUMN held_until int8;
ALTER TABLE url ADD COLUMN spelling text COLLATE "C"; -- as the client writes it, where that is not the form to fetch
ALTER TABLE url ADD COLUMN metadata jsonb;            -- the client's: names with lists of texts
CREATE INDEX url_held ON url (bucket, qid, crawl, due) WHERE held_until = due;

ALTER TABLE queue ADD COLUMN most_done int8;          -- when so many of its URLs are done it is not active
ALTER TABLE host ADD COLUMN delay_set bool NOT NULL DEFAULT false; -- its delay was set for it alone

-- One row: what holds for all instances of the service. Not part of the frontier: no bucket.
CREATE TABLE service (
    active bool NOT NULL DEFAULT true,
    delay_ms int4 NOT NULL DEFAULT 1000               -- of queues that have none of their own
);
INSERT INTO service DEFAULT VALUES;

-- The instances of the service, as they tell of themselves.
CREATE TABLE node (
    address text COLLATE "C" PRIMARY KEY,
    seen_at int8 NOT NULL
);
