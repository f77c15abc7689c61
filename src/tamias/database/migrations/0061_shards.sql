-- A worker on a Citus cluster writes to the tables of a shard on its node, without the planner of Citus. Within the
-- transaction it holds the lock that Citus takes for a write: who moves the shard waits for it. False if the shard is
-- no longer here. The lock is the owner's to take; workers are not the owner.
CREATE FUNCTION hold_shard(in_shard int8) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    PERFORM lock_shard_metadata(5, ARRAY[in_shard]);
    RETURN EXISTS (SELECT FROM pg_dist_placement
                   JOIN pg_dist_local_group ON pg_dist_local_group.groupid = pg_dist_placement.groupid
                   WHERE pg_dist_placement.shardid = in_shard AND pg_dist_placement.shardstate = 1);
END $$;
REVOKE ALL ON FUNCTION hold_shard(int8) FROM PUBLIC;
