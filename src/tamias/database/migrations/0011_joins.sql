-- Join candidates: columns of current tables whose values are, by their sketches, among those of another's.
-- Made anew by the housekeeping; what is here may be a little older than the tables.

CREATE TABLE join_candidate (
    resource text COLLATE "C" NOT NULL REFERENCES resource ON DELETE CASCADE,
    version int NOT NULL,                       -- its number
    place int NOT NULL,                         -- which table of it, from 1
    number int NOT NULL,                        -- which column, from 1
    name text NOT NULL,
    distinct_values int8 NOT NULL,
    within_resource text COLLATE "C" NOT NULL REFERENCES resource ON DELETE CASCADE,
    within_version int NOT NULL,
    within_place int NOT NULL,
    within_number int NOT NULL,
    within_name text NOT NULL,
    within_distinct int8 NOT NULL,
    containment float8 NOT NULL,                -- the share of its values that the other has, estimated
    shared int NOT NULL,                        -- hashes by which this is known
    PRIMARY KEY (resource, place, number, within_resource, within_place, within_number)
);
CREATE INDEX join_candidate_within ON join_candidate (within_resource, resource);

-- The catalogue tells of joins with the resource whose column is contained.
CREATE TRIGGER tell_added AFTER INSERT ON join_candidate REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
CREATE TRIGGER tell_taken AFTER DELETE ON join_candidate REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_resources();
