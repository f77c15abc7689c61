-- Pages of a host that are alike but for numbers, counted by all workers together: what a calendar without an end
-- has in any number is left alone.
ALTER TABLE host ADD COLUMN alike bytea;
