"""An archive whose bodies are in an S3-compatible store: kept there by a crawl, given back from there."""

import pytest

from . import s3_server


@pytest.fixture
def store():
    with s3_server.serving() as server:
        yield server


def test_versions_go_to_the_store_and_come_back_from_it(fresh, site, reply, store):
    tamias = fresh("data")
    tamias.env |= {
        "TAMIAS_ARCHIVE__STORE": "s3://bucket/archive",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.server_port}",
        "AWS_ACCESS_KEY_ID": s3_server.CREDENTIALS.key,
        "AWS_SECRET_ACCESS_KEY": s3_server.CREDENTIALS.secret,
    }
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
    assert "keeps its bodies in the folder blobs" in done.stderr
