"""Bodies as bad as they come: kept byte for byte if they came whole, never a version if they did not."""

import io
import zipfile
from contextlib import closing

import pytest

from tamias.archive.reader.library import ArchiveReader

LONG = b"x" * 5_000_000


def encrypted_zip():
    """One whose member says that it is encrypted."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", "a,b\n1,2\n")
    content = bytearray(file.getvalue())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


WHOLE = {
    "/one-line.csv": ("text/csv", LONG),
    "/encrypted.zip": ("application/zip", encrypted_zip()),
    "/wide.csv": ("text/csv", b"\n".join(b",".join(b"%d" % n for n in range(10_000)) for _ in range(3))),
    "/empty.csv": ("text/csv", b""),
    "/not.json": ("application/json", b'{"a": [1, 2'),
    "/zeros.ttl": ("text/turtle", bytes(1000)),
}


def cut_short(handler):
    """Fewer bytes than told."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/csv")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"id,name\n1,a\n")
    handler.close_connection = True


def longer_than_told(handler):
    """More bytes than told: what comes after the length is no part of the answer."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/csv")
    handler.send_header("Content-Length", "12")
    handler.end_headers()
    handler.wfile.write(b"id,name\n1,a\n2,b\n")
    handler.close_connection = True


def longer_than_told_later(handler):
    """The same, where the bytes that are too many come before the next answer on the connection."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/csv")
    handler.send_header("Content-Length", "12")
    handler.end_headers()
    handler.wfile.write(b"id,name\n1,a\n")
    handler.excess = b"2,b\n"


def after_excess(handler):
    handler.wfile.write(getattr(handler, "excess", b""))
    handler.excess = b""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/csv")
    handler.send_header("Content-Length", "8")
    handler.end_headers()
    handler.wfile.write(b"id\n1234\n")


@pytest.fixture
def crawled(fresh, site, reply):
    tamias = fresh("data")
    tamias.env["TAMIAS_CRAWL__RETRIES"] = "2"
    site.pages |= {path: reply(200, body, Content_Type=kind) for path, (kind, body) in WHOLE.items()}
    site.pages |= {"/short.csv": cut_short, "/long.csv": longer_than_told}
    done = tamias.crawl(*map(site.url, site.pages), "--sink", "archive")
    assert done.returncode == 0, done.stderr
    with closing(ArchiveReader(tamias.data)) as archive:
        yield archive


def kept(archive, url):
    return [archive.get(url, version=each.number).bytes() for each in archive.versions(url)]


def test_what_came_whole_is_kept_exactly_and_what_did_not_is_no_version(crawled, site):
    found = {each.url: kept(crawled, each.url) for each in crawled.resources()}
    wanted = {site.url(path): [body] for path, (_, body) in WHOLE.items()}
    wanted |= {site.url("/short.csv"): [], site.url("/long.csv"): [b"id,name\n1,a\n"]}
    assert found.keys() == wanted.keys()
    # The addresses only: pytest would take a minute to tell megabytes apart.
    assert [url for url in wanted if found[url] != wanted[url]] == []


def test_bytes_beyond_an_answer_cost_no_other_url_its_version(fresh, site):
    """They stand where the status line of the next answer on that connection should be."""
    tamias = fresh("data")
    site.pages |= {"/long.csv": longer_than_told_later, "/a.csv": after_excess, "/b.csv": after_excess}
    done = tamias.crawl(*map(site.url, site.pages), "--sink", "archive")
    assert done.returncode == 0, done.stderr
    asked = [path for path, _ in site.log if path in site.pages]
    with closing(ArchiveReader(tamias.data)) as archive:
        found = {each.url: kept(archive, each.url) for each in archive.resources()}
    other = [b"id\n1234\n"]
    wanted = {
        site.url("/long.csv"): [b"id,name\n1,a\n"],
        site.url("/a.csv"): other,
        site.url("/b.csv"): other,
    }
    assert found == wanted
    was_last = asked[-1] == "/long.csv"  # then nothing came after it on its connection
    assert len(asked) == (3 if was_last else 4)  # else one of the others came twice
