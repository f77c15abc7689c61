"""A small archive that real verbs made of a loopback web, the real service over it, and a real Chromium."""

import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from contextlib import closing, suppress
from importlib.resources import files

import httpx
import pytest

from tamias.database.connect import Database
from tamias.model.resource import resource_id
from tamias.model.url import fetch_url, url_key
from tests import commands

SECRET = "acorns"
PORTAL, AIR, VOCABULARY, BROKEN = (
    "data.nutwood.example",
    "air.nutwood.example",
    "terms.oak.example",
    "old.elm.example",
)
HOSTS = (PORTAL, AIR, VOCABULARY, BROKEN)
HOSTILE = "<script>alert(1)</script>"
DAY = 86_400_000
ROUNDS = 3


def air(version):
    """Measurements: some change, some come, some go from version to version."""
    head = "station,measured_on,pm10,place"
    rows = [f"S{n:03d},2026-01-{1 + n % 28:02d},{10 + (n * 7 + version * (n % 5 == 0)) % 40},Nutwood {n % 9}"
            for n in range(version, 40 + 3 * version)]  # fmt: skip
    return "\n".join([head, *rows, ""]).encode()


def terms(version):
    """A small vocabulary that grows."""
    names = ["Chipmunk", "Squirrel", "Marmot", "Dormouse", "Beaver"][: 2 + version]
    told = [
        f't:{name} a skos:Concept ; skos:prefLabel "{name}"@en ; skos:inScheme t: ; skos:broader t:Rodent .'
        for name in names
    ]
    head = [
        f"@prefix t: <http://{VOCABULARY}/terms#> .",
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .",
    ]
    top = 't: a skos:ConceptScheme ; skos:prefLabel "Rodents"@en ; skos:hasTopConcept t:Rodent .'
    return "\n".join([*head, top, *told, ""]).encode()


def budget(version):
    return f"post;amount_eur\nschools;{1000 + version}\nroads;{800 - version}\nacorns;{version}\n".encode()


class Web:
    """Four hosts on one loopback port; `round` is which state of the world they show."""

    def __init__(self):
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each body waits 40 ms until its headers are acknowledged

            def do_GET(self):
                with suppress(ConnectionError):
                    self.answer(*web.page(self.headers["Host"].partition(":")[0], self.path))

            def answer(self, status, kind, content, headers=None):
                self.send_response(status)
                told = {"Content-Type": kind, "Content-Length": str(len(content)), **(headers or {})}
                for name, value in told.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.round = 1
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, host, path):
        return f"http://{host}:{self.server.server_port}{path}"

    def page(self, host, path):
        now = self.round
        if path == "/robots.txt":
            rules = "User-agent: *\nDisallow: /private/\nCrawl-delay: 0\nSitemap: " + self.url(
                host, "/sitemap.xml"
            )
            return 200, "text/plain", (rules + "\n").encode()
        if path.startswith("/api/3/action/package_search"):
            return 200, "application/json", json.dumps(self.catalogue(path)).encode()
        trees = [{"id": n, "kind": "oak"} for n in range(9 * now)]
        page = b"<!doctype html><title>x</title><script>document.title = 'run'</script><p>archived"
        refusal = {"X-Robots-Tag": "noindex, noarchive"}
        pages = {
            (AIR, "/pm10.csv"): (200, "text/csv", air(now)),
            (VOCABULARY, "/terms.ttl"): (200, "text/turtle", terms(now)),
            (PORTAL, "/budget.csv"): (200, "text/csv", budget(now)),
            (PORTAL, "/trees.json"): (200, "application/json", json.dumps({"trees": trees}).encode()),
            (PORTAL, "/hidden.csv"): (200, "text/csv", b"a,b\n1,2\n", refusal),
            (PORTAL, "/hostile.csv"): (200, "text/csv", f"b,{HOSTILE}\n{now},{HOSTILE}\n".encode()),
            (PORTAL, "/page.html"): (200, "text/html", page),
        }
        if host == BROKEN:
            return 500, "text/plain", b"out of order"
        return pages.get((host, path), (404, "text/plain", b"not here"))

    def catalogue(self, path):
        words = dict(pair.split("=") for pair in path.partition("?")[2].split("&") if "=" in pair)
        start, rows = int(words.get("start", 0)), int(words.get("rows", 10))
        offered = [
            ("budget", "Budget of Nutwood", PORTAL, "/budget.csv", "CSV"),
            ("trees", "Trees of Nutwood", PORTAL, "/trees.json", "JSON"),
            ("air", "Air quality", AIR, "/pm10.csv", "CSV"),
            ("terms", "Terms for rodents", VOCABULARY, "/terms.ttl", "TTL"),
            ("old", "Old register", BROKEN, "/register.csv", "CSV"),
        ]
        results = [
            {"id": name, "name": name, "title": title, "notes": "x", "license_id": "cc-by",
             "resources": [{"id": f"r-{name}", "url": self.url(host, path), "format": kind, "name": "file"}]}
            for name, title, host, path, kind in offered
        ]  # fmt: skip
        return {"success": True, "result": {"count": len(results), "results": results[start : start + rows]}}

    def close(self):
        self.server.shutdown()
        self.server.server_close()


