"""pywb, serving the WARC files of a crawl, lists and replays the same. `make interop` installs it."""

import functools
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

PYWB = Path(sys.prefix) / "pywb" / "bin"
pytestmark = pytest.mark.skipif(
    not (PYWB / "wayback").exists(), reason="pywb, which `make interop` installs, is not installed"
)
PAGES = {
    "/": (200, "text/html", b'<a href="/a.ttl">a</a><a href="/b.ttl">b</a><a href="/gone">g</a>'),
    "/a.ttl": (200, "text/turtle", b"<http://e/a> <http://e/p> 'a' .\n" * 100),
    "/b.ttl": (200, "text/turtle", b"<http://e/a> <http://e/p> 'a' .\n" * 100),
    "/gone": (404, "text/html", b"<p>It was here once.</p>"),
}


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
    return folder, site


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
