-- Named tokens. A token is "tam_ID_RANDOM"; of the random part, 256 bits, only the SHA-256 of the whole is stored.
CREATE TABLE token (
    token text PRIMARY KEY,
    name text NOT NULL,
    hash bytea NOT NULL,
    scopes text[] NOT NULL,
    -- Hosts, and URLs of portals, that writing calls may concern; none: all.
    bounds text[] NOT NULL,
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

-- Alerts that were sent: one row for each thing that needs attention, removed when it no longer does.
CREATE TABLE alert (
    alert text PRIMARY KEY,
    kind text NOT NULL,
    text text NOT NULL,
    since int8 NOT NULL,
    seen_at int8 NOT NULL
);
-- What is to be sent to whom: claimed by one process, kept until it is sent.
CREATE TABLE alert_message (
    message text PRIMARY KEY,
    target text NOT NULL,
    subject text NOT NULL,
    body text NOT NULL,
    made_at int8 NOT NULL,
    due int8 NOT NULL,
    attempts int4 NOT NULL DEFAULT 0,
    sent_at int8,
    trouble text
);
CREATE INDEX alert_message_due ON alert_message (due) WHERE sent_at IS NULL;
-- When each kind of round was made last: whoever changes the row makes it.
CREATE TABLE alert_round (
    kind text PRIMARY KEY,
    at int8 NOT NULL
);
