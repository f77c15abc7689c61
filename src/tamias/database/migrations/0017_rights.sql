-- The roles of workers and services get their rights anew when these, or the schema, are others than before.
ALTER TABLE meta ADD COLUMN rights text;        -- which were given last: tamias.database.roles
