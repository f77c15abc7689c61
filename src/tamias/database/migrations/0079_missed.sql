-- Versions of each watched resource that probably came and went between two visits.
ALTER TABLE resource ADD COLUMN missed float8 NOT NULL DEFAULT 0;
