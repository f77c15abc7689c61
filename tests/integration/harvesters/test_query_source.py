"""A query as a standing source: asked again at each harvest, its results watched like those of a portal."""

import json
import urllib.parse
from contextlib import closing

import httpx
import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, NamedNode, Quad, RdfFormat, Store

from tamias.database.connect import Database
from tests.integration.serve.conftest import Running
from tests.messages import unnamed

LABEL = "http://p.example/title"
DCAT = "http://www.w3.org/ns/dcat#"
SELECT = (
    f"SELECT ?url ?title ?format ?portal WHERE {{ ?url <{LABEL}> ?title ; <http://p.example/f> ?format ;"
    " <http://p.example/portal> ?portal }"
)
CONSTRUCT = (
    f"PREFIX dcat: <{DCAT}> CONSTRUCT {{ ?d a dcat:Dataset ; dcat:distribution [ dcat:downloadURL ?url ] }}"
    " WHERE { ?d <http://p.example/file> ?url }"
)


def described(url, number):
    return (
        f'<{url}> <{LABEL}> "Table {number}" .\n<{url}> <http://p.example/f> "CSV" .\n'
        f'<{url}> <http://p.example/portal> "http://portal.example/" .\n'
    )


@pytest.fixture
def watch(tamias, proxy, tmp_path):
    """`watch(query)` makes it a standing source; `watch.visit()` visits what is due."""
    tamias.env["TAMIAS_FETCH__DELAY"] = "0"
    tamias.env["TAMIAS_SCHEDULE__HARVESTS"] = "0.2"

    def add(query):
        file = tmp_path / "query.rq"
        file.write_text(query)
        return tamias.run("add", "--sparql", proxy.url, "--query", str(file))

    return add


def canonical(quads):
    found = Dataset(quads)
    found.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return found


def watched(tamias):
    return {each["url"]: each for each in json.loads(tamias.run("list", "--json").stdout)}


def vanished(tamias):
    """What the last whole harvest did not find any more, with the kind of its source."""
    with closing(Database(tamias.data, create=False)) as database, closing(database.session()) as session:
        gone = (
            "SELECT o.url, p.kind FROM described d JOIN offered o USING (portal, record)"
            " JOIN portal p USING (portal) WHERE d.gone_at IS NOT NULL"
        )
        return set(session.transact(lambda cursor: cursor.execute(gone).fetchall()))


def test_a_query_is_asked_again_and_what_it_returns_is_watched(tamias, proxy, sparql_server, site, watch):
    site.pages |= {f"/{n}.csv": f"id,value\n1,{n}\n".encode() for n in range(25)}
    urls = [site.url(f"/{n}.csv") for n in range(25)]
    sparql_server.load("".join(described(url, n) for n, url in enumerate(urls[:-1])))
    proxy.cap = 10
    done = watch(SELECT)
    assert done.returncode == 0, done.stderr
    assert not proxy.asked, "adding a source sends no request"
    assert tamias.crawl("--recrawl").returncode == 0
    found = watched(tamias)
    assert {url: each["title"] for url, each in found.items()} == {
        url: f"Table {n}" for n, url in enumerate(urls[:-1])
    }
    assert {each["versions"] for each in found.values()} == {1}
    before = len(proxy.asked)
    sparql_server.load("".join(described(url, n) for n, url in enumerate(urls[1:], 1)))
    assert tamias.crawl("--recrawl").returncode == 0
    assert len(proxy.asked) > before
    assert set(watched(tamias)) == set(urls)
    assert vanished(tamias) == {(urls[0], "sparql-query"), (urls[0], "named")}
    [query, named] = json.loads(tamias.run("portals", "--json").stdout)
    assert (query["kind"], query["state"]) == ("sparql-query", "active")
    assert (named["url"], named["state"], named["named_by"]) == (
        "http://portal.example/",
        "named",
        query["url"],
    )
    assert (named["datasets"], named["gone"], named["files"]) == (24, 1, 24)
    refused = tamias.run("portals", "stop", "http://portal.example/")
    assert refused.returncode == 2
    assert query["url"] in refused.stderr
    running = Running(tamias.data, "--no-crawl")
    try:
        ask = {"url": "http://portal.example/", "at": "2020-01-01"}
        page = httpx.get(f"{running.address}/portal", params=ask, headers={"Accept": "text/html"})
        before = httpx.get(f"{running.address}/api/v1/portal/at", params=ask).json()
        now = httpx.get(f"{running.address}/api/v1/portal/at", params={"url": ask["url"]}).json()
    finally:
        running.stop()
    assert page.status_code == 200
    assert before["items"] == []
    assert [each["files"][0]["url"] for each in now["items"]] == sorted(urls[1:])


