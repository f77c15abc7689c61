"""A store that has grown by updates is written anew, and has what was written meanwhile."""

import os
import shutil
import time
from contextlib import closing

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from tamias.features.catalogue.store import snapshots
from tamias.features.catalogue.store.graph_writer import GraphWriter
from tamias.features.catalogue.store.snapshots import Compaction, load, open_newest, read_loaded, size_of


def triples(graph, value, count=50):
    return "".join(f'<urn:s{n}> <urn:p> "{graph} {n} {value}" .\n' for n in range(count)).encode()


def content(folder):
    with closing(open_newest(folder)) as snapshot:
        return sorted(str(quad) for quad in snapshot.store)


@pytest.fixture
def writer(tmp_path):
    with closing(
        GraphWriter(tmp_path, Compaction(tmp_path, quiet_seconds=0.0, slack=0, rest_times=0))
    ) as writer:
        yield writer


def until_compacted(writer, folder, meanwhile=lambda: None):
    """The compaction is started, and then seen to be done."""
    writer.tend()
    meanwhile()
    deadline = time.monotonic() + 60
    while not (folder / "loaded.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
        writer.tend()


def test_it_has_the_same_statements_and_is_smaller(writer, tmp_path):
    for value in range(20):
        writer.replace_all({f"urn:g{n}": triples(n, value) for n in range(40)})
        writer.publish()
    before, size = content(tmp_path), size_of(tmp_path / "oxigraph")
    until_compacted(writer, tmp_path)
    assert content(tmp_path) == before
    assert size_of(tmp_path / "oxigraph") < size


def test_a_store_that_grew_by_itself_is_not_written_anew_before_something_is_written(writer, tmp_path):
    writer.replace_all({f"urn:g{n}": triples(n, 1) for n in range(40)})
    writer.publish()
    until_compacted(writer, tmp_path)
    # As when RocksDB merges its files into larger ones, which it does again after each compaction.
    (tmp_path / "oxigraph" / "merged").write_bytes(bytes(10 << 20))
    loaded = (tmp_path / "loaded.json").stat().st_mtime_ns
    for _ in range(40):
        writer.tend()
        time.sleep(0.05)
    assert (tmp_path / "loaded.json").stat().st_mtime_ns == loaded
    assert not (tmp_path / "next").exists()
    writer.replace_all({"urn:more": triples("more", 1)})
    writer.publish()
    (tmp_path / "loaded.json").unlink()
    until_compacted(writer, tmp_path)
    assert len(content(tmp_path)) == 41 * 50


def test_after_one_that_took_long_the_store_is_left_alone_for_longer(tmp_path):
    compaction = Compaction(tmp_path, quiet_seconds=0.0, slack=0, rest_times=1000)
    with closing(GraphWriter(tmp_path, compaction)) as writer:
        writer.replace_all({f"urn:g{n}": triples(n, 1) for n in range(40)})
        writer.publish()
        until_compacted(writer, tmp_path)
        writer.replace_all({f"urn:more{n}": triples(n, 1) for n in range(4)})
        writer.publish()
        (tmp_path / "loaded.json").unlink()  # as large as it may be
        for _ in range(20):
            writer.tend()
            time.sleep(0.01)
        assert not (tmp_path / "next").exists()
        assert len(content(tmp_path)) == 44 * 50


def test_a_large_store_is_merged_once_more_and_has_the_same_statements(tmp_path, monkeypatch):
    """With some of its own statements: RocksDB compresses what it merges into a large index."""
    monkeypatch.setattr(snapshots, "_COMPRESSIBLE", 1000)
    monkeypatch.setattr(snapshots, "_SOME", 10)
    quads = [
        Quad(NamedNode(f"urn:s{n}"), NamedNode("urn:p"), Literal(f"value {n}"), NamedNode(f"urn:g{n % 7}"))
        for n in range(1234)
    ]
    store = Store(str(tmp_path / "oxigraph"))
    load(store, tmp_path, iter(quads), is_compressed=True)
    assert sorted(map(str, store)) == sorted(map(str, quads))
    loaded = read_loaded(tmp_path)
    assert loaded is not None
    assert loaded.statements == 1234


def bytes_on_disk(folder):
    """Of the tables; a file that has several names is counted once."""
    return sum({stat.st_ino: stat.st_size for stat in map(os.stat, folder.rglob("*.sst"))}.values())


def test_files_of_before_are_gone_when_the_last_reader_is_although_nothing_more_is_written(tmp_path):
    with closing(
        GraphWriter(tmp_path, Compaction(tmp_path, quiet_seconds=0.0, slack=1 << 18, rest_times=0))
    ) as writer:
        for value in range(20):
            writer.replace_all({f"urn:g{n}": triples(n, value) for n in range(40)})
            writer.publish()
        with closing(open_newest(tmp_path)):
            until_compacted(writer, tmp_path)
            assert (tmp_path / "snapshots" / "20").exists()
        deadline = time.monotonic() + 60
        while (tmp_path / "snapshots" / "20").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
            writer.tend()
        assert bytes_on_disk(tmp_path) < 1.3 * bytes_on_disk(tmp_path / "oxigraph")


def test_files_that_a_quiet_store_has_merged_are_gone_from_its_snapshot_too(tmp_path):
    with closing(
        GraphWriter(tmp_path, Compaction(tmp_path, quiet_seconds=3600.0, slack=1 << 18, rest_times=0))
    ) as writer:
        for value in range(10):
            writer.replace_all({f"urn:g{value}/{n}": triples(n, value) for n in range(40)})
            writer.publish()
        before = content(tmp_path)
        writer._store.optimize()  # as it does by itself in the background, sooner or later
        assert bytes_on_disk(tmp_path) > 1.3 * bytes_on_disk(tmp_path / "oxigraph")
        writer.tend()
        assert bytes_on_disk(tmp_path) < 1.3 * bytes_on_disk(tmp_path / "oxigraph")
        assert content(tmp_path) == before


def test_what_is_written_meanwhile_is_not_lost(writer, tmp_path):
    writer.replace_all({f"urn:g{n}": triples(n, "old") for n in range(5)})
    writer.publish()

    def write():
        writer.replace_all({"urn:g0": triples(0, "new"), "urn:g1": b"", "urn:more": triples(9, "more")})
        writer.publish()

    until_compacted(writer, tmp_path, write)
    expected = {"urn:g0": triples(0, "new"), "urn:more": triples(9, "more")}
    expected |= {f"urn:g{n}": triples(n, "old") for n in (2, 3, 4)}
    lines = [
        f"{line[:-2]} <{graph}>" for graph, told in expected.items() for line in told.decode().splitlines()
    ]
    assert content(tmp_path) == sorted(lines)


def test_one_that_failed_is_begun_again(writer, tmp_path):
    """What it had written does not stand in the way of the next."""
    writer.replace_all({"urn:g": triples(1, "old", 1)})
    writer.publish()
    snapshots = tmp_path / "snapshots"
    whole = snapshots.rename(tmp_path / "elsewhere")
    snapshots.mkdir()
    (snapshots / "1").mkdir()  # no store
    (tmp_path / "next").mkdir()
    compaction = writer._compaction
    writer.tend()
    assert compaction._process is not None
    assert compaction._process.wait(60) != 0
    writer.tend()
    assert not (tmp_path / "next").exists()
    shutil.rmtree(snapshots)
    whole.rename(snapshots)
    until_compacted(writer, tmp_path)
    assert content(tmp_path) == ['<urn:s0> <urn:p> "1 0 old" <urn:g>']


def test_what_is_written_afterwards_is_found(writer, tmp_path):
    writer.replace_all({"urn:g": triples(1, "old")})
    writer.publish()
    until_compacted(writer, tmp_path)
    writer.replace_all({"urn:g": triples(1, "new", 1)})
    writer.publish()
    assert content(tmp_path) == ['<urn:s0> <urn:p> "1 0 new" <urn:g>']


def test_a_writer_that_was_killed_between_the_stores_begins_with_the_old_one(tmp_path):
    with closing(GraphWriter(tmp_path)) as writer:
        writer.replace_all({"urn:g": triples(1, "old", 1)})
        writer.publish()
    os.rename(tmp_path / "oxigraph", tmp_path / "oxigraph.old")
    with closing(GraphWriter(tmp_path)) as writer:
        writer.replace_all({"urn:h": triples(2, "new", 1)})
        writer.publish()
    told = ['<urn:s0> <urn:p> "1 0 old" <urn:g>', '<urn:s0> <urn:p> "2 0 new" <urn:h>']
    assert content(tmp_path) == told
