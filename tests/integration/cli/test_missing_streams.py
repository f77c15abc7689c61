"""A crawl that is started without streams is the same crawl."""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Site(BaseHTTPRequestHandler):
    """Has one document, and no robots.txt."""

    def do_GET(self):
        body = b"<> <http://a.example/p> 1 ."
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/turtle")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words):
        pass


@pytest.fixture
def site():
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/a.ttl"
        server.shutdown()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_crawl_needs_no_streams(tmp_path, site, closed):
    def tamias(shell, *words):
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-m", "tamias", *words]
        command += ["--data", str(tmp_path / "data")]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    options = ["--allow-private", "--depth", "0", "--workers", "2", "--contact", "me@a.example"]
    done = tamias(closed, "crawl", site, *options)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "1 attempts, 1 quads" in tamias("", "stats").stdout


@pytest.mark.parametrize("words", [["--help"], ["config", "show"]])
def test_a_disk_that_is_full_is_told_of_in_one_sentence(words):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "tamias", *words]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
    told = "tamias: No space left on device; free some space, then run the same command again\n"
    assert (done.returncode, done.stderr) == (12, told)
