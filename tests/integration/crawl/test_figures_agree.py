"""Figures of overview, pages, REST, metrics and commands agree at one moment, and with what SQL counts."""

import json
import re
import threading
from contextlib import closing

import httpx
import pytest

from tamias.database.connect import Database
from tests.ports import free_port

NEVER = 2**63 - 1
HOSTS = ("a.wood.example", "b.wood.example", "c.meadow.example")


@pytest.fixture
def wood(site):
    """Three hosts of two domains on one server. Each page links to four more, until depth 3."""
    port = site.server.server_port
    links = " ".join(f"<> <#to> <http://{host}:{port}/x> ." for host in HOSTS)
    site.pages["/0"] = links.encode()
    for path in ("x", *(f"x{n}" for n in range(4))):
        site.pages[f"/{path}"] = "".join(f"<> <#to> </{path}{n}> ." for n in range(4)).encode()
    site.pages["/lost.ttl"] = b"<> <#is> <#lost> ."
    return f"http://{HOSTS[0]}:{port}/0"


@pytest.fixture
def served(tamias, tmp_path):
    """The address and the secret of a service that resolves the names to this machine."""
    config = tmp_path / "tamias.toml"
    config.write_text(f"fetch.resolve = {json.dumps([f'{host}:127.0.0.1' for host in HOSTS])}\n")
    port = free_port()
    words = ("--allow-private", "--delay", "0", "--workers", "1", "--config", str(config))
    service = tamias.start("serve", "--port", str(port), *words)
    said = next(line for line in service.stderr if "serving at" in line or "tamias:" in line)
    assert "serving at" in said, said
    threading.Thread(target=service.stderr.read, daemon=True).start()
    secret = (tamias.data / "secret").read_text().strip()
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
        yield client
    service.terminate()
    service.wait(timeout=60)


def begin(client, seed, **options):
    request = {"seeds": [seed], "options": options, "start": True}
    assert client.post("/api/v1/crawls/wood", json=request).status_code == 201


