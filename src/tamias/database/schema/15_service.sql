-- Services: the frontier's API, named tokens and the audit of calls.

-- One row: what holds for all instances of the frontier's API. On a cluster every node has this table.
CREATE TABLE service (
    active bool NOT NULL DEFAULT true,
    delay_ms int4 NOT NULL DEFAULT 1000,        -- of queues that have none of their own
    single bool NOT NULL DEFAULT true CHECK (single),
    PRIMARY KEY (single)
);
INSERT INTO service DEFAULT VALUES;

-- The instances of the frontier's API, as each announces itself.
CREATE TABLE node (
    address text COLLATE "C" PRIMARY KEY,
    seen_at int8 NOT NULL
);

-- Named tokens. A token is "tam_ID_RANDOM"; of the random part, 256 bits, only the SHA-256 of the whole is stored.
CREATE TABLE token (
    token text PRIMARY KEY,
    name text NOT NULL,
    hash bytea NOT NULL,
    scopes text[] NOT NULL,
    bounds text[] NOT NULL,                     -- hosts, and URLs of portals, that writing calls may concern; none: all
    made_at int8 NOT NULL,
    made_by text NOT NULL,
    expires_at int8,
    withdrawn_at int8,
    withdrawn_by text
);
-- A name can be used again when its token is withdrawn.
CREATE UNIQUE INDEX token_name ON token (name) WHERE withdrawn_at IS NULL;

-- Every call that wrote, or was refused to a known caller.
CREATE TABLE audit (
    entry int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at int8 NOT NULL,
    who text NOT NULL,
    what text NOT NULL,
    targets text[] NOT NULL,
    count int4 NOT NULL,
    outcome text NOT NULL
);
CREATE INDEX audit_at ON audit (at DESC);
