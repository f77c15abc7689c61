-- The tables of alerts.

-- name: version_1
-- Alerts and the messages about them.

-- Alerts that were sent: one row for each thing that needs attention, removed when it no longer does.
CREATE TABLE IF NOT EXISTS alert (
    alert text PRIMARY KEY,
    kind text NOT NULL,
    text text NOT NULL,
    since int8 NOT NULL,
    seen_at int8 NOT NULL
);

-- What is to be sent to whom: claimed by one process, stored until it is sent.
CREATE TABLE IF NOT EXISTS alert_message (
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
CREATE INDEX IF NOT EXISTS alert_message_due ON alert_message (due) WHERE sent_at IS NULL;

-- When each kind of round was made last: whoever changes the row makes it.
CREATE TABLE IF NOT EXISTS alert_round (
    kind text PRIMARY KEY,
    at int8 NOT NULL
);

-- name: version_2
-- The id of a resource, the address of a portal or the name of a host that an alert is about.
ALTER TABLE alert ADD COLUMN IF NOT EXISTS subject text NOT NULL DEFAULT '';

-- name: rights
-- The web service lists and counts alerts; harvests that fail are found by `walk`.
GRANT SELECT ON alert, walk TO tamias_service;
