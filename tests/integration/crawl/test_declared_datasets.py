"""Datasets as declared: an endpoint, a dump and a Linked Data site that a sitemap and VoID tell of."""

import json
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest
from pyoxigraph import DefaultGraph, NamedNode, Quad, QueryResultsFormat, RdfFormat, Store, parse, serialize

SITEMAP = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
        xmlns:sc="http://sw.deri.org/2007/07/sitemapextension/scschema.xsd">
  <sc:dataset>
    <sc:datasetLabel>Chipmunks</sc:datasetLabel>
    <sc:datasetURI>{base}/about#chipmunks</sc:datasetURI>
    <sc:linkedDataPrefix slicing="subject">{base}/resource/</sc:linkedDataPrefix>
    <sc:sampleURI>{base}/resource/tamias</sc:sampleURI>
    <sc:sparqlEndpointLocation slicing="subject-object">{base}/sparql</sc:sparqlEndpointLocation>
    <sc:sparqlGraphName>{base}/graphs/chipmunks</sc:sparqlGraphName>
    {dump}
    <changefreq>weekly</changefreq>
    <lastmod>2026-11-01T00:00:00Z</lastmod>
  </sc:dataset>
</urlset>
"""
VOID = """@prefix void: <http://rdfs.org/ns/void#> .
<#birds> a void:Dataset ; void:uriSpace "{base}/birds/" ; void:dataDump <{base}/birds.nt> ."""


def send(handler, body, media_type, status=200):
    handler.send_response(status)
    handler.send_header("Content-Type", media_type)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


class Publisher:
    """A site with an endpoint over two graphs, of which only one is the dataset that it declares."""

    def __init__(self, site, *, dump):
        self.base = base = site.url("")
        self.site = site
        self.store = Store()
        self.mine, self.other = f"{base}/graphs/chipmunks", f"{base}/graphs/secrets"
        lines = [
            f"<{base}/resource/{name}> <http://e/eats> <http://e/nuts> <{self.mine}> .\n"
            for name in ("tamias", "striatus", "sibiricus")
        ]
        lines.append(
            f"<{base}/resource/tamias> <http://e/knows> <{base}/resource/striatus> <{self.mine}> .\n"
        )
        lines.append(f'<{base}/x> <http://e/is> "not of the dataset" <{self.other}> .\n')
        self.store.load("".join(lines).encode(), format=RdfFormat.N_QUADS)
        dumped = f"<sc:dataDumpLocation>{base}/dump.nt</sc:dataDumpLocation>" if dump else ""
        triples = [
            quad.triple for quad in self.store.quads_for_pattern(None, None, None, NamedNode(self.mine))
        ]
        site.pages |= {
            "/robots.txt": f"Sitemap: {base}/sitemap.xml\n".encode(),
            "/sitemap.xml": lambda handler: send(
                handler, SITEMAP.format(base=base, dump=dumped).encode(), "application/xml"
            ),
            "/dump.nt": lambda handler: send(
                handler, serialize(triples, format=RdfFormat.N_TRIPLES), "application/n-triples"
            ),
            "/void.ttl": lambda handler: send(handler, VOID.format(base=base).encode(), "text/turtle"),
            "/sparql?": self.answer,
            "/sparql": self.answer,
        }

    def answer(self, handler):
        length = int(handler.headers.get("Content-Length") or 0)
        asked = parse_qs(handler.rfile.read(length).decode() if length else urlsplit(handler.path).query)
        if "query" not in asked:
            send(handler, b"no query", "text/plain", 400)
            return
        found = self.store.query(asked["query"][0])
        if hasattr(found, "variables") or isinstance(found, bool):
            send(handler, found.serialize(format=QueryResultsFormat.JSON), "application/sparql-results+json")
        else:
            send(handler, found.serialize(format=RdfFormat.N_TRIPLES), "application/n-triples")

    def read(self):
        return {path.partition("?")[0] for path, _ in self.site.log}


def statements(text):
    return {quad.triple for quad in parse(text.encode(), format=RdfFormat.N_QUADS)}


@pytest.fixture
def publisher(site):
    return Publisher(site, dump=False)


