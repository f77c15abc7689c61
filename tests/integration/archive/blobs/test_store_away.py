"""A store that cannot be reached for a while: nothing ends, nothing is lost, and it is said."""

import threading
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest

from tamias.archive.blobs.packs import StoreUnavailable
from tamias.features.service.http.problems import problem_of
from tests.messages import unsaid
from tests.ports import free_port

from . import s3_server

BODIES = {f"/{number}.csv": b"a,b\n%d,2\n" % number * 500 for number in range(4)}


class Outage:
    """A store at one address, which can be taken away and brought back with what it holds."""

    def __init__(self):
        self.objects = {}
        self._stack = ExitStack()
        self.port = 0
        self.asked = threading.Event()
        self.back()

    def back(self):
        server = self._stack.enter_context(s3_server.serving(self.port, self.objects))
        self.port = server.server_port

    def away(self):
        self._stack.close()

    def environment(self):
        return {
            "TAMIAS_ARCHIVE__STORE": "s3://bucket/archive",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": s3_server.CREDENTIALS.key,
            "AWS_SECRET_ACCESS_KEY": s3_server.CREDENTIALS.secret,
        }


@pytest.fixture
def store():
    made = Outage()
    yield made
    made.away()


@pytest.fixture
def tables(site, reply, store):
    """Tables of a site; with the first request the store goes away, for as long as `seconds` says."""

    def goes_away(handler):
        if not store.asked.is_set():
            store.asked.set()
            store.away()
        reply(200, BODIES[handler.path], **{"Content-Type": "text/csv"})(handler)

    site.pages |= dict.fromkeys(BODIES, goes_away)
    return [site.url(path) for path in BODIES]


def back_when(process, store, words):
    """Brings the store back when the process says so; returns all that it said."""
    said = []
    for line in process.stderr:
        said.append(line)
        if words in line:
            store.back()
            break
    rest = process.communicate(timeout=60)
    return "".join(said) + rest[1]


@pytest.mark.parametrize(
    "patience", ["60", "0"], ids=["the worker waits", "the worker ends and the crawl waits"]
)
def test_a_crawl_goes_on_when_the_store_is_back(fresh, tables, store, site, patience):
    tamias = fresh("data")
    tamias.env |= store.environment() | {"TAMIAS_ARCHIVE__PATIENCE": patience}
    assert tamias.run("add", *tables).returncode == 0
    crawl = ("--recrawl", "--allow-private", "--delay", "0", "--workers", "1")
    process = tamias.start("crawl", *crawl)
    said = back_when(process, store, "the store cannot be reached")
    assert process.returncode == 0, said
    for url in tables:
        assert tamias.run("get", url).stdout.encode() == BODIES[url.removeprefix(site.url(""))]
    checked = tamias.run("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_crawl_ends_when_the_store_stays_away_for_longer_than_the_settings_say(fresh, tables, store):
    tamias = fresh("data")
    tamias.env |= store.environment() | {"TAMIAS_ARCHIVE__PATIENCE": "0"}
    assert tamias.run("add", tables[0]).returncode == 0
    done = tamias.crawl("-v", "--recrawl", "--max-wait", "3")
    assert (done.returncode, "trying for 60 s" in done.stderr) == (1, False)
    assert not unsaid(done.stderr)


def test_the_service_goes_on_without_the_store_and_archives_when_it_is_back(fresh, tables, store, site):
    tamias = fresh("data")
    tamias.env |= store.environment() | {"TAMIAS_ARCHIVE__PATIENCE": "0", "TAMIAS_SECRET": "a secret word"}
    assert tamias.run("add", tables[0]).returncode == 0
    port = free_port()
    process = tamias.start("serve", "--port", str(port), "--allow-private", "--delay", "0", "--workers", "1")
    address = f"http://127.0.0.1:{port}"
    tamias.wait_until(store.asked.is_set)
    said = next(line for line in process.stderr if "the store cannot be reached" in line)
    assert answer(f"{address}/healthz")[0] == 200, said
    store.back()
    file = f"{address}/api/v1/get/file/{tables[0]}"
    tamias.wait_until(lambda: answer(file) == (200, BODIES["/0.csv"]))
    assert process.poll() is None


def test_a_client_of_the_service_is_told_to_come_back():
    told = problem_of(StoreUnavailable("the store cannot be reached"))
    assert (told.status, told.headers) == (503, {"Retry-After": "5"})


def answer(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""
