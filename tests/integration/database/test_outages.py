"""A database elsewhere dies or freezes while commands work on it: they wait, say so, and nothing is lost."""

import json
import signal
import sys
import time
from contextlib import closing

import httpx
import pytest

from tests.database_servers import DatabaseServer
from tests.integration.conftest import Site, Tamias
from tests.ports import free_port

PAGES = 12
DELAY = 0.2
PATIENCE = 90
AT_NIGHT = [1, 6, 20, 75, 600]
NOTICED = 3
"""An outage of fewer seconds may be over before anybody has noticed it."""

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with closing(DatabaseServer(tmp_path_factory.mktemp("away") / "server")) as server:
        yield server


class Outage:
    """One command, a site that it crawls, and a database that goes away meanwhile."""

    def __init__(self, server, folder, kind, seconds):
        self.server, self.kind, self.seconds = server, kind, seconds
        self.database = server.new_database()
        self.site = Site("127.0.0.1")
        self.urls = [self.site.url(f"/{number}") for number in range(PAGES)]
        for number, url in enumerate(self.urls):
            self.site.pages[f"/{number}"] = f'<{url}> <http://x.example/number> "{number}" .'.encode()
        self.tamias = Tamias(folder / "data")
        self.tamias.env |= {"TAMIAS_DB": self.database}

    def start(self, verb, *words):
        usual = ["--allow-private", "--delay", DELAY, "--workers", 1]
        return self.tamias.start(verb, *map(str, usual), *words)

    def asked(self):
        return {path for path, _ in self.site.log if path != "/robots.txt"}

    def wait_until(self, condition):
        self.tamias.wait_until(condition, PATIENCE)

    def recorded(self):
        """How many pages there is a capture of."""
        found = "SELECT count(DISTINCT url) FROM capture WHERE outcome = 1 AND url ~ '/[0-9]+$'"
        return self.server.rows(self.database, found)[0][0]

    def strike(self, is_noticed=lambda: True):
        """The database is away in the middle of the work, until that is noticed and for so many seconds."""
        self.wait_until(lambda: len(self.asked()) >= PAGES // 3)
        begun = time.monotonic()
        (self.server.kill if self.kind == "dead" else self.server.freeze)()
        if self.seconds >= NOTICED or not self.seconds:
            self.wait_until(is_noticed)
        time.sleep(max(0.0, begun + self.seconds - time.monotonic()))
        (self.server.start if self.kind == "dead" else self.server.thaw)()

    def check(self):
        """Nothing is lost, nothing recorded twice, and no request was too early."""
        expected = {
            f'<{url}> <http://x.example/number> "{number}" <{url}> .' for number, url in enumerate(self.urls)
        }
        assert self.tamias.quads() == expected
        rows = self.server.rows(
            self.database, "SELECT url, count(*) FROM capture WHERE outcome = 1 GROUP BY url"
        )
        assert rows == [] or dict.fromkeys(self.urls, 1).items() <= dict(rows).items()
        gaps = self.site.gaps()
        assert min(gaps) > 0, "two requests to one host at once"
        assert [each for each in gaps[1:] if each < DELAY * 0.99] == []
        repeated = len(self.site.log) - 1 - PAGES
        sys.stdout.write(
            f"{self.kind} {self.seconds} s: 0 lost, {repeated} repeated, least gap {min(gaps[1:]):.3f} s\n"
        )
        done = self.tamias.run("check")
        assert done.returncode == 0, done.stdout + done.stderr

    def close(self):
        self.server.thaw()
        self.tamias.end()
        self.site.close()


OUTAGES = [(kind, seconds) for kind in ("dead", "frozen") for seconds in (NOTICED, *AT_NIGHT)]
BY_DAY = {("dead", NOTICED), ("frozen", NOTICED), ("frozen", 20)}
"""In the last one, calls of far workers come to their limit of time."""


@pytest.fixture(
    params=[
        pytest.param(each, id=f"{each[0]}-{each[1]}", marks=() if each in BY_DAY else pytest.mark.nightly)
        for each in OUTAGES
    ]
)
def outage(request, server, tmp_path):
    kind, seconds = request.param
    with closing(Outage(server, tmp_path, kind, seconds)) as outage:
        yield outage


def test_a_crawl_outlives_its_database(outage):
    crawl = outage.start("crawl", *outage.urls)
    outage.strike()
    _, err = crawl.communicate(timeout=PATIENCE)
    assert crawl.returncode == 0, err
    outage.check()


def test_far_workers_and_their_service_outlive_its_database(outage, tmp_path):
    done = outage.tamias.run("crawl", "--in-service", "--allow-private", "--delay", str(DELAY), *outage.urls)
    assert done.returncode == 0, done.stderr
    service = outage.tamias.start("frontier", "--port", "0", "--json")
    address = json.loads(service.stdout.readline())["address"]
    words = [
        "--frontier",
        address,
        "--workers",
        "1",
        "--allow-private",
        "--scratch",
        str(tmp_path / "scratch"),
    ]
    worker = outage.tamias.start("worker", *words)
    outage.strike()
    outage.wait_until(lambda: outage.recorded() == PAGES)
    for each in (worker, service):
        each.send_signal(signal.SIGTERM)
        _, err = each.communicate(timeout=PATIENCE)
        assert each.returncode == 0, err
    outage.check()


class Service:
    """A `tamias serve` on the database, and what its pages and routes answer."""

    def __init__(self, outage):
        port = free_port()
        self.process = outage.start("serve", "--port", str(port))
        self.address = f"http://127.0.0.1:{port}"
        outage.wait_until(self.statuses)

    def statuses(self):
        """Those of a page and of routes; what is away is a 503 that says why, and when to come again."""
        found = set()
        for path in ("/", "/datasets", "/api/v1/stats", "/healthz"):
            try:
                given = httpx.get(self.address + path, timeout=PATIENCE, headers={"Accept": "text/html"})
            except httpx.ConnectError:
                assert self.process.poll() is None, self.process.communicate()
                return set()
            if given.status_code != 200:
                assert given.status_code == 503, given.text
                assert given.headers["Retry-After"]
                assert "database" in given.text
            found.add(given.status_code)
        return found

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, err
        return err


def test_a_service_outlives_its_database_and_says_that_it_is_away(outage):
    service = Service(outage)
    done = outage.tamias.run("add", *outage.urls)
    assert done.returncode == 0, done.stderr
    outage.strike(lambda: service.statuses() == {503})
    outage.wait_until(lambda: service.statuses() == {200})
    outage.wait_until(lambda: outage.recorded() == PAGES)
    said = service.stop()
    assert outage.seconds < NOTICED or "waiting until it is back" in said
    outage.check()


@pytest.mark.parametrize("kind", ["dead", "frozen"])
def test_whoever_waits_for_a_database_can_be_stopped(server, tmp_path, kind):
    with closing(Outage(server, tmp_path, kind, 0)) as outage:
        crawl, service = outage.start("crawl", *outage.urls), Service(outage)

        def stop():
            service.stop()
            crawl.send_signal(signal.SIGINT)
            _, err = crawl.communicate(timeout=PATIENCE)
            assert "Traceback" not in err
            return True

        outage.strike(stop)
        done = outage.tamias.run("crawl", *map(str, ("--allow-private", "--delay", DELAY, "--workers", 1)))
        assert done.returncode == 0, done.stderr
        outage.check()
