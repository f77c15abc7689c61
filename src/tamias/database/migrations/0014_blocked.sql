-- What block lists kept out: links, seeds, and known URLs when their turn came. Not part of the frontier: no bucket.
CREATE TABLE blocked (
    list text COLLATE "C" PRIMARY KEY,
    urls int8 NOT NULL,
    latest int8 NOT NULL                        -- milliseconds UTC
);