def told(tamias, *words):
    done = tamias.run(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def counted(tamias, statement):
    with closing(Database(tamias.data, create=False)) as database, closing(database.session()) as session:
        return session.transact(lambda cursor: cursor.execute(statement).fetchone())


def crawl_figures(tamias, client):
    """Known and open URLs and queues of the crawl, by the door that says so."""
    urls = client.get("/metrics").text
    metric = {
        state: float(re.search(rf'tamias_frontier_urls{{crawl="wood",state="{state}"}} (\S+)', urls)[1])
        for state in ("known", "open")
    }
    page = client.get("/crawl/wood.json").json()
    listed = {
        "overview": client.get("/overview.json").json()["crawls"],
        "list of crawls": client.get("/crawls.json").json()["crawls"],
        "frontier": client.get("/frontier.json").json()["crawls"],
        "REST, frontier": client.get("/api/v1/frontier").json()["crawls"],
        "REST, crawl": [client.get("/api/v1/crawls/wood").json()],
        "tamias status": told(tamias, "status", "--once")["crawls"],
        "tamias crawls": told(tamias, "crawls"),
        "tamias stats": told(tamias, "stats")["frontier"]["crawls"],
    }
    found = {
        door: next((each["known"], each["open"], each["hosts"]) for each in crawls if each["name"] == "wood")
        for door, crawls in listed.items()
    }
    found["page of the crawl"] = (page["known"], page["open"], page["queues"])
    found["metrics"] = (metric["known"], metric["open"], page["queues"])
    found["SQL"] = counted(
        tamias,
        f"SELECT count(*), count(*) FILTER (WHERE due < {NEVER}), count(DISTINCT qid) FROM url"
        " JOIN crawl USING (crawl) WHERE crawl.name = 'wood'".encode(),
    )
    return found


def test_a_paused_crawl_has_the_same_figures_at_every_door(tamias, site, wood, served):
    site.pages["/x12"] = blocker = Blocker()
    begin(served, wood, depth=3)
    assert blocker.reached.wait(60)
    assert served.post("/api/v1/frontier/pause", params={"crawl": "wood"}).status_code == 200
    blocker.released.set()
    tamias.wait_until(lambda: served.get("/frontier.json").json()["waiting"]["fetching"] == 0)
    tamias.wait_until(lambda: len(set(crawl_figures(tamias, served).values())) == 1)  # pages are 3 s old
    found = crawl_figures(tamias, served)
    assert set(found.values()) == {found["SQL"]}, found
    known, left, queues = found["SQL"]
    assert (known > left > 0, queues) == (True, 2), found  # two domains
    overview = served.get("/overview.json").json()
    assert (overview["queued"], overview["waiting"]["unit"]) == (left, "Domains")
    page = served.get("/", headers={"Accept": "text/html"}).text
    assert f"<dt>Still to visit</dt><dd>{left}</dd>" in page
    page = served.get("/crawl/wood", headers={"Accept": "text/html"}).text
    assert f"<dt>Still to visit</dt><dd>{left}</dd>" in page
    assert f"<dt>Domains</dt><dd>{queues}</dd>" in page


class Blocker:
    """A page that answers when it is released."""

    def __init__(self):
        self.reached, self.released = threading.Event(), threading.Event()

    def __call__(self, handler):
        self.reached.set()
        self.released.wait(120)
        handler.send_response(404)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


def test_a_domain_that_is_fetched_is_nothing_else(tamias, site, wood, served):
    site.pages["/0"] = blocker = Blocker()
    begin(served, wood)
    assert blocker.reached.wait(60)
    states = served.get("/frontier.json").json()["waiting"]
    page = served.get("/crawl/wood.json").json()["waiting"]
    frontier = served.get("/frontier", headers={"Accept": "text/html"}).text
    status = tamias.run("status", "--once").stdout

    def busy():
        """One worker for watched resources, one for the crawl; they say now and then what they do."""
        live = served.get("/overview.json").json()["crawl"]
        return (live["in_flight"], live["workers"]) == (1, 2)

    tamias.wait_until(busy)
    blocker.released.set()
    counts = {name: states[name] for name in ("hosts", "fetching", "ready", "polite", "blocked", "idle")}
    assert counts == {"hosts": 1, "fetching": 1, "ready": 0, "polite": 0, "blocked": 0, "idle": 0}
    (row,) = page
    assert (row["urls"], row["queues"], row["until"]) == (1, 1, None)
    (line,) = (each for each in frontier.splitlines() if "state fetching" in each)
    assert "<time" not in line
    (line,) = (each for each in status.splitlines() if each.startswith("crawl wood"))
    assert ("fetching" in line, "next" in line) == (True, False)


def test_statements_and_documents_of_a_crawl_are_those_that_sparql_counts(tamias, site, wood, served):
    begin(served, wood, depth=2)
    tamias.wait_until(lambda: served.get("/api/v1/crawls/wood").json()["open"] == 0)
    query = "SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?g) AS ?d) { GRAPH ?g { ?s ?p ?o } }"

    def asked():
        answer = served.get(
            "/sparql", params={"query": query}, headers={"Accept": "application/sparql-results+json"}
        )
        (row,) = answer.json()["results"]["bindings"]
        return int(row["n"]["value"]), int(row["d"]["value"])

    quads = tamias.quads()
    graphs = {quad.split(" ")[-2] for quad in quads}
    tamias.wait_until(lambda: asked() == (len(quads), len(graphs)))
    tamias.wait_until(lambda: served.get("/crawl/wood.json").json()["statements"] == len(quads))
    assert len(served.get("/documents.json").json()["documents"]) == len(graphs)


def test_what_is_gone_without_a_version_is_not_called_archived(tamias, site, wood, served):
    lost, never = site.url("/lost.ttl"), site.url("/never.ttl")
    assert tamias.run("add", lost, never).returncode == 0
    tamias.wait_until(lambda: site.asked("/lost.ttl") and site.asked("/never.ttl"))
    del site.pages["/lost.ttl"]

    def states():
        return dict(
            counted(tamias, b"SELECT json_object_agg(url, ARRAY[state, versions::text]) FROM resource")[0]
        )

    def visited_again():
        served.post("/api/v1/post/resource", json={"url": lost})
        tamias.run("crawl", "--recrawl", lost, never, "--allow-private", "--delay", "0")
        return {tuple(each) for each in states().values()} == {("gone", "1"), ("gone", "0")}

    tamias.wait_until(visited_again)
    tamias.wait_until(lambda: served.get("/overview.json").json()["figures"]["states"]["gone"] == 2)
    figures = served.get("/overview.json").json()["figures"]
    assert (figures["states"]["gone"], figures["states"]["archived"]) == (2, 1)
    page = served.get("/", headers={"Accept": "text/html"}).text
    assert "<dt>Gone, still archived</dt><dd>1</dd>" in page
    basic = served.get("/api/v1/stats/basic").json()
    stats = told(tamias, "stats")
    names = ("datasets", "versions", "hosts", "sources", "bytes", "stored_bytes")
    sql = counted(tamias, b"SELECT count(*), sum(versions), count(DISTINCT host) FROM resource")
    assert {name: figures["basic"][name] for name in names} == {name: basic[name] for name in names}
    assert tuple(basic[name] for name in names[:3]) == tuple(map(int, sql))
    assert {name: stats["archive"][name] for name in names} == {name: basic[name] for name in names}
