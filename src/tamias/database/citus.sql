-- Tables on a Citus cluster. A shard that lies on the coordinator is no table of ours: Citus hides it from pg_class.

-- name: extension
-- The version of Citus, if it is there.
SELECT pg_extension.extversion FROM pg_extension WHERE pg_extension.extname = 'citus'

-- name: coordinator_listed
-- Whether the other nodes know the address of the coordinator.
SELECT FROM pg_dist_node WHERE pg_dist_node.groupid = 0

-- name: coordinator_elsewhere
-- The coordinator, unless this is the server itself.
SELECT pg_dist_node.nodename::text, pg_dist_node.nodeport::text FROM pg_dist_node CROSS JOIN pg_dist_local_group
WHERE pg_dist_node.groupid = 0 AND pg_dist_local_group.groupid <> 0

-- name: shards
-- For each bucket the shard, its node, and the shards of the other tables that lie beside it.
SELECT part.bucket, first.shardid, pg_dist_node.nodename::text, pg_dist_node.nodeport::text,
       beside.names, beside.shards
FROM meta CROSS JOIN generate_series(0, meta.buckets - 1) AS part (bucket)
JOIN pg_dist_shard AS first
  ON first.shardid = get_shard_id_for_distribution_column('tamias.host'::regclass, part.bucket::int2)
JOIN pg_dist_placement ON pg_dist_placement.shardid = first.shardid AND pg_dist_placement.shardstate = 1
JOIN pg_dist_node ON pg_dist_node.groupid = pg_dist_placement.groupid
CROSS JOIN LATERAL (
    SELECT array_agg(pg_class.relname::text) AS names, array_agg(other.shardid) AS shards
    FROM pg_dist_partition AS own
    JOIN pg_dist_partition AS parted ON parted.colocationid = own.colocationid
    JOIN pg_dist_shard AS other ON other.logicalrelid = parted.logicalrelid AND other.shardminvalue = first.shardminvalue
    JOIN pg_class ON pg_class.oid = other.logicalrelid
    WHERE own.logicalrelid = 'tamias.host'::regclass) AS beside

-- name: copies
-- The shards of the tables that every node has.
SELECT pg_class.relname::text, pg_dist_shard.shardid
FROM pg_dist_partition JOIN pg_dist_shard ON pg_dist_shard.logicalrelid = pg_dist_partition.logicalrelid
JOIN pg_class ON pg_class.oid = pg_dist_shard.logicalrelid
WHERE pg_class.relnamespace = 'tamias'::regnamespace AND pg_dist_partition.partmethod = 'n'
  AND pg_dist_partition.repmodel = 't'

-- name: check_node
-- Whether a node can be reached from here.
SELECT citus_check_connection_to_node(%(host)b::text, %(port)b::int4)

-- name: tables
-- All tables.
SELECT pg_class.relname::text FROM pg_class
WHERE pg_class.relnamespace = 'tamias'::regnamespace AND pg_class.relkind IN ('r', 'p') AND NOT pg_class.relispartition
ORDER BY pg_class.relname

-- name: tables_by_bucket
-- Those whose key begins with the bucket.
SELECT constrained.relname::text
FROM pg_constraint AS rule JOIN pg_class AS constrained ON constrained.oid = rule.conrelid
JOIN pg_attribute AS part ON part.attrelid = rule.conrelid AND part.attnum = rule.conkey[1]
WHERE rule.contype = 'p' AND rule.connamespace = 'tamias'::regnamespace AND part.attname = 'bucket'
ORDER BY constrained.relname

-- name: placed
-- Those that Citus knows.
SELECT pg_class.relname::text FROM pg_dist_partition JOIN pg_class ON pg_class.oid = pg_dist_partition.logicalrelid
WHERE pg_class.relnamespace = 'tamias'::regnamespace

-- name: one_connection
-- One table after another by the same connection to a node: they refer to each other.
SET LOCAL citus.multi_shard_modify_mode = 'sequential'

-- name: distribute_first
-- The first table makes the shards.
SELECT create_distributed_table(%(table)b::text::regclass, 'bucket', shard_count => %(shards)b::int4)

-- name: distribute_beside
-- The others lie beside them.
SELECT create_distributed_table(%(table)b::text::regclass, 'bucket', colocate_with => %(first)b::text)

-- name: put_on_every_node
-- A small table that is joined with the distributed ones.
SELECT create_reference_table(%(table)b::text::regclass)

-- name: forget_rights
-- They are given again at the next opportunity.
UPDATE meta SET rights = NULL

-- name: list_as_coordinators
-- A table that stays on the coordinator, for statements at other nodes; with those that it refers to.
SELECT citus_add_local_table_to_metadata(%(table)b::text::regclass, cascade_via_foreign_keys => true)
