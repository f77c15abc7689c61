"""What dead workers left in a store is merged soon and safely, what they did not delete is collected."""

import re
import shutil
from contextlib import closing
from datetime import UTC, datetime, timedelta

import msgspec
import psycopg
import pytest

from tamias.archive.file_store import file_store
from tamias.archive.sources.harvests import HarvestProgress
from tamias.archive.stored_files import (
    TakenForDead,
    commit_files,
    dead_writers,
    files_in_parts,
    new_segment,
    note_merged,
)
from tamias.database.connect import Database
from tamias.model.capture import new_capture_id
from tests.integration.serve.test_webhooks import wait_until

CRAWL = ("--allow-private", "--delay", "0.01", "--workers", "1", "--store", "s3://bucket/archive")
PART = re.compile(r"/rdf/.*\.[0-9]{12}")


@pytest.fixture
def crawled(machine, object_store, site, kill):
    """A machine whose worker was killed while its file was in parts, and is gone; and another machine."""
    site.pages |= {f"/{n}": b'<> <#says> "page %d" ; <#next> </%d> .' % (n, n + 1) for n in range(40)}
    one, two = machine("one"), machine("two")
    for each in (one, two):
        each.env["TAMIAS_FRONTIER__LEASE"] = "2"
    crawl = one.start("crawl", *CRAWL, site.url("/0"))
    one.wait_until(lambda: len(parts(object_store)) > 2)
    for pid in (crawl.pid, *one.workers()):
        kill(pid)
    crawl.wait()
    one.end()
    shutil.rmtree(one.data)
    return two


@pytest.fixture
def session(crawled, monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, crawled.env[name])
    with (
        closing(Database(crawled.data, crawled.env["TAMIAS_DB"])) as database,
        closing(database.session()) as made,
    ):
        made.database = database
        yield made


def parts(object_store):
    return [name for name in object_store.objects if PART.search(name)]


def test_files_of_a_worker_that_is_not_connected_any_more_are_merged(crawled, session, object_store):
    before = crawled.quads()
    assert before
    [dead] = dead_writers(session, 1)
    files = files_in_parts(session, 1, [dead], 0, 20)
    assert files
    assert all(each.sealed and each.worker == dead for each in files)
    store = file_store(session, crawled.data)
    for each in files:
        sha256 = store.merge(each)
        assert note_merged(session, each, sha256)
        store.forget_parts(each.key, each.parts)
    left = {name.rpartition("rdf/")[2] for name in parts(object_store)}
    assert not left & {f"{each.name}.{start:012d}" for each in files for start in each.parts}
    assert crawled.quads() == before
    # What was sent and not committed is named by nobody.
    done = crawled.run("check", "--repair")
    assert done.returncode == 0, done.stdout
    assert parts(object_store) == []
    # It was alive after all: what it adds would be in parts that are not there any more.
    longer = msgspec.structs.replace(files[0], committed=files[0].committed + 100, sealed=False)
    with pytest.raises(TakenForDead, match="seemed dead"):
        session.transact(lambda cursor: commit_files(cursor, [longer]))
    # The same news twice is harmless.
    session.transact(lambda cursor: commit_files(cursor, [files[0]]))
    assert crawled.quads() == before


def test_a_worker_that_is_connected_is_alive_and_one_that_connects_again(session):
    with closing(session.database.session()) as worker:
        worker.show_alive(77)
        made = msgspec.structs.replace(new_segment(worker, 77, in_store=True), committed=10, parts=(0,))
        worker.transact(lambda cursor: commit_files(cursor, [made]))
        assert 77 not in dead_writers(session, 1)
        worker.close()
        wait_until(lambda: 77 in dead_writers(session, 1))
        worker.now()
        worker.transact(lambda cursor: cursor.execute("SELECT 1"))
        assert 77 not in dead_writers(session, 1)
    wait_until(lambda: 77 in dead_writers(session, 1))


def test_objects_of_harvests_that_nothing_names_are_collected(crawled, session, object_store):
    def spool(age):
        at = datetime.now(UTC) - age
        return f"{new_capture_id(int(at.timestamp() * 1000))}.nq.zst"

    old, named, young = spool(timedelta(days=2)), spool(timedelta(days=2)), spool(timedelta(hours=1))
    [prefix] = {name.partition("/rdf/")[0] for name in parts(object_store)}
    for name in (old, named, young):
        object_store.objects[f"{prefix}/harvests/{name}.000000000000"] = b"x"
    progress = msgspec.msgpack.encode(HarvestProgress(started_at=1, spool=named, parts=(0,)))
    session.execute(
        b"INSERT INTO walk (bucket, qid, crawl, uid, started_at, progress) VALUES (0, 1, 1, 1, 1, %(it)b)",
        {"it": progress},
    )
    done = crawled.run("check", "--repair")
    assert done.returncode == 0, done.stdout
    left = {name.rpartition("/")[2] for name in object_store.objects if "/harvests/" in name}
    assert left == {f"{named}.000000000000", f"{young}.000000000000"}


def test_two_machines_do_not_repack_at_once(crawled, machine):
    with psycopg.connect(crawled.env["TAMIAS_DB"], autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(hashtextextended('tamias repack', 0))")
        done = crawled.run("repack")
        assert done.returncode == 11, done.stderr
        assert "another machine repacks" in done.stderr
    assert crawled.run("repack").returncode == 0
