-- What could not be reached, so that it is tried again later, by whichever run, and given up in the end.

CREATE TABLE unreachable (
    bucket int2 NOT NULL,
    qid int8 NOT NULL,
    authority text COLLATE "C" NOT NULL,        -- scheme, host and port
    since int8 NOT NULL,
    tries int2 NOT NULL,
    next_at int8 NOT NULL,                      -- its URLs are due then
    reason text NOT NULL,
    given_up bool NOT NULL DEFAULT false,
    PRIMARY KEY (bucket, qid, authority)
);

-- Whether the attempt is repeated because nobody could be reached.
ALTER TABLE capture ADD COLUMN deferred bool;
