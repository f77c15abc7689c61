"""`tamias serve` as a process: the secret, where it listens, how it crawls, how it stops."""

import json
import os
import re
import signal
import socket
import stat
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

import httpx
import pytest
from psycopg.conninfo import conninfo_to_dict

from tamias.database.connect import Database
from tests import commands
from tests.messages import unsaid

from .conftest import SECRET

SAMPLE = re.compile(r'[a-z_]+(\{([a-z]+="[^"]*",?)*\})? [0-9.e+-]+')


def refused(data, *words):
    """What a `tamias serve` that cannot begin says."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
    return commands.run(
        ["serve", "--no-crawl", "--data", str(data), *words], env=clean,
        text=True, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def empty(tmp_path):
    """A data directory that is not there yet."""
    return tmp_path / "data"


def test_the_first_start_makes_a_secret_that_only_its_owner_can_read(starting, empty):
    running = starting(empty, "--no-crawl")
    secret = empty / "secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    told = {"secret": secret.read_text().strip()}
    assert httpx.post(f"{running.address}/api/v1/crawl?domain=x.example", params=told).status_code == 400
    assert str(secret) in running.stop()[2]


def test_a_secret_made_at_the_start_is_refused_beside_a_service_with_another(starting, empty, tmp_path):
    starting(empty, "--no-crawl")
    with closing(Database(empty, create=False)) as database:
        address = "postgresql:///?" + urlencode(conninfo_to_dict(database.embedded.address()))
        ended = refused(tmp_path / "other", "--db", address, "--port", "18998")
        assert ended.returncode == 4
        assert not unsaid(ended.stderr, "TAMIAS_SECRET", "--secret-file", "FILE")
        same = ("--secret-file", str(empty / "secret"))
        other = starting(tmp_path / "other", "--no-crawl", "--db", address, *same)
        assert httpx.get(f"{other.address}/healthz").json()["status"] == "ok"


def test_others_are_not_listened_to_without_a_chosen_secret(empty):
    ended = refused(empty, "--host", "0.0.0.0", "--port", "18999")
    assert ended.returncode == 2
    assert "TAMIAS_SECRET" in ended.stderr


def test_others_are_listened_to_with_a_chosen_secret(starting, empty, tmp_path):
    file = tmp_path / "chosen"
    file.write_text("chosen secret\n")
    running = starting(empty, "--no-crawl", "--host", "0.0.0.0", "--secret-file", str(file))
    assert httpx.get(f"{running.address}/healthz").json()["status"] == "ok"


def test_an_empty_secret_file_is_a_bad_configuration(empty, tmp_path):
    (tmp_path / "chosen").write_text("\n")
    assert refused(empty, "--secret-file", str(tmp_path / "chosen")).returncode == 4


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('keep = "lots"', "archive.keep: 'lots'"),
        ('keep_for = ["a.example=lots"]', "archive.keep_for: 'lots'"),
    ],
)
def test_a_retention_rule_that_is_none_is_told_before_anything_is_served(empty, tmp_path, line, said):
    (tmp_path / "tamias.toml").write_text(f"[archive]\n{line}\n")
    ended = refused(empty, "--config", str(tmp_path / "tamias.toml"))
    assert ended.returncode == 4
    assert ended.stderr.startswith(f"tamias: {said} is not a rule")


def test_a_port_that_is_taken_is_told_in_one_sentence(empty):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = refused(empty, "--port", str(taken.getsockname()[1]))
    assert ended.returncode == 2
    assert "cannot listen" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_it_is_told_to(starting, empty, number):
    running = starting(empty, "--workers", "1")
    code, _, said = running.stop(number)
    assert (code, len(said.splitlines())) == (0, 1), said


def test_two_on_one_archive_both_answer(filled, starting):
    one, two = (starting(filled.data, "--no-crawl", TAMIAS_SECRET=SECRET) for _ in range(2))
    first, second = (httpx.get(f"{each.address}/api/v1/stats/basic").json() for each in (one, two))
    assert first == second


def test_what_stands_in_a_query_string_is_never_logged(filled, starting):
    running = starting(filled.data, "--no-crawl", "-v", "-v", TAMIAS_SECRET=SECRET)
    httpx.get(f"{running.address}/api/v1/resources?secret=whisper&host=whisper")
    httpx.post(f"{running.address}/api/v1/crawl?secret=whisper")
    said = running.stop()[2]
    assert "/api/v1/crawl" in said
    assert "whisper" not in said


def test_metrics_are_in_the_text_format_of_prometheus(client):
    lines = client.get("/metrics").text.splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in samples), samples
    names = {line.split("{")[0].split(" ")[0] for line in samples}
    told = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {"tamias_datasets", "tamias_versions", "tamias_http_requests_total"} <= names <= told


def test_connections_that_say_nothing_are_dropped_and_disturb_nobody(served, client):
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(300)]
    try:
        assert client.get("/healthz").status_code == 200
        silent[-1].settimeout(60)
        assert silent[-1].recv(1) == b""
    finally:
        for each in silent:
            each.close()


class Site(BaseHTTPRequestHandler):
    """A file that changes when it is told to, and no robots.txt."""

    def do_GET(self):
        content = self.server.content if self.path == "/data.csv" else b""
        self.send_response(200 if content else 404)
        self.send_header("Content-Type", "text/csv")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.content = b"a,b\n1,2\n"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def versions(client, url, count):
    """The versions of a resource as soon as there are so many."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = client.get(f"/api/v1/get/dataset/{url}").json().get("versions", [])
        if len(found) >= count:
            return found
        time.sleep(0.1)
    raise AssertionError(f"only {found}")


