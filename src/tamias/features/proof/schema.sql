-- The table of proofs.

-- name: version_1
-- Trees over digests of versions that were captured on a day, with their timestamps. Digests of forgotten versions
-- stay: without them the others could not be proved.
CREATE TABLE IF NOT EXISTS proof_tree (
    root bytea PRIMARY KEY,
    day int4 NOT NULL,                          -- since 1970, UTC
    leaves bytea NOT NULL,                      -- digests of 32 bytes, in their order
    token bytea NOT NULL,                       -- TimeStampResp of RFC 3161
    stamped_at int8 NOT NULL,                   -- as it says
    tsa text NOT NULL
);
CREATE INDEX IF NOT EXISTS proof_tree_day ON proof_tree (day, stamped_at);

-- name: rights
-- Workers and the service stamp days that are over.
GRANT SELECT, INSERT ON proof_tree TO tamias_worker, tamias_service;
