-- The sums of captures of months that are over, so that nobody counts them again. `written` is how much had been
-- written to the partition by the server's own count: where that is another by now, the sums are made anew.
CREATE TABLE capture_sum (
    part text NOT NULL,                         -- the partition of capture
    outcome int2 NOT NULL,
    attempts int8 NOT NULL,
    quads int8 NOT NULL,
    bytes int8 NOT NULL,
    written int8 NOT NULL,
    PRIMARY KEY (part, outcome)
);