def test_only_the_graph_that_is_declared_is_copied_and_the_catalogue_tells_of_the_dataset(tamias, publisher):
    base = publisher.base
    tamias.env["TAMIAS_SEEDS__PROBE"] = "false"
    done = tamias.crawl("--scope", "host", f"{base}/void.ttl")
    assert done.returncode == 0, done.stderr
    exported = tamias.run("export").stdout
    assert f"<{base}/resource/tamias> <http://e/knows> <{base}/resource/striatus>" in exported
    assert "not of the dataset" not in exported

    asked = (
        "SELECT ?title ?space ?endpoint ?graph ?from ?often { GRAPH ?g { ?d a void:Dataset ;"
        " dct:title ?title ;"
        " void:uriSpace ?space ; void:sparqlEndpoint ?endpoint ; prov:wasDerivedFrom ?from ;"
        " dct:accrualPeriodicity ?often . ?service sd:namedGraph ?graph } }"
    )
    rows = json.loads(tamias.run("query", asked, "--format", "json").stdout)["results"]["bindings"]
    assert [{name: term["value"] for name, term in row.items()} for row in rows] == [
        {
            "title": "Chipmunks",
            "space": f"{base}/resource/",
            "endpoint": f"{base}/sparql",
            "graph": publisher.mine,
            "from": f"{base}/sitemap.xml",
            "often": "http://publications.europa.eu/resource/authority/frequency/WEEKLY",
        }
    ]

    where = tamias.run("where", f"{base}/resource/tamias", "--json")
    assert where.returncode == 0, where.stderr
    places = {(each["kind"], each["url"], each["by"]) for each in map(json.loads, where.stdout.splitlines())}
    assert ("document", f"{base}/resource/tamias", f"{base}/sitemap.xml") in places
    assert ("sparql", f"{base}/sparql", f"{base}/sitemap.xml") in places
    assert ("copy", publisher.mine, "this crawl") in places
    assert (
        f"<{base}/resource/tamias>"
        in tamias.run(
            "query",
            f"CONSTRUCT {{ ?s ?p ?o }} {{ GRAPH <{publisher.mine}> {{ ?s ?p ?o }} }}",
            "--format",
            "nquads",
        ).stdout
    )
    birds = tamias.run("where", f"{base}/birds/wren").stdout
    assert f"dump      {base}/birds.nt  (says {base}/void.ttl; dataset {base}/void.ttl#birds)" in birds
    assert tamias.run("where", "http://nowhere.example/a").returncode == 1
    assert tamias.run("where", "no iri").returncode == 2

    written = tamias.run("export", "--format", "semantic-sitemap", "--url", base + "/").stdout
    assert f"<sc:sparqlGraphName>{publisher.mine}</sc:sparqlGraphName>" in written
    assert f'<sc:linkedDataPrefix slicing="subject">{base}/resource/</sc:linkedDataPrefix>' in written
    assert f"<sc:sampleURI>{base}/void.ttl</sc:sampleURI>" in written


def test_one_iri_is_read_by_the_cheapest_way_that_works(tamias_at, site):
    """Nothing answers at the IRI itself, so that the endpoint is asked, and the dump is left alone."""
    publisher = Publisher(site, dump=True)
    tamias, iri = tamias_at("none"), f"{publisher.base}/resource/striatus"
    done = tamias.run("read", "--one", "--allow-private", iri)
    assert done.returncode == 0, done.stderr
    expected = {
        Quad(quad.subject, quad.predicate, quad.object, DefaultGraph()).triple
        for quad in publisher.store
        if NamedNode(iri) in (quad.subject, quad.object)
    }
    assert statements(done.stdout) == expected
    assert "/dump.nt" not in publisher.read()
    assert "dereference" in done.stderr
    site.pages["/resource/striatus"] = lambda handler: send(
        handler, f"<{iri}> <http://e/is> <http://e/here> .".encode(), "application/n-triples"
    )
    itself = tamias.run("read", "--one", "--allow-private", iri)
    assert itself.stdout == f"<{iri}> <http://e/is> <http://e/here> .\n"
    del site.pages["/resource/striatus"], site.pages["/sparql?"], site.pages["/sparql"]
    last = tamias.run("read", "--one", "--allow-private", iri)
    assert statements(last.stdout) == {each for each in expected if each.subject == NamedNode(iri)}
    assert "dump" in last.stderr
    assert tamias.run("read", "--one", "--allow-private", iri + "none").returncode == 1


def test_what_a_site_names_is_asked_for_one_iri_as_robots_txt_and_the_delay_allow(tamias_at, site):
    publisher = Publisher(site, dump=True)
    site.pages["/robots.txt"] = b"User-agent: *\nDisallow: /sparql\n"
    tamias, iri = tamias_at("none"), f"{publisher.base}/resource/striatus"
    done = tamias.run("read", "--one", "--allow-private", iri)
    assert done.returncode == 0, done.stderr
    asked = [path.partition("?")[0] for path, _ in site.log]
    assert ("/sparql" in asked, "/dump.nt" in asked) == (False, True)
    named = [at for path, at in site.log if path in ("/sitemap.xml", "/dump.nt")]
    assert min(after - before for before, after in pairwise(sorted(named))) >= 1.0


def test_what_is_no_iri_is_said_at_once(tamias_at):
    done = tamias_at("none").run("read", "--one", "http://a.test/> } INSERT {")
    assert (done.returncode, "is not an IRI" in done.stderr) == (2, True)
