-- A copy of a dataset is compared with documents of resources that it covers, statement by statement.
ALTER TABLE site_dataset
    ADD COLUMN documents int4,                      -- how many; null: not yet
    ADD COLUMN statements int4,                     -- what they say about their resources
    ADD COLUMN confirmed int4;                      -- statements of these that the copy has