def test_what_is_put_under_watch_is_visited_and_visited_again_when_that_is_wanted(starting, empty, site):
    running = starting(empty, "--allow-private", "--delay", "0", "--workers", "1", TAMIAS_SECRET="s")
    url = f"http://127.0.0.1:{site.server_port}/data.csv"
    with httpx.Client(base_url=running.address, headers={"Authorization": "Bearer s"}, timeout=30) as client:
        assert client.post("/api/v1/post/resource", json={"url": url}).status_code == 201
        (first,) = versions(client, url, 1)
        assert client.get(first["download"]).content == b"a,b\n1,2\n"
        site.content = b"a,b\n1,3\n"
        name = client.get(f"/api/v1/get/dataset/{url}").json()["id"]
        assert client.post(f"/api/v1/crawl?id={name}").status_code == 202
        found = versions(client, url, 2)
        assert client.get(found[1]["download"]).content == b"a,b\n1,3\n"
        deadline = time.monotonic() + 60
        while "tamias_crawl_workers 1" not in client.get("/metrics").text:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert client.get("/healthz").json()["crawl"] is True


def test_the_scope_of_crawls_keeps_nothing_from_being_watched(starting, empty):
    running = starting(empty, "--no-crawl", TAMIAS_SECRET="s", TAMIAS_FILTERS__SCOPE="host")
    with httpx.Client(base_url=running.address, headers={"Authorization": "Bearer s"}, timeout=30) as client:
        answer = client.post("/api/v1/post/resource", json={"url": "http://new.example/a.csv"})
        assert answer.status_code == 201, answer.text
        answer = client.post("/api/v1/post/resource", json={"url": "http://p.example/", "kind": "portal"})
        assert answer.status_code == 201, answer.text


def test_a_client_that_never_ends_does_not_keep_it_from_stopping(starting, empty):
    running = starting(empty, "--no-crawl", TAMIAS_SECRET="s")
    with socket.create_connection(("127.0.0.1", running.port)) as slow:
        slow.sendall(
            b"POST /api/v1/post/resource?secret=s HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"
        )
        assert httpx.get(f"{running.address}/healthz").status_code == 200
        assert running.stop()[0] == 0


def test_connections_that_the_database_cuts_are_mended(client, filled):
    others = b"FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = user"
    for path in ("/api/v1/stats/basic", "/api/v1/get/dataset/http://data.example/a.csv", "/api/v1/hosts"):
        filled.run(b"SELECT pg_terminate_backend(pid) " + others)
        assert client.get(path).status_code == 200


def test_each_request_is_a_line_of_json_in_the_log_without_its_query(starting, filled):
    running = starting(filled.data, "--no-crawl", "-v", "--log", "json", TAMIAS_SECRET=SECRET)
    httpx.get(f"{running.address}/api/v1/resources?secret=whisper")
    lines = [json.loads(line) for line in running.stop()[2].splitlines() if line.startswith("{")]
    told = [each for each in lines if "/api/v1/resources" in each["message"]]
    assert [(each["level"], each["logger"]) for each in told] == [("info", "tamias.serve.access")]
    assert told[0]["message"].startswith("GET /api/v1/resources 200 ")
    assert (told[0]["time"][-1], "whisper" in str(lines)) == ("Z", False)
