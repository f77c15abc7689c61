-- Why links of a visit were not followed, or the URL itself was not asked for: bits of tamias.model.cut.
ALTER TABLE url ADD COLUMN cut int2 NOT NULL DEFAULT 0;
-- How many URLs were opened again after their visit, since a shorter way or a wider option was found.
ALTER TABLE queue ADD COLUMN again int8 NOT NULL DEFAULT 0;
