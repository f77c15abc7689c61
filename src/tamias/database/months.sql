-- The partitions of `capture`, one for each month.

-- name: last_partition
-- The one without an end, and the id that it begins with.
SELECT part.relname::text, substring(pg_get_expr(part.relpartbound, part.oid) FROM 'FROM \(''([0-9a-f-]+)''\)')::uuid
FROM pg_inherits JOIN pg_class AS part ON part.oid = pg_inherits.inhrelid
WHERE pg_inherits.inhparent = 'tamias.capture'::regclass
  AND strpos(pg_get_expr(part.relpartbound, part.oid), 'TO (MAXVALUE)') > 0

-- name: owns_captures
-- Whether the table is ours to divide.
SELECT pg_has_role(current_user, pg_class.relowner, 'MEMBER') FROM pg_class WHERE pg_class.oid = 'tamias.capture'::regclass

-- name: wait_briefly
-- Nobody who writes captures is to wait for us, who wait for somebody who reads them all.
SET LOCAL lock_timeout = '1s'

-- name: partitions
-- All of them, the id that each ends with, and how much was ever written to it. On a cluster nobody counts that.
SELECT part.relname::text,
       substring(pg_get_expr(part.relpartbound, part.oid) FROM 'TO \(''([0-9a-f-]+)''\)')::uuid,
       CASE WHEN NOT EXISTS (SELECT FROM pg_extension WHERE pg_extension.extname = 'citus')
            THEN counted.n_tup_ins + counted.n_tup_upd + counted.n_tup_del END
FROM pg_inherits JOIN pg_class AS part ON part.oid = pg_inherits.inhrelid
LEFT JOIN pg_stat_user_tables AS counted ON counted.relid = part.oid
WHERE pg_inherits.inhparent = 'tamias.capture'::regclass
ORDER BY part.relname
