-- Captures of old months that stand in Parquet files (docs/formats.md), each a stored_file of the kind 'captures'.
-- Their sums are in capture_sum, by the name of the file, with -1 for what was written.
CREATE TABLE moved_captures (
    file uuid PRIMARY KEY,                      -- of stored_file
    part text NOT NULL,                         -- the partition that they were moved from
    first uuid NOT NULL,                        -- the least and the greatest id of a capture
    last uuid NOT NULL,
    captures int8 NOT NULL,
    digest text NOT NULL                        -- of their rows, as the database computes it
);
