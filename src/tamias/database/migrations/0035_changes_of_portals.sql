-- Harvests that read only what changed, and records whose content is the same although their bytes differ.
ALTER TABLE walk ADD COLUMN document_at int8;       -- the start of the harvest that made the document; null: not known
ALTER TABLE walk ADD COLUMN document_records int8;  -- the records that it was made of
ALTER TABLE source_record ADD COLUMN content bytea; -- SHA-256 without fields that change by themselves; null: sha256
