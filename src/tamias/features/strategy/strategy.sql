-- Strategy as SQL. Words with a colon are filled in by versions.py: the schema of one version, and its calls.

-- name: grant_use
-- The role that strategies run as owns their functions, and can name what is in our schema.
GRANT USAGE ON SCHEMA tamias TO tamias_strategy

-- name: grant_reading
-- The role can read what docs/strategy.md describes, and nothing else.
GRANT SELECT ON tamias.frontier_urls, tamias.links, tamias.pages TO tamias_strategy

-- name: grant_columns
-- The same on a Citus cluster: its nodes are asked as the role for the columns of the tables that the views name.
GRANT SELECT (bucket, qid, crawl, url, score, depth, tags, due, status, fails, first_seen)
    ON tamias.url TO tamias_strategy;
GRANT SELECT (bucket, qid, hkey) ON tamias.host TO tamias_strategy;
GRANT SELECT (crawl, name) ON tamias.crawl TO tamias_strategy;
GRANT SELECT (bucket, crawl, first_seen, count, from_score, from_quads, language, anchor, context_left, context_right,
              from_url, to_url)
    ON tamias.link TO tamias_strategy;
GRANT SELECT (bucket, crawl, url, final_url, started_at, outcome, status, found_type, bytes, quads, links, depth)
    ON tamias.capture TO tamias_strategy

-- name: make_schema
-- A room of its own for one version.
CREATE SCHEMA :schema AUTHORIZATION tamias_strategy

-- name: drop_schema
-- All that there is of a version.
DROP SCHEMA IF EXISTS :schema CASCADE

-- name: make_url_type
-- The type of URLs that strategies of other crawlers name (docs/strategy.md); without it `url` is our table's.
CREATE DOMAIN :schema.url AS text

