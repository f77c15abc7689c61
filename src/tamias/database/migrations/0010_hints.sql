-- What others say about when resources change, and how often they proved right.

ALTER TABLE resource ADD COLUMN frequency text;       -- as a sitemap or a catalogue says it

CREATE TABLE hint_trust (
    host text COLLATE "C" PRIMARY KEY,
    correct int NOT NULL,
    checked int NOT NULL
);
