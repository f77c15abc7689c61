-- The login of an embedded cluster, set up by its superuser in a single session, in one transaction. What is done
-- already stays. A blank line ends a statement there, so none has one inside. :verifier is filled in by server.py.

-- name: make_roles
-- The owner, who logs in, and the roles that processes, strategies and readers act as, which nobody logs in as.
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY '{tamias_owner,tamias_worker,tamias_frontier,tamias_service,tamias_strategy,tamias_reader}'::text[] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE pg_roles.rolname = name) THEN
            EXECUTE format('CREATE ROLE %I', name);
        END IF;
        IF name <> 'tamias_owner' THEN
            EXECUTE format('GRANT %I TO tamias_owner', name);
        END IF;
    END LOOP;
END $$

-- name: limit_owner
-- The owner may do nothing outside of its database, and proves itself by a password.
ALTER ROLE tamias_owner LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD ':verifier'

-- name: give_database
-- New schemas, of strategies, are made by the owner of the database.
ALTER DATABASE postgres OWNER TO tamias_owner

-- name: give_contents
-- Earlier versions logged in as the superuser, so that all they made was its own. Objects of extensions stay so.
-- REASSIGN OWNED would want to give away what belongs to the system as well.
DO $$
DECLARE change text;
BEGIN
    FOR change IN
        WITH super AS (
            SELECT oid FROM pg_roles WHERE rolname = current_user
        ), extended AS (
            SELECT classid, objid FROM pg_depend WHERE deptype = 'e'
        ), object (kind, name) AS (
            SELECT 'SCHEMA', format('%I', it.nspname)
            FROM pg_namespace AS it, super
            WHERE it.nspowner = super.oid AND it.oid >= 16384 AND it.nspname !~ '^pg_'
              AND ('pg_namespace'::regclass, it.oid) NOT IN (TABLE extended)
            UNION ALL
            -- A composite type is given below; the sequence of a column goes with its table.
            SELECT CASE it.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
                                   WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END,
                   it.oid::regclass::text
            FROM pg_class AS it, super
            WHERE it.relowner = super.oid AND it.oid >= 16384 AND it.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
              AND it.relpersistence <> 't'
              AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = it.oid
                              AND deptype IN ('a', 'i') AND it.relkind = 'S')
              AND ('pg_class'::regclass, it.oid) NOT IN (TABLE extended)
            UNION ALL
            SELECT 'ROUTINE', it.oid::regprocedure::text
            FROM pg_proc AS it, super
            WHERE it.proowner = super.oid AND it.oid >= 16384
              AND ('pg_proc'::regclass, it.oid) NOT IN (TABLE extended)
            UNION ALL
            -- Types of rows and of arrays go with what they are of.
            SELECT 'TYPE', it.oid::regtype::text
            FROM pg_type AS it LEFT JOIN pg_class AS rows ON rows.oid = it.typrelid, super
            WHERE it.typowner = super.oid AND it.oid >= 16384
              AND (it.typtype IN ('d', 'e', 'r') OR rows.relkind = 'c')
              AND ('pg_type'::regclass, it.oid) NOT IN (TABLE extended)
        )
        SELECT format('ALTER %s %s OWNER TO tamias_owner', kind, name) FROM object
    LOOP
        EXECUTE change;
    END LOOP;
END $$

-- name: close_superuser
-- From now on the superuser exists in a single session only.
ALTER ROLE tamias NOLOGIN PASSWORD NULL

-- name: open_superuser
-- pg_upgrade logs in as the superuser, by a password that is thrown away.
ALTER ROLE tamias LOGIN PASSWORD ':verifier'