-- name: make_builder
-- Runs the text of a strategy as the role. In a function that runs as its owner no other role can be taken.
-- What the text puts off to the end of the transaction, when we are ourselves again, is done here.
CREATE FUNCTION :schema.tamias_build(text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = :schema, tamias, pg_catalog, pg_temp
AS $tamias$ BEGIN EXECUTE $1; SET CONSTRAINTS ALL IMMEDIATE; END $tamias$

-- name: build
-- Makes the functions of a strategy.
SELECT :schema.tamias_build(%(text)b::text)

-- name: drop_builder
-- What runs a strategy's text is there for one time only.
DROP FUNCTION :schema.tamias_build(text)

-- name: find_functions
-- The functions of a version that have a meaning for us, with their arguments and what they return.
SELECT proc.proname, pg_catalog.oidvectortypes(proc.proargtypes), pg_catalog.format_type(proc.prorettype, NULL),
       proc.proretset
FROM pg_catalog.pg_proc AS proc JOIN pg_catalog.pg_namespace AS room ON room.oid = proc.pronamespace
WHERE room.nspname = %(schema)b::text AND proc.proname = ANY(ARRAY['score_url', 'score_link', 'order_url', 'scoreurl', 'scorelink'])
ORDER BY proc.proname

-- name: make_scores
-- All scores of a batch in one call: URLs, and the links to them by the URLs' places.
CREATE FUNCTION :schema.tamias_scores(text[], text[], int4[], int4[], text[],
    int4[], text[], text[], text[], int4[], text[], text[], float8[], int8[])
RETURNS TABLE (place int4, url_score float8, link_score float8, score float8)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = :schema, tamias, pg_catalog, pg_temp AS $tamias$
    WITH given AS MATERIALIZED (
        SELECT it.place::int4 AS place,
               ROW(it.url, it.host, it.depth, it.crawl, string_to_array(it.tags, E'\t'))::tamias.known_url AS page
        FROM unnest($1, $2, $3, $4, $5) WITH ORDINALITY AS it (url, host, depth, crawl, tags, place)
    ), linked AS MATERIALIZED (
        SELECT seen.place, max(nullif((:score_link)::float8, 'NaN')) AS score
        FROM (SELECT it.place, ROW((given.page).url, it.anchor, it.context_left, it.context_right, it.count,
                                   it.language, it.from_url, it.from_score, it.from_quads)::tamias.seen_link AS link
              FROM unnest($6, $7, $8, $9, $10, $11, $12, $13, $14)
                   AS it (place, anchor, context_left, context_right, count, language, from_url, from_score,
                          from_quads)
              JOIN given ON given.place = it.place) AS seen
        GROUP BY seen.place
    ), both_scores AS MATERIALIZED (
        SELECT given.place, given.page, nullif((:score_url)::float8, 'NaN') AS url_score, linked.score AS link_score
        FROM given LEFT JOIN linked ON linked.place = given.place
    )
    SELECT it.place, it.url_score, it.link_score, nullif((:order_url)::float8, 'NaN')
    FROM both_scores AS it ORDER BY it.place
$tamias$

-- name: trust_no_path
-- After the text of a strategy names are those of the catalogue, whatever path it has set.
SET LOCAL search_path = pg_catalog, pg_temp

-- name: find_leftovers
-- What the text of a strategy must not leave, for it would run as somebody else: at the end of the transaction
-- (triggers, cursors), or when others use a name (rules, temporary things, things in the schemas of others);
-- and functions of ours that were changed so that they no longer run as the role.
WITH role AS (
    SELECT it.oid FROM pg_catalog.pg_roles AS it WHERE it.rolname = 'tamias_strategy'
), rooms AS (
    SELECT it.oid FROM pg_catalog.pg_namespace AS it, role WHERE it.nspowner = role.oid
)
SELECT 'leaves a trigger on ' || class.relname AS what
FROM role, pg_catalog.pg_trigger AS it JOIN pg_catalog.pg_class AS class ON class.oid = it.tgrelid
WHERE class.relowner = role.oid
UNION ALL
SELECT 'leaves a rule on ' || class.relname
FROM role, pg_catalog.pg_rewrite AS it JOIN pg_catalog.pg_class AS class ON class.oid = it.ev_class
WHERE class.relowner = role.oid AND it.rulename <> '_RETURN'
UNION ALL
SELECT 'leaves a cursor, ' || it.name FROM pg_catalog.pg_cursors AS it WHERE it.is_holdable
UNION ALL
SELECT 'leaves temporary ' || it.relname FROM role, pg_catalog.pg_class AS it
WHERE it.relowner = role.oid AND it.relpersistence = 't'
UNION ALL
SELECT 'makes ' || it.name || ' outside of its schema'
FROM role, (SELECT class.relname AS name, class.relowner AS owner, class.relnamespace AS room
            FROM pg_catalog.pg_class AS class
            UNION ALL SELECT proc.proname, proc.proowner, proc.pronamespace FROM pg_catalog.pg_proc AS proc
            UNION ALL SELECT op.oprname, op.oprowner, op.oprnamespace FROM pg_catalog.pg_operator AS op) AS it
WHERE it.owner = role.oid AND it.room NOT IN (SELECT rooms.oid FROM rooms)
  AND it.room <> 'pg_toast'::pg_catalog.regnamespace
UNION ALL
SELECT 'changes ' || proc.oid::pg_catalog.regprocedure::text || ', which is Tamias''s own'
FROM role, pg_catalog.pg_proc AS proc
WHERE proc.proowner = role.oid AND proc.proname IN ('tamias_scores', 'tamias_build') AND NOT proc.prosecdef
LIMIT 1

-- name: one_at_a_time
-- Versions are made one after another, so that what changes meanwhile is the doing of the text. One that the server
-- cannot end holds the lock.
SELECT pg_catalog.set_config('lock_timeout', '10s', true), pg_catalog.pg_advisory_xact_lock(2025111633)

-- name: make_here
-- On a Citus cluster a version is made on the coordinator only: other nodes would be told of its parts by different
-- users, of whom one does not see what the other has made. Elsewhere the word means nothing.
SET LOCAL citus.enable_ddl_propagation = off

-- name: state_of_others
-- All that the role owns outside of one schema, with the transactions that wrote it. Text must not change that.
SELECT pg_catalog.md5(pg_catalog.string_agg(it.kind || it.oid::pg_catalog.text || ' ' || it.xmin::pg_catalog.text, ','
                                            ORDER BY it.kind, it.oid, it.part))
FROM (SELECT 'function ' AS kind, proc.oid, 0 AS part, proc.xmin, proc.proowner AS owner, proc.pronamespace AS room
      FROM pg_catalog.pg_proc AS proc
      UNION ALL
      SELECT 'relation ', class.oid, 0, class.xmin, class.relowner, class.relnamespace FROM pg_catalog.pg_class AS class
      UNION ALL
      SELECT 'column ', class.oid, part.attnum, part.xmin, class.relowner, class.relnamespace
      FROM pg_catalog.pg_attribute AS part JOIN pg_catalog.pg_class AS class ON class.oid = part.attrelid
      UNION ALL
      SELECT 'type ', type.oid, 0, type.xmin, type.typowner, type.typnamespace FROM pg_catalog.pg_type AS type
      UNION ALL
      SELECT 'constraint ', rule.oid, 0, rule.xmin, type.typowner, rule.connamespace
      FROM pg_catalog.pg_constraint AS rule JOIN pg_catalog.pg_type AS type ON type.oid = rule.contypid
      UNION ALL
      SELECT 'schema ', room.oid, 0, room.xmin, room.nspowner, room.oid FROM pg_catalog.pg_namespace AS room) AS it
WHERE it.owner = (SELECT role.oid FROM pg_catalog.pg_roles AS role WHERE role.rolname = 'tamias_strategy')
  AND it.room <> %(schema)b::pg_catalog.text::pg_catalog.regnamespace
  AND it.room <> 'pg_toast'::pg_catalog.regnamespace

-- name: find_foreign_rows
-- A table outside of one schema whose rows this transaction has changed.
SELECT it.schemaname || '.' || it.relname FROM pg_catalog.pg_stat_xact_user_tables AS it
WHERE it.schemaname <> %(schema)b::pg_catalog.text AND it.schemaname LIKE 'strategy\_%%'
  AND it.n_tup_ins + it.n_tup_upd + it.n_tup_del > 0
LIMIT 1

-- name: read_only
-- For what follows in this transaction, or the part of it that is rolled back.
SET LOCAL transaction_read_only = on

-- name: limit_time
-- The most milliseconds that each statement may take.
SELECT pg_catalog.set_config('statement_timeout', %(milliseconds)b::text, true)

-- name: unlock
-- Locks of the session are not rolled back with what took them.
SELECT pg_catalog.pg_advisory_unlock_all()

-- name: take_role
-- What follows is done as the role of strategies.
SET LOCAL ROLE tamias_strategy

-- name: leave_role
-- What follows is done as ourselves.
RESET ROLE

-- name: scores
-- The scores of a batch by one version.
SELECT it.place, it.url_score, it.link_score, it.score
FROM :schema.tamias_scores(%(url)b::text[], %(host)b::text[], %(depth)b::int4[], %(crawl)b::int4[],
    %(tags)b::text[], %(place)b::int4[], %(anchor)b::text[], %(context_left)b::text[], %(context_right)b::text[],
    %(count)b::int4[], %(language)b::text[], %(from_url)b::text[], %(from_score)b::float8[],
    %(from_quads)b::int8[]) AS it (place, url_score, link_score, score)

-- name: begin_version
-- A strategy comes in. It is refused until it has been tried.
INSERT INTO strategy (name, text, state, problem, crawl)
VALUES (%(name)b::text, %(text)b::text, 'refused', 'not tried to the end', %(crawl)b::int4)
RETURNING strategy.number

-- name: refuse
-- Why a strategy was not taken.
UPDATE strategy SET problem = %(problem)b::text WHERE strategy.number = %(number)b::int4

-- name: retire
-- The strategy of a crawl that is in force, if any, is so no longer.
UPDATE strategy SET state = 'replaced' WHERE strategy.state = 'in force' AND strategy.crawl = %(crawl)b::int4
RETURNING strategy.number

-- name: put_in_force
-- From now on this one holds.
UPDATE strategy SET state = 'in force', in_force_at = now(), problem = NULL, slow = 0
WHERE strategy.number = %(number)b::int4 AND strategy.crawl = %(crawl)b::int4
  AND (strategy.in_force_at IS NOT NULL) = %(again)b::bool
RETURNING strategy.number

-- name: fail
-- The strategy in force has failed and is so no longer, unless somebody else has said so before; says of which crawl.
UPDATE strategy SET state = 'failed', problem = %(problem)b::text
WHERE strategy.number = %(number)b::int4 AND strategy.state = 'in force' RETURNING strategy.crawl

-- name: count_slow
-- A batch took too long; returns how many have.
UPDATE strategy SET slow = strategy.slow + 1 WHERE strategy.number = %(number)b::int4 RETURNING strategy.slow

-- name: forget_slow
-- A batch was quick enough: only slow ones in a row count.
UPDATE strategy SET slow = 0 WHERE strategy.number = %(number)b::int4 AND strategy.slow > 0

-- name: in_force_before
-- The strategy of a crawl that held last before the present one.
SELECT strategy.number FROM strategy WHERE strategy.state = 'replaced' AND strategy.crawl = %(crawl)b::int4
ORDER BY strategy.in_force_at DESC LIMIT 1

-- name: in_force
-- The strategies in force, by crawl.
SELECT strategy.crawl, strategy.number FROM strategy WHERE strategy.state = 'in force'

-- name: scale_of
-- What the scores of a strategy are divided by.
SELECT strategy.scale FROM strategy WHERE strategy.number = %(number)b::int4

-- name: widen
-- A strategy gives higher scores than any before; says of which crawl it is.
UPDATE strategy SET scale = greatest(strategy.scale, %(scale)b::float8) WHERE strategy.number = %(number)b::int4
RETURNING strategy.crawl

-- name: versions
-- All strategies that were ever brought, the newest first.
SELECT strategy.number, strategy.name, strategy.state, strategy.made_at, strategy.in_force_at, strategy.problem,
       strategy.text, strategy.crawl, coalesce(crawl.name, '')
FROM strategy LEFT JOIN crawl ON crawl.crawl = strategy.crawl ORDER BY strategy.number DESC

-- name: forget_versions
-- Removes the strategies of a crawl.
DELETE FROM strategy WHERE strategy.crawl = %(crawl)b::int4 RETURNING strategy.number

-- name: forget_rescoring
-- Removes how far the scores of a crawl are those of its strategy; none holds any more.
DELETE FROM rescoring WHERE rescoring.of_crawl = %(crawl)b::int4

-- name: start_rescoring
-- All known URLs of a crawl are to be scored again.
INSERT INTO rescoring (of_crawl, done) VALUES (%(crawl)b::int4, false)
ON CONFLICT (of_crawl) DO UPDATE
SET done = false, bucket = excluded.bucket, qid = excluded.qid, crawl = excluded.crawl, uid = excluded.uid

-- name: read_rescoring
-- Where rescoring stands, for whoever goes on with it; nobody else does meanwhile.
SELECT rescoring.of_crawl, rescoring.bucket, rescoring.qid, rescoring.crawl, rescoring.uid FROM rescoring
WHERE NOT rescoring.done ORDER BY rescoring.of_crawl LIMIT 1 FOR UPDATE SKIP LOCKED

-- name: write_rescoring
-- Where rescoring goes on.
UPDATE rescoring SET done = %(done)b::bool, bucket = %(bucket)b::int2, qid = %(qid)b::int8,
    crawl = %(crawl)b::int4, uid = %(uid)b::int8
WHERE rescoring.of_crawl = %(of_crawl)b::int4

-- name: rescoring_left
-- Whether known URLs of a crawl still have to be scored again.
SELECT NOT rescoring.done FROM rescoring WHERE rescoring.of_crawl = %(crawl)b::int4

-- name: put_links
-- Keeps links; a link that is kept already takes on the words it has now. May be done any number of times.
INSERT INTO link (bucket, qid, crawl, uid, from_uid, first_seen, count, from_score, from_quads, language, anchor,
                  context_left, context_right, from_url, to_url)
SELECT %(bucket)b::int2, new.qid, new.crawl, new.uid, new.from_uid, %(now)b::int8, new.count, new.from_score,
       new.from_quads, new.language, new.anchor, new.context_left, new.context_right, new.from_url, new.to_url
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[], %(from_uid)b::int8[], %(count)b::int4[],
            %(from_score)b::float8[], %(from_quads)b::int8[], %(language)b::text[], %(anchor)b::text[],
            %(context_left)b::text[], %(context_right)b::text[], %(from_url)b::text[], %(to_url)b::text[])
     AS new (qid, crawl, uid, from_uid, count, from_score, from_quads, language, anchor, context_left,
             context_right, from_url, to_url)
