"""A crawl on a real Citus asks each bucket's own node, and goes on with the others while one is away."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from benchmarks.cluster.table import FAULTS
from benchmarks.cluster.trial import Size, Trial
from tamias.database.connect import Database

SMALL = Size(seconds=8, hosts=12, pages=20)
BY_NAME = {each.name: each for each in FAULTS}
ROW = "INSERT INTO host (bucket, qid, hkey, delay_ms, ready_at) VALUES (%(bucket)b, %(qid)b, 'h', 1, 1)"
READ = b"SELECT host.qid FROM host WHERE host.bucket = %(bucket)b::int2 ORDER BY host.qid"


@pytest.fixture
def tried(citus, tmp_path, table):
    """`tried(name)`: the result of a crawl with a fault of the table."""
    made = []

    def attempt(name, *, far=False):
        fault = BY_NAME[name]
        trial = Trial(tmp_path / "trial", citus, SMALL, far=far, nodes=fault.nodes)
        made.append(trial)
        result = trial.run(fault.breaking)
        table.append(f"{'Citus: ' + name + (', far' if far else ''):<28}{result.figure}")
        assert result.ok, result.figure
        return trial

    yield attempt
    for trial in made:
        trial.drop()


@pytest.mark.parametrize("name", ["node-killed", "node-frozen"])
def test_a_node_that_is_away_stalls_only_its_own_buckets(tried, name):
    trial = tried(name)
    assert trial.longest_pause is not None
    assert trial.longest_pause < SMALL.seconds / 2  # not as long as the node was away


@pytest.mark.parametrize("name", ["shard-moved", "node-added", "worker-killed"])
def test_a_crawl_follows_the_shards(tried, name):
    tried(name)


def test_far_workers_outlive_a_service(tried):
    tried("service-killed", far=True)


@pytest.fixture
def spread(citus, tamias_at):
    name = "directly"
    url = citus.make_database(name)
    tamias = tamias_at("directly")
    tamias.env |= {"TAMIAS_DB": url, "TAMIAS_FRONTIER__BUCKETS": "16", "PGOPTIONS": ""}
    done = tamias.run("cluster init", "--shards", "8")
    assert done.returncode == 0, done.stderr
    yield name, url
    citus.drop_database(name)


def test_rows_of_a_bucket_are_written_on_its_node_and_seen_by_all(citus, spread):
    name, url = spread
    with closing(Database(Path(), url)) as database, closing(database.session()) as session:
        ports = set()
        for bucket in range(16):
            asked = {"bucket": bucket, "qid": 16 + bucket}
            session.transact(lambda cursor, asked=asked: cursor.execute(ROW, asked), bucket)
            ports.add(
                session.transact(
                    lambda cursor: cursor.execute("SELECT inet_server_port()").fetchone(), bucket
                )
            )
        assert ports == {(node.port,) for node in citus.nodes}
        found = session.fetch_all(b"SELECT host.bucket, host.qid FROM host ORDER BY 1")
        assert found == [(bucket, 16 + bucket) for bucket in range(16)]

        shards = citus.coordinator.execute(
            "SELECT shardid, nodeport FROM citus_shards WHERE table_name = 'tamias.host'::regclass", name
        )
        for shard, port in shards:
            target = next(node.port for node in citus.nodes if node.port != port)
            citus.coordinator.execute(
                f"SELECT citus_move_shard_placement({shard}, '127.0.0.1', {port}, '127.0.0.1', {target},"
                " 'block_writes')",
                name,
            )
        for bucket in range(16):
            asked = {"bucket": bucket, "qid": 32 + bucket}
            session.transact(lambda cursor, asked=asked: cursor.execute(ROW, asked), bucket)
            assert session.fetch_one(READ, asked, bucket) == (16 + bucket,)
        found = session.fetch_all(b"SELECT host.qid FROM host ORDER BY 1")
        assert found == [(number,) for number in range(16, 48)]


def test_a_move_of_a_shard_waits_for_a_writer_on_its_node(citus, spread):
    name, url = spread
    with closing(Database(Path(), url)) as database, closing(database.session()) as session:

        def work(cursor):
            cursor.execute(ROW, {"bucket": 3, "qid": 3})
            ((shard, port),) = citus.coordinator.execute(
                "SELECT shardid, nodeport FROM citus_shards WHERE table_name = 'tamias.host'::regclass AND"
                " shardid = get_shard_id_for_distribution_column('tamias.host'::regclass, 3::int2)",
                name,
            )
            target = next(node.port for node in citus.nodes if node.port != port)
            moving = (
                f"SELECT citus_move_shard_placement({shard}, '127.0.0.1', {port}, '127.0.0.1', {target},"
                " 'block_writes')"
            )
            with closing(psycopg.connect(citus.coordinator.url(name, "boss"), autocommit=True)) as mover:
                mover.execute("SET statement_timeout = '3s'")
                with pytest.raises(psycopg.errors.QueryCanceled):
                    mover.execute(moving)

        session.transact(work, 3)
        assert session.fetch_all(b"SELECT host.qid FROM host") == [(3,)]
