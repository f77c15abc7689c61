"""Block lists from an address: fetched when due, checked, replaced as a whole, the last good one kept."""

import gzip
import io
import os
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tamias.features.blocklists.filter import BlocklistFilter, Lists
from tamias.model.errors import ConfigError
from tamias.settings import FiltersSettings
from tests.messages import unsaid


class ListServer:
    """Serves one list; `status` and `body` may be changed at any time."""

    def __init__(self):
        self.status, self.body, self.asked = 200, b"", []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                tag = f'"{hash(outer.body)}"'
                outer.asked.append(self.headers.get("If-None-Match"))
                unchanged = outer.status == 200 and self.headers.get("If-None-Match") == tag
                body = b"" if unchanged else outer.body
                self.send_response(304 if unchanged else outer.status)
                self.send_header("ETag", tag)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, path="/hosts.txt"):
        return f"http://127.0.0.1:{self.server.server_port}{path}"


@pytest.fixture
def server():
    made = ListServer()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def make_due(cache):
    for file in cache.glob("*.json"):
        os.utime(file, (time.time() - 7200,) * 2)


def blocks(lists, *hosts):
    return [lists.table.find(host, "/") is not None for host in hosts]


def test_a_list_at_an_address_blocks_and_is_replaced_when_it_changes(server, cache):
    server.body = b"0.0.0.0 a.example\n0.0.0.0 b.example\n"
    lists = Lists((f"ads={server.url()}",), 100, 3600, str(cache))
    assert (lists.names, blocks(lists, "a.example", "b.example", "c.example")) == (
        ("ads",),
        [True, True, False],
    )
    server.body = b"0.0.0.0 b.example\n0.0.0.0 c.example\n"
    lists.look()
    assert len(server.asked) == 1, "it is not due yet"
    make_due(cache)
    lists.look()
    assert blocks(lists, "a.example", "b.example", "c.example") == [False, True, True]
    make_due(cache)
    lists.look()
    assert server.asked[-1] is not None, "an unchanged list is not sent again"
    assert blocks(lists, "c.example") == [True]


BAD = {
    "an error": (500, b"0.0.0.0 x.example\n" * 2),
    "a page": (200, b"<!DOCTYPE html>\n<html>\n<body>\n<p>Sorry, we are closed.</p>\n</body>\n</html>\n"),
    "nothing": (200, b""),
    "a stump": (200, b"0.0.0.0 x.example\n"),
    "a redirect": (301, b""),
}


@pytest.mark.parametrize("fault", BAD)
def test_the_last_good_list_stays_where_the_new_one_is_none(server, cache, fault, caplog):
    server.body = b"".join(b"0.0.0.0 h%d.example\n" % number for number in range(10))
    lists = Lists((server.url(),), 100, 3600, str(cache))
    good = {file.name: file.read_bytes() for file in cache.glob("*.txt")}
    server.status, server.body = BAD[fault]
    make_due(cache)
    lists.look()
    assert blocks(lists, "h0.example", "h9.example", "x.example") == [True, True, False]
    assert {file.name: file.read_bytes() for file in cache.glob("*.txt")} == good
    assert not unsaid(caplog.text)
    asked = len(server.asked)
    lists.look()
    assert len(server.asked) == asked, "a server that fails is not asked again at once"
    again = Lists((server.url(),), 100, 3600, str(cache))
    assert blocks(again, "h0.example") == [True], "the next process begins with the last good list"


def test_a_crawl_does_not_begin_without_a_list_it_should_have(server, cache):
    server.status = 404
    with pytest.raises(ConfigError, match="status 404"):
        BlocklistFilter(
            FiltersSettings(blocklists=(server.url(),), blocklist_refresh=3600, blocklist_cache=str(cache))
        )


def test_a_packed_list_is_read(server, cache):
    server.body = gzip.compress(b"a.example\n")
    lists = Lists((server.url("/list.txt.gz"),), 100, 3600, str(cache))
    assert (lists.names, blocks(lists, "www.a.example")) == (("list",), [True])


def test_many_processes_ask_once(server, cache):
    server.body = b"a.example\n"
    threads = [
        threading.Thread(target=Lists, args=((server.url(),), 100, 3600, str(cache))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.asked) == 1


def test_an_archive_at_an_address_is_refused_by_its_address(server, cache):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("blacklists/adult/domains")
        entry.size = 10
        archive.addfile(entry, io.BytesIO(b"a.example\n"))
    server.body = packed.getvalue()
    with pytest.raises(ConfigError) as error:
        Lists((server.url("/blacklists.tar.gz"),), 100, 3600, str(cache))
    assert server.url("/blacklists.tar.gz") in str(error.value)
    assert str(cache) not in str(error.value)
