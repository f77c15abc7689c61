-- How many URLs of a host were visited for the first time, by all workers together, and how many such visits its
-- documents and the links of other hosts have earned: a site without an end is left alone when it has used them up.
ALTER TABLE host ADD COLUMN visits int8 NOT NULL DEFAULT 0, ADD COLUMN earned float8 NOT NULL DEFAULT 0;
