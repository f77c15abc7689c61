"""pywb, serving the WARC files of a crawl, lists and replays the same. `make nightly` installs it."""

import functools
import gzip
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tamias.database.connect import Database
from tamias.features.warc.folder import index_warcs
from tamias.features.warc.warc_files import index_warc

PYWB = Path(sys.prefix) / "pywb" / "bin"
pytestmark = pytest.mark.skipif(
    not (PYWB / "wayback").exists(), reason="pywb, which `make nightly` installs, is not installed"
)
PAGES = {
    "/": (200, "text/html", b'<a href="/a.ttl">a</a><a href="/b.ttl">b</a><a href="/gone">g</a>'),
    "/a.ttl": (200, "text/turtle", b"<http://e/a> <http://e/p> 'a' .\n" * 100),
    "/b.ttl": (200, "text/turtle", b"<http://e/a> <http://e/p> 'a' .\n" * 100),
    "/gone": (404, "text/html", b"<p>It was here once.</p>"),
}


HOSTS = ("wood.example", "data.wood.example", "old.data.wood.example", "driftwood.example")
"""A domain, two hosts in it, and one whose name only ends alike."""


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, media_type, body = PAGES.get(self.path, (404, "text/plain", b""))
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """A small site, crawled twice into WARC files."""
    folder = tmp_path_factory.mktemp("pywb")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{server.server_port}"
    usual = ("--data", folder / "d", "--sink", "warc", "--allow-private", "--delay=0", "--workers=1")
    run = tamias("crawl", site + "/", "--depth=1", *usual)
    assert run.returncode == 0, run.stderr
    server.shutdown()
    server.server_close()
    path = folder / "d" / "warc" / "hosts.warc.gz"
    path.write_bytes(b"".join(of_hosts()))
    index_warc(path, path.name)
    with closing(Database(folder / "d")) as database, closing(database.session()) as session:
        assert index_warcs(session, path.parent) == 1
    return folder, site


def of_hosts():
    """Records of hosts without ports: pywb's ranges for a domain are made for those."""
    for number, host in enumerate(HOSTS * 2):
        for path in ("", "a.ttl", "a/b", "b?q=1"):
            body = f"{number} {path}".encode()
            response = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + body
            head = (
                f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://{host}/{path}\r\n"
                f"WARC-Date: 2026-01-{1 + number:02d}T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{uuid4()}>\r\n"
                f"WARC-Payload-Digest: sha256:{sha256(body).hexdigest()}\r\n"
                f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(response)}\r\n\r\n"
            )
            yield gzip.compress(head.encode() + response + b"\r\n\r\n")


def tamias(*words):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
    clean["TAMIAS_SEEDS__PROBE"] = "false"
    command = [sys.executable, "-m", "tamias", *map(str, words)]
    return subprocess.run(command, capture_output=True, timeout=120, env=clean, check=False, text=True)