ORDER BY new.qid, new.crawl, new.uid, new.from_uid
ON CONFLICT (bucket, qid, crawl, uid, from_uid) DO UPDATE
SET count = excluded.count, from_score = excluded.from_score, from_quads = excluded.from_quads,
    language = excluded.language, anchor = excluded.anchor, context_left = excluded.context_left,
    context_right = excluded.context_right
WHERE (link.count, link.from_score, link.from_quads, link.language, link.anchor, link.context_left,
       link.context_right)
      IS DISTINCT FROM (excluded.count, excluded.from_score, excluded.from_quads, excluded.language,
                        excluded.anchor, excluded.context_left, excluded.context_right)

-- name: links_to
-- The links to URLs, some of each: the place among those asked for, and what is told of the link.
SELECT wanted.place::int4, found.anchor, found.context_left, found.context_right, found.count, found.language,
       found.from_url, found.from_score, found.from_quads
FROM unnest(%(qid)b::int8[], %(crawl)b::int4[], %(uid)b::int8[]) WITH ORDINALITY AS wanted (qid, crawl, uid, place)
CROSS JOIN LATERAL (
    SELECT link.* FROM link
    WHERE link.bucket = %(bucket)b::int2 AND link.qid = wanted.qid AND link.crawl = wanted.crawl
      AND link.uid = wanted.uid
    ORDER BY link.from_uid LIMIT %(each)b::int4) AS found

-- name: depth_of
-- How deep a known URL is.
SELECT url.depth FROM url
WHERE url.bucket = %(bucket)b::int2 AND url.qid = %(qid)b::int8 AND url.crawl = %(crawl)b::int4
  AND url.uid = %(uid)b::int8

-- name: read_inbox
-- What people have inserted for a crawl and nobody has taken yet.
SELECT inbox.entry, inbox.url, inbox.crawl, inbox.depth::int4, inbox.score,
       (extract(epoch FROM inbox.due) * 1000)::int8, inbox.tags, inbox.from_url, inbox.anchor, inbox.context_left,
       inbox.context_right, inbox.count, inbox.language
FROM inbox WHERE inbox.problem IS NULL AND inbox.crawl = %(crawl)b::int4 ORDER BY inbox.entry LIMIT %(most)b::int4

-- name: empty_inbox
-- These entries are in the frontier.
DELETE FROM inbox WHERE inbox.entry = ANY(%(entry)b::int8[])

-- name: refuse_entries
-- These cannot be put into the frontier; they stay, with the reason.
UPDATE inbox SET problem = new.problem
FROM unnest(%(entry)b::int8[], %(problem)b::text[]) AS new (entry, problem) WHERE inbox.entry = new.entry
