-- The roles that processes act as. The word :role is filled in by roles.py.

-- name: may_act_as
-- Whether a role is there, and whether we may act as it.
SELECT pg_has_role(session_user, role.oid,
                   CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END)
FROM pg_roles AS role WHERE role.rolname = %(role)b::text

-- name: make_role
-- A role that processes act as, and nobody logs in as.
CREATE ROLE :role NOLOGIN NOINHERIT

-- name: join_role
-- A server's user who may make roles is not yet one who may act as them.
GRANT :role TO CURRENT_USER

-- name: rights_given
-- The rights that were given last. A statement of its own: Citus lets nobody but superusers join its tables with
-- those of roles.
SELECT meta.rights FROM meta

-- name: features_seen
-- The features whose steps were taken, each with its last.
SELECT meta.features FROM meta

-- name: standing
-- Whether the schema is ours, and whether we may make roles; the roles we may act as, and those of them that have
-- rights. Citus logs in to its nodes as the role: there it must be one that can.
WITH here AS (
    SELECT EXISTS (SELECT FROM pg_extension WHERE pg_extension.extname = 'citus') AS citus
), ours AS (
    SELECT role.rolname::text AS name, has_schema_privilege(role.oid, room.oid, 'USAGE') AS used
    FROM here, pg_roles AS role JOIN pg_namespace AS room ON room.nspname = 'tamias'
    WHERE role.rolname = ANY(%(roles)b::text[]) AND (role.rolcanlogin OR NOT here.citus)
      AND pg_has_role(session_user, role.oid,
                      CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END)
)
SELECT pg_has_role(session_user, room.nspowner, 'MEMBER'),
       (me.rolsuper OR me.rolcreaterole) AND NOT here.citus, here.citus,
       ARRAY(SELECT ours.name FROM ours), ARRAY(SELECT ours.name FROM ours WHERE ours.used)
FROM here, pg_namespace AS room, pg_roles AS me
WHERE room.nspname = 'tamias' AND me.rolname = session_user

-- name: powers
-- What the user that we are connected as could do outside of its database.
SELECT power.name FROM pg_roles AS me, LATERAL (VALUES
    ('is a superuser', me.rolsuper),
    ('makes roles', me.rolcreaterole),
    ('makes databases', me.rolcreatedb),
    ('replicates the server', me.rolreplication),
    ('passes over row security', me.rolbypassrls),
    ('runs programs', pg_has_role(me.oid, 'pg_execute_server_program', 'MEMBER')),
    ('reads files', pg_has_role(me.oid, 'pg_read_server_files', 'MEMBER')),
    ('writes files', pg_has_role(me.oid, 'pg_write_server_files', 'MEMBER'))
) AS power (name, held)
WHERE me.rolname = session_user AND power.held

-- name: note_rights
-- These were given.
UPDATE meta SET rights = %(rights)b::text