@functools.cache
def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def started(command, port, folder, path):
    process = subprocess.Popen(
        list(map(str, command)), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            client.get(path)
        except httpx.HTTPError:
            time.sleep(0.2)
        else:
            return process, client
    process.kill()
    raise AssertionError(f"{command[0]} did not start")


@pytest.fixture(scope="module")
def ours(crawled):
    port = free_port()
    command = [sys.executable, "-m", "tamias", "serve", "--no-crawl", "--port", port]
    process, client = started([*command, "--data", crawled[0] / "d"], port, crawled[0], "/healthz")
    yield client
    client.close()
    process.terminate()
    process.wait()


@pytest.fixture(scope="module")
def theirs(crawled):
    folder = crawled[0]
    place = folder / "theirs"
    place.mkdir()
    files = sorted((folder / "d" / "warc").glob("*.warc.gz"))
    for words in (["init", "crawl"], ["add", "crawl", *files]):
        command = [str(each) for each in (PYWB / "wb-manager", *words)]
        done = subprocess.run(command, cwd=place, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    free_port.cache_clear()
    port = free_port()
    process, client = started([PYWB / "wayback", "-p", port], port, place, "/crawl/cdx?url=x")
    yield client
    client.close()
    process.terminate()
    process.wait()


def lines(client, path, **words):
    answer = client.get(path, params=words)
    assert answer.status_code == 200, answer.text
    found = []
    for line in answer.text.splitlines():
        start, _, fields = line.partition("{")
        told = json.loads("{" + fields)
        stamp = told.get("timestamp") or start.split()[1]
        # pywb gives a revisit no status of its own.
        status = told.get("status", "200" if told["mime"] == "warc/revisit" else None)
        found.append((told["url"], stamp, status, told["digest"].removeprefix("sha256:").lower()))
    return found


def listed(ours, theirs, url, **words):
    told = {"url": url, **words}
    return (
        lines(ours, "/cdx", **told, output="cdxj"),
        lines(theirs, "/crawl/cdx", **told, output="cdxj"),
    )


def test_both_list_the_same_captures(crawled, ours, theirs):
    mine, other = listed(ours, theirs, crawled[1] + "/", matchType="prefix")
    assert sorted(mine) == sorted(other)
    assert {status for _, _, status, _ in mine} == {"200", "404"}
    year = mine[0][1][:4]
    for words in ({"from": year, "to": year}, {"to": "2001"}, {"from": year, "sort": "reverse"}):
        for url in (crawled[1] + "/a.ttl", crawled[1] + "/gone"):
            assert [each[:3] for each in listed(ours, theirs, url, **words)[0]] == [
                each[:3] for each in listed(ours, theirs, url, **words)[1]
            ]


def test_both_replay_the_same_bytes_with_the_same_status(crawled, ours, theirs):
    for url, stamp, _, _ in lines(ours, "/cdx", url=crawled[1] + "/", matchType="prefix", output="cdxj"):
        mine = ours.get(f"/memento/{stamp}/{url}", follow_redirects=False)
        other = theirs.get(f"/crawl/{stamp}id_/{url}")
        assert (mine.status_code, mine.content) == (other.status_code, other.content), url
        assert mine.headers["memento-datetime"] == other.headers["memento-datetime"]
        assert mine.headers["content-type"] == other.headers["content-type"]


@pytest.mark.usefixtures("crawled")
@pytest.mark.parametrize("match", ["exact", "prefix", "host", "domain"])
@pytest.mark.parametrize("place", ["wood.example", "data.wood.example", "driftwood.example", "no.example"])
@pytest.mark.parametrize("path", ["/", "/a.ttl", "/a", "/b?q=1"])
def test_both_find_the_same_rows_by_prefix_host_and_domain(ours, theirs, match, place, path):
    """Row by row: URL, time, status and digest."""
    mine, other = listed(ours, theirs, f"http://{place}{path}", matchType=match)
    assert sorted(mine) == sorted(other)
    assert mine or place == "no.example" or (match, path) == ("exact", "/a")
    for url in {each[0] for each in mine}:
        assert [each[1] for each in mine if each[0] == url] == [each[1] for each in other if each[0] == url]


@pytest.mark.parametrize("source", ["cdx", "timemap/link/", "timemap/cdxj/", "timemap/json/"])
def test_backfill_brings_its_captures_as_versions(theirs, tmp_path, source):
    url, usual = "http://wood.example/a.ttl", ("--data", tmp_path / "d")
    words = ("backfill", url, "--from", f"{theirs.base_url}/crawl/{source}", "--allow-private", "--json")
    runs = [tamias(*words, *usual) for _ in range(2)]
    assert [json.loads(run.stdout)["imported"]["versions"] for run in runs] == [2, 0], runs[0].stderr
    bodies = [tamias("get", url, "--version", number, *usual).stdout for number in (1, 2)]
    assert bodies == ["0 a.ttl", "4 a.ttl"]
    known = json.loads(tamias("versions", url, "--json", *usual).stdout)
    assert [each["captured_at"][:10] for each in known] == ["2026-01-01", "2026-01-05"]
