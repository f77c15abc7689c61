"""Every sink gets the metadata of attempts too; a source that did not change leaves its documents alone."""

import json

import pytest
from pyoxigraph import NamedNode, RdfFormat, Store, parse

from tamias.features.graph_stores.document_files import METADATA

PAGES = {
    "/": b"<> <#to> </a>, </b>, </gone>, [] .",
    "/a": b"<> <#is> [ <#of> 1, [ <#of> 2 ] ] .",
    "/b": b"<> <#is> 'b' .",
}
METADATA_GRAPH = "<urn:tamias:metadata>"
FILES = {"turtle": {".ttl", ".trig"}, "hdt": {".hdt"}}


@pytest.fixture
def crawl(tamias, site, reply, sparql_server):
    """`crawl()` visits all pages, the second time again; `crawl.sinks()` is what the sinks hold."""
    for path, body in PAGES.items():
        site.pages[path] = reply(200, body, Content_Type="text/turtle")
    words = [f"--sink={name}" for name in ("turtle-files", "hdt-files", "warc", "archive")]
    words.append(f"--sink=sparql:{sparql_server.url}/store")

    def run():
        tamias.run("crawls", "reopen", "--outcome", "ok")
        tamias.run("crawls", "reopen", "--outcome", "unchanged")
        done = tamias.crawl("--no-robots", *words, site.url("/"))
        assert done.returncode == 0, done.stderr

    return run


def exported(tamias, graph):
    done = tamias.run("export", "--graph", graph)
    assert done.returncode == 0, done.stderr
    return done.stdout.encode()


def triples(data, syntax):
    """As plain N-Triples: what is known of attempts has no blank nodes."""
    return {str(quad.triple) for quad in parse(data, format=syntax)}


def beside(folder):
    """The statements of all files of metadata in a folder."""
    return set().union(
        *(triples(path.read_bytes(), RdfFormat.N_TRIPLES) for path in folder.rglob(f"*{METADATA}"))
    )


def documents(folder, endings):
    """The files of documents, with their bytes."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.suffix in endings}


def data_graphs(comparable, nquads):
    return {line for line in comparable(nquads) if not line.endswith(METADATA_GRAPH)}


def test_every_sink_holds_the_metadata_of_the_export_after_two_visits_of_what_did_not_change(
    crawl, tamias, site, sparql_server, comparable
):
    crawl()
    first = {name: documents(tamias.data / name, endings) for name, endings in FILES.items()}
    graphs = data_graphs(comparable, sparql_server.stored())
    quads = comparable(exported(tamias, "data"))
    assert all(len(files) == len(PAGES) for files in first.values())
    assert graphs == quads
    requests = len(site.log)
    crawl()
    assert len(site.log) > requests

    assert comparable(exported(tamias, "data")) == quads
    assert {name: documents(tamias.data / name, FILES[name]) for name in FILES} == first
    assert data_graphs(comparable, sparql_server.stored()) == graphs
    versions = json.loads(tamias.run("versions", site.url("/a"), "--json").stdout)
    assert [version["number"] for version in versions] == [1]

    expected = triples(exported(tamias, "metadata"), RdfFormat.N_QUADS)
    attempts = [line for line in expected if "http://www.w3.org/ns/prov#Activity" in line]
    assert len(attempts) == 2 * len(PAGES) + 1  # of what is gone there is one attempt
    assert beside(tamias.data / "turtle") == expected
    assert beside(tamias.data / "hdt") == expected
    server = Store()
    server.load(sparql_server.stored(), format=RdfFormat.N_QUADS)
    told = Store()
    told.load(exported(tamias, "metadata"), format=RdfFormat.N_QUADS)  # it keeps values, not spellings
    graph = NamedNode("urn:tamias:metadata")
    assert set(server.quads_for_pattern(None, None, None, graph)) == set(told)


def test_a_sink_that_is_named_later_gets_the_metadata_of_before_and_nothing_twice(tamias, site, reply):
    site.pages["/"] = reply(200, PAGES["/b"], Content_Type="text/turtle")
    assert tamias.crawl("--no-robots", site.url("/")).returncode == 0
    for _ in range(2):
        assert tamias.crawl("--no-robots", "--sink=turtle-files", site.url("/")).returncode == 0
        (file,) = (tamias.data / "turtle").rglob(f"*{METADATA}")
        lines = file.read_text().splitlines()
        assert len(lines) == len(set(lines))
        assert beside(tamias.data / "turtle") == triples(exported(tamias, "metadata"), RdfFormat.N_QUADS)
