"""An archive whose bodies are in an S3-compatible store: kept there by a crawl, given back from there."""

from contextlib import closing
from uuid import UUID

import pytest

from tamias.database.connect import Database
from tests.messages import unsaid

from . import s3_server


@pytest.fixture
def store():
    with s3_server.serving() as server:
        yield server


@pytest.fixture
def environment(store):
    return {
        "TAMIAS_ARCHIVE__STORE": "s3://bucket/archive",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.server_port}",
        "AWS_ACCESS_KEY_ID": s3_server.CREDENTIALS.key,
        "AWS_SECRET_ACCESS_KEY": s3_server.CREDENTIALS.secret,
    }


def test_versions_go_to_the_store_and_come_back_from_it(fresh, site, reply, store, environment):
    tamias = fresh("data")
    tamias.env |= environment
    body = b"a,b\n1,2\n" * 1000
    site.pages["/a.csv"] = reply(200, body, **{"Content-Type": "text/csv"})
    assert tamias.run("add", site.url("/a.csv")).returncode == 0
    done = tamias.run("crawl", "--recrawl", "--allow-private", "--delay", "0", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert any(name.endswith(".pack") for name in store.objects)
    assert not list((tamias.data / "blobs").glob("*.pack"))
    assert tamias.run("get", site.url("/a.csv")).stdout.encode() == body
    checked = tamias.run("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_an_archive_does_not_change_its_place(fresh, site, reply):
    tamias = fresh("data")
    site.pages["/a.csv"] = reply(200, b"a\n1\n", **{"Content-Type": "text/csv"})
    assert tamias.run("add", site.url("/a.csv")).returncode == 0
    crawl = ("--recrawl", "--allow-private", "--delay", "0", "--workers", "1")
    assert tamias.run("crawl", *crawl).returncode == 0
    tamias.env |= {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    tamias.env["TAMIAS_ARCHIVE__STORE"] = "s3://bucket/archive"
    assert tamias.run("add", site.url("/b.csv")).returncode == 0
    done = tamias.run("crawl", *crawl)
    assert done.returncode == 4, done.stderr
    assert not unsaid(done.stderr)


def test_a_restored_copy_takes_nothing_from_the_store_of_the_live_archive(
    fresh, tamias_at, site, reply, store, environment, tmp_path
):
    live, body = fresh("data"), b"a,b\n1,2\n" * 1000
    live.env |= environment
    site.pages["/a.csv"] = reply(200, body, **{"Content-Type": "text/csv"})
    assert live.run("add", site.url("/a.csv")).returncode == 0
    assert live.crawl("--recrawl").returncode == 0
    # A pack that is being filled at the time of the backup, and one that is about to be removed.
    unnamed = [(UUID(int=1), "open"), (UUID(int=2), "gone"), (UUID(int=3), "sealed")]
    with closing(Database(live.data, create=False)) as database, closing(database.session()) as session:
        for pack, state in unnamed:
            values = {"pack": pack, "state": state}
            told = b"INSERT INTO pack VALUES (%(pack)b, %(state)b, now() - interval '2 hours')"
            session.execute(told, values)
    assert live.run("backup", str(tmp_path / "backup")).returncode == 0
    store.objects |= {f"archive/{pack}.pack": b"filled since" for pack, _ in unnamed}
    before = dict(store.objects)

    copy = tamias_at("copy")
    copy.env |= environment
    done = copy.run("restore", str(tmp_path / "backup"))
    assert done.returncode == 0, done.stderr
    assert not unsaid(done.stdout, "s3://bucket/archive")
    checked = copy.run("check", "--repair")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    repacked = copy.run("repack", "--after", "0", "--all")
    assert repacked.returncode == 2
    assert "restore with --take-over" in repacked.stderr
    assert copy.run("get", site.url("/a.csv")).stdout.encode() == body
    assert store.objects == before

    heir = tamias_at("heir")
    heir.env |= environment
    assert heir.run("restore", str(tmp_path / "backup"), "--take-over").returncode == 0
    assert store.objects == before
    assert heir.run("repack", "--after", "0", "--all").returncode == 0