def test_the_expected_format_of_a_resource_is_asked_for_first(tamias, sparql_server, site, reply, watch):
    accepted = []

    def table(handler):
        accepted.append(handler.headers["Accept"])
        status = 406 if len(accepted) == 1 else 200
        reply(status, b"id,value\n1,2\n", Content_Type="text/csv")(handler)

    site.pages["/1.csv"] = table
    sparql_server.load(described(site.url("/1.csv"), 1))
    assert watch(SELECT).returncode == 0
    assert tamias.crawl("--recrawl").returncode == 0
    assert accepted[0].startswith("text/csv, text/turtle;q=0.9, ")
    assert accepted[1:] == ["*/*"]


def test_a_construct_brings_datasets_and_their_statements(tamias, proxy, sparql_server, site, watch):
    site.pages["/a.csv"] = b"id,value\n1,2\n"
    sparql_server.load(f"<http://d.example/1> <http://p.example/file> <{site.url('/a.csv')}> .\n")
    proxy.gives["application/n-triples"] = "application/n-triples"
    assert watch(CONSTRUCT).returncode == 0
    assert tamias.crawl("--recrawl").returncode == 0
    assert {url: each["versions"] for url, each in watched(tamias).items()} == {site.url("/a.csv"): 1}
    graph = f"{proxy.url}?{urllib.parse.urlencode({'query': CONSTRUCT})}"
    found = Store()
    found.load("\n".join(tamias.quads()).encode(), format=RdfFormat.N_QUADS)
    statements = [
        Quad(quad.subject, quad.predicate, quad.object)
        for quad in found.quads_for_pattern(None, None, None, NamedNode(graph))
    ]
    served = Store()
    served.load(sparql_server.content(), format=RdfFormat.N_QUADS)
    expected = [Quad(*triple) for triple in served.query(CONSTRUCT)]
    assert canonical(statements) == canonical(expected)


def test_a_host_that_robots_closes_is_asked_where_permission_was_granted(tamias, site, reply, tmp_path):
    answer = {
        "head": {"vars": ["url"]},
        "results": {"bindings": [{"url": {"type": "uri", "value": site.url("/a.csv")}}]},
    }
    empty = {"head": {"vars": ["url"]}, "results": {"bindings": []}}
    asked = []

    def endpoint(handler):
        asked.append(handler.path)
        value = answer if "OFFSET+0" in handler.path else empty
        reply(200, json.dumps(value).encode(), Content_Type="application/sparql-results+json")(handler)

    site.pages |= {
        "/robots.txt": b"User-agent: *\nDisallow: /sparql\n",
        "/a.csv": b"a,b\n1,2\n",
        "/sparql?": endpoint,
    }
    tamias.env["TAMIAS_SCHEDULE__HARVESTS"] = "0.2"
    query = tmp_path / "q.rq"
    query.write_text("SELECT ?url { ?url ?p ?o }")
    assert tamias.run("add", "--sparql", site.url("/sparql"), "--query", str(query)).returncode == 0
    assert tamias.crawl("--recrawl").returncode in (0, 1)
    assert not asked
    tamias.env["TAMIAS_PERMIT__GRANTED"] = "127.0.0.1"
    assert tamias.crawl("--recrawl").returncode == 0
    assert asked
    assert set(watched(tamias)) == {site.url("/a.csv")}


@pytest.mark.parametrize("query", ["ASK { ?s ?p ?o }", "nonsense"])
def test_a_query_that_names_nothing_is_refused_at_once(watch, query):
    done = watch(query)
    assert (done.returncode, unnamed(done.stderr, "SELECT", "CONSTRUCT")) == (2, [])


def test_the_type_in_a_list_of_seeds_is_obeyed(tamias, proxy, sparql_server, tmp_path):
    sparql_server.load('<http://d.example/1> <http://p.example/p> "copied" .\n')
    seeds = tmp_path / "seeds.csv"
    seeds.write_text(f"uri,type\n{proxy.url},sparql\n")
    done = tamias.crawl("--seeds", seeds, "--depth", "0")
    assert done.returncode == 0, done.stderr
    assert any('"copied"' in line for line in tamias.quads())
    seeds.write_text(f"uri,type\n{proxy.url},sparkle\n")
    done = tamias.crawl("--seeds", seeds)
    assert (done.returncode, "Unknown source type 'sparkle'" in done.stderr) == (2, True)