SNAPSHOT = "nutwood-2026"


class Made:
    """What the archive was made of, and where its things are."""

    def __init__(self, data, web):
        self.data = data
        self.web = web
        self.portal = web.url(PORTAL, "/")
        self.hosts = HOSTS

    def id(self, host, path):
        return resource_id(url_key(fetch_url(self.web.url(host, path))))

    @property
    def air(self):
        return self.id(AIR, "/pm10.csv")

    @property
    def terms(self):
        return self.id(VOCABULARY, "/terms.ttl")

    @property
    def hidden(self):
        return self.id(PORTAL, "/hidden.csv")

    @property
    def hostile(self):
        return self.id(PORTAL, "/hostile.csv")

    @property
    def html(self):
        return self.id(PORTAL, "/page.html")


def environment(**words):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
    fast = {
        "TAMIAS_SCHEDULE__RULE": "fixed:1",
        "TAMIAS_SCHEDULE__RETRY_WAIT": "1",
        "TAMIAS_SEEDS__PROBE": "false",
        "TAMIAS_CRAWL__RETRY_WAIT": "0.1",
    }
    return {**clean, **fast, **words}


def run(verb, data, *words):
    command = [verb, "--data", str(data), *words]
    done = commands.run(command, check=False, capture_output=True, text=True, timeout=120, env=environment())
    assert done.returncode == 0, f"{verb}: {done.stderr}"


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The archive: a portal and its files, some by themselves, three rounds of visits."""
    data, web = tmp_path_factory.mktemp("browser") / "data", Web()
    with closing(Database(data)) as database, closing(database.session()) as session:
        alone = {"/hidden.csv": "Nests", "/hostile.csv": HOSTILE, "/page.html": "About the wood"}
        lines = [f"{web.url(PORTAL, path)},{title}" for path, title in alone.items()]
        listed = data.with_name("list.csv")
        listed.write_text("\n".join(["uri,title", *lines, ""]))
        run("add", data, "--file", str(listed), f"ckan:{web.url(PORTAL, '/')}")
        resolved = [word for host in HOSTS for word in ("--resolve", f"{host}:127.0.0.1")]
        usual = ("--allow-private", "--delay", "0", "--workers", "1", "--max-wait", "3")
        for web.round in range(1, ROUNDS + 1):
            run("crawl", data, "--recrawl", *usual, *resolved)
            time.sleep(1.1 if web.round < ROUNDS else 0)
        age(session)
    run(
        "snapshot",
        data,
        SNAPSHOT,
        "--creator",
        "Society for the Study of Squirrels",
        "--doi",
        "10.5072/nutwood",
    )
    yield Made(data, web)
    web.close()


FOREST = "forest.example"
ALL_HOSTS = (*HOSTS, FOREST)
_LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
_NEXT = "<http://terms.example/next>"


def tree(name, other, version):
    """A graph of one subject that names another document."""
    return f'<> {_LABEL} "{name} {version}"@en ; {_NEXT} <{other}> .\n'.encode()


class Forest(Web):
    """The hosts of `Web`, and one whose pages link graphs, an image, and what is refused, gone or broken."""

    mended = False
    """Whether /broken.ttl is served again."""

    def page(self, host, path):
        if host != FOREST:
            return super().page(host, path)
        if path == "/robots.txt":
            return 200, "text/plain", b"User-agent: *\nDisallow: /private/\nCrawl-delay: 0\n"
        if path.startswith("/api/3/action/"):
            return 200, "application/json", json.dumps(self.second_catalogue()).encode()
        links = ("oak.ttl", "elm.ttl", "nests.ttl", "private/map.ttl", "gone.ttl", "broken.ttl")
        index = "<!doctype html><title>The forest</title><h1>The forest</h1><img src=leaf.svg alt=leaf>"
        index += "".join(f'<p><a href="{each}">{each}</a>' for each in links)
        leaf = (
            b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle cx="4" cy="4" r="4"/></svg>'
        )
        pages = {
            "/": (200, "text/html", index.encode()),
            "/leaf.svg": (200, "image/svg+xml", leaf),
            "/oak.ttl": (200, "text/turtle", tree("Oak", "elm.ttl", self.round)),
            "/elm.ttl": (200, "text/turtle", tree("Elm", "oak.ttl", 1)),
            "/nests.ttl": (200, "text/turtle", tree("Nests", "oak.ttl", 1)),
        }
        if path == "/seeds.csv":
            return 200, "text/csv", b"tree,seeds\noak,900\nelm,40\n"
        if path == "/broken.ttl":
            mended = (200, "text/turtle", tree("Birch", "oak.ttl", 1))
            return mended if self.mended else (500, "text/plain", b"out of order")
        return pages.get(path, (404, "text/plain", b"not here"))

    def second_catalogue(self):
        """A portal of its own, with one dataset."""
        file = {"id": "r-seeds", "url": self.url(FOREST, "/seeds.csv"), "format": "CSV", "name": "file"}
        listed = {"id": "seeds", "name": "seeds", "title": "Seeds of the forest", "resources": [file]}
        return {"success": True, "result": {"count": 1, "results": [listed]}}


def make_forest(data):
    """What five people work with: the portal, a crawl into WARC files, visited twice, something forgotten."""
    web = Forest()
    run("add", data, f"ckan:{web.url(PORTAL, '/')}")
    resolved = [word for host in ALL_HOSTS for word in ("--resolve", f"{host}:127.0.0.1")]
    usual = ("--allow-private", "--delay", "0", "--workers", "1", "--max-wait", "3", *resolved)
    for web.round in range(1, ROUNDS + 1):
        run("crawl", data, "--recrawl", *usual)
        if web.round == 1:
            seed = web.url(FOREST, "/")
            run("crawl", data, seed, "--depth", "1", "--sink", "warc", "--requisites", *usual)
        if web.round == 2:
            run("crawls", data, "reopen", "--outcome", "ok")
            run("crawl", data, "--sink", "warc", *usual)
        time.sleep(1.1 if web.round < ROUNDS else 0)
    run("forget", data, web.url(FOREST, "/nests.ttl"), "--reason", "where rare birds nest")
    run("forget", data, web.url(PORTAL, "/trees.json"), "--version", "1", "--reason", "names of owners")
    return Made(data, web)


def age(session):
    """As if the rounds had been weeks apart: pages about time have something to show."""

    def change(cursor):
        cursor.execute(
            "UPDATE version SET captured_at = version.captured_at - (newest.n - version.number) * %b::int8"
            " FROM (SELECT resource, versions AS n FROM resource) AS newest"
            " WHERE newest.resource = version.resource", (9 * DAY,)
        )  # fmt: skip
        cursor.execute("UPDATE resource SET change_rate = 0.11, next_visit = visited_at + %b::int8"
                       " WHERE resource.versions > 1", (2 * DAY,))  # fmt: skip

    session.transact(change)


class Service:
    """`tamias serve` until it is stopped."""

    def __init__(self, data, *words, **variables):
        with socket.socket() as trial:
            trial.bind(("127.0.0.1", 0))
            port = trial.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        command = ["serve", "--data", str(data), "--port", str(port), *words]
        self.process = commands.start(
            command,
            env=environment(TAMIAS_SECRET=SECRET, **variables),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            with suppress(httpx.TransportError):
                httpx.get(f"{self.address}/healthz", timeout=5)
                return
            time.sleep(0.05)
        raise AssertionError("no answer")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


@pytest.fixture(scope="session")
def address(made):
    """Where the service over the archive is."""
    service = Service(made.data, "--no-crawl")
    yield service.address
    service.stop()


@pytest.fixture(scope="session")
def forest(tmp_path_factory):
    """The archive of five people, and the real service over it, which goes on crawling."""
    folder = tmp_path_factory.mktemp("forest")
    made = make_forest(folder / "data")
    pairs = json.dumps([f"{host}:127.0.0.1" for host in ALL_HOSTS])
    config = folder / "tamias.toml"
    config.write_text(f"fetch.resolve = {pairs}\n")
    words = ("--config", str(config), "--allow-private", "--delay", "0", "--workers", "1")
    service = Service(made.data, *words, TAMIAS_SCHEDULE__RULE="fixed:86400")
    made.address = service.address
    yield made
    service.stop()
    made.web.close()


@pytest.fixture(scope="session")
def libraries():
    """Where htmx, Yasgui and axe-core are."""
    found = files("tamias.features.pages").joinpath("libraries")
    if not found.joinpath("versions").is_file():
        pytest.skip("htmx, Yasgui and axe-core are not there: run 'make browser', which needs npm")
    return found


@pytest.fixture(scope="session")
def axe(libraries):
    """The script of axe-core."""
    return libraries.joinpath("axe.min.js").read_text()


@pytest.fixture(scope="module")
def chromium():
    """One for the tests of a module, and no longer: while it lives, an event loop runs in this thread."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed: see tests/system-packages.sh")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Tab:
    """A page of the browser that remembers what went wrong in it."""

    def __init__(self, browser, address, **words):
        self.context = browser.new_context(
            base_url=address, **{"viewport": {"width": 1280, "height": 900}, **words}
        )
        self.page = self.context.new_page()
        self.faults = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _said(self, message):
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def open(self, path):
        self.page.goto(path, wait_until="load")
        return self.page


@pytest.fixture(scope="session")
def tab_on():
    """`tab_on(browser, address)`: whoever opens it closes it."""
    return Tab


@pytest.fixture
def tab(chromium, address):
    """`tab(**words)` is a new tab, with words for Playwright's context, such as `color_scheme`."""
    made = []

    def open_tab(**words):
        made.append(Tab(chromium, address, **words))
        return made[-1]

    yield open_tab
    for each in made:
        each.context.close()


@pytest.fixture
def page(tab):
    """A tab of desktop width; what goes wrong in it fails the test."""
    opened = tab()
    yield opened.page
    assert opened.faults == []


@pytest.fixture(scope="session")
def run_verb():
    """`run_verb(VERB, DATA, *words)`, which must succeed."""
    return run


@pytest.fixture(scope="session")
def air_of():
    """`air_of(N)`: the bytes that version N of the measurements came as."""
    return air
