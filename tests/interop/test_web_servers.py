"""A Solid server and a Triple Pattern Fragments server, crawled and compared as graphs with what was loaded.

Both are started by `make nightly` only.
"""

import os
import subprocess
import sys
import time
from collections import Counter

import pytest
from graphs import EX, as_graph, literals, records, structures
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, parse, serialize
from servers import fragments, solid

pytestmark = pytest.mark.skipif(not os.environ.get("TAMIAS_NIGHTLY"), reason="started by `make nightly` only")
TAMIAS = [sys.executable, "-m", "tamias"]
STATUS = "https://w3id.org/tamias/vocab#status"
REQUESTED = "https://w3id.org/tamias/vocab#requestedUrl"
PODS = ("alice", "bob", "carol")


def crawled(folder, *seeds):
    """The seconds that a crawl of the seeds' host took."""
    options = ["--scope", "host", "--delay", "0", "--allow-private", "--workers", "1"]
    began = time.perf_counter()
    done = subprocess.run(
        [*TAMIAS, "crawl", "--data", folder, *seeds, *options],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - began


def exported(folder, graph="data"):
    """The quads of a crawl."""
    words = ["export", "--data", folder, "--format", "nquads", "--graph", graph]
    export = subprocess.run([*TAMIAS, *words], capture_output=True, check=True)
    return list(parse(export.stdout, format=RdfFormat.N_QUADS))


def graph_of(quads):
    return as_graph(serialize(quads, format=RdfFormat.N_QUADS).splitlines())


def line(name, expected, got, requests, seconds):
    """A line of the table of `make nightly`."""
    verdict = "EXACT" if got == expected else "NOT EXACT"
    totals = f"{expected.total():>10,}{got.total():>10,}"
    return f"{name:<18}{totals}  {verdict:<10}{requests:>9}{seconds:>9.1f}{'-':>9}{'-':>12}"


def differences(expected, got):
    return list(expected - got)[:5], list(got - expected)[:5]


def documents_of(pod):
    """The Turtle documents of a pod, by path. All pods use the same labels for blank nodes of their own."""
    others = ", ".join(f"<../../{other}/profile/card#me>" for other in PODS if other != pod)
    card = f"""
        @prefix ex: <{EX}> .
        <#me> ex:name "{pod}" ; ex:knows {others}, [ ex:name "nobody" ; ex:knows _:b0 ] ;
            ex:reads ( <../notes/t%C3%A4glich%20neu> ( 1 2.50 1e3 true ) [ ex:part [], [] ] ) .
        _:b0 ex:knows _:b1 . _:b1 ex:knows _:b2 . _:b2 ex:knows _:b0 ; ex:name '''two
        lines'''@de-CH .
        [] ex:of <>, <#>, <../> .
        """
    return {
        f"{pod}/profile/card": card,
        f"{pod}/data/literals.ttl": "".join(literals(None)),
        f"{pod}/data/deeper/structures": "".join(structures(None, 10)),
        f"{pod}/notes/t%C3%A4glich%20neu": f"<> <{EX}about> _:pod . _:pod <{EX}name> '{pod}' .",
    }


def turtle(text, url):
    """The quads of a Turtle document, in a graph with its name. Its blank nodes are its own."""
    quads = parse(text, format=RdfFormat.TURTLE, base_iri=url, rename_blank_nodes=True)
    return [Quad(*quad.triple, NamedNode(url)) for quad in quads]


def test_the_documents_of_solid_pods_are_exact_as_graphs_and_a_501_is_asked_once(started, table, tmp_path):
    server = started(solid, "Solid")
    documents = {server.url + path: text for pod in PODS for path, text in documents_of(pod).items()}
    for url, text in documents.items():
        server.put(url, text, "text/turtle")
    before = len(server.requests())
    seconds = crawled(tmp_path / "data", *(f"{server.url}{pod}/" for pod in PODS))
    requests = server.requests()[before:]
    quads = exported(tmp_path / "data")
    written = {quad.graph_name.value for quad in quads}
    # Containers and descriptions are the server's own: what it says of them is what it says to everybody.
    for url in written - documents.keys():
        assert url.endswith(("/", ".meta")), url
    own = {url: server.get(url, "text/turtle") for url in written - documents.keys()}
    expected = graph_of([quad for url, text in (documents | own).items() for quad in turtle(text, url)])
    got = graph_of(quads)
    table.append(line("Solid", expected, got, len(requests), seconds))
    assert differences(expected, got) == ([], [])
    assert {url.rpartition("/")[0] + "/" for url in documents} <= written
    metadata = exported(tmp_path / "data", "metadata")
    not_implemented = {q.subject for q in metadata if q.predicate.value == STATUS and q.object.value == "501"}
    refused = {
        q.object.value for q in metadata if q.predicate.value == REQUESTED and q.subject in not_implemented
    }
    assert refused == {f"{server.url}{pod}/.well-known/solid" for pod in PODS}
    asked = Counter(server.url + path.removeprefix("/") for path in requests)
    assert {url: asked[url] for url in refused} == dict.fromkeys(refused, 1)


def as_served(term, url):
    """A term as the fragments server has it: skolem IRIs for blank nodes, language tags in lower case."""
    if isinstance(term, BlankNode):
        return NamedNode(f"{url}.well-known/genid/b0_{term.value}")
    if isinstance(term, Literal) and term.language:
        return Literal(term.value, language=term.language.lower())
    return term


def test_all_pages_of_a_fragment_hold_the_dataset_exactly(started, table, tmp_path):
    lines = [*literals(None), *structures(None, 50), *records(None, 2_100)]
    source = tmp_path / "data.nt"
    source.write_text("".join(dict.fromkeys(lines)), encoding="utf-8")
    server = started(fragments, "Fragments", triples=source)
    before = len(server.requests())
    seconds = crawled(tmp_path / "data", f"{server.url}data")
    requests = server.requests()[before:]
    quads = exported(tmp_path / "data")
    # The server has controls and counts in a graph that it names `…#metadata`. Data are in the default graph
    # of each page, so in the graph of the page's URL here. The first page has two URLs.
    first, page = f"{server.url}data", f"{server.url}data?page="
    of_pages = [Quad(q.subject, q.predicate, q.object) for q in quads if q.graph_name.value.startswith(page)]
    expected = graph_of(
        [
            Quad(as_served(q.subject, server.url), q.predicate, as_served(q.object, server.url))
            for q in parse(source.read_bytes(), format=RdfFormat.N_TRIPLES)
        ]
    )
    got = graph_of(of_pages)
    table.append(line("Fragments", expected, got, len(requests), seconds))
    assert differences(expected, got) == ([], [])
    assert {q.triple for q in quads if q.graph_name.value == first} == {
        q.triple for q in quads if q.graph_name.value == f"{page}1"
    }
    others = {name for name in {q.graph_name.value for q in quads} if not name.startswith(page)} - {first}
    assert others == {f"{first}#metadata", f"{server.url}#metadata", server.url, f"{server.url}?page=1"}
    asked = Counter(requests)
    assert {path: count for path, count in asked.items() if path.startswith("/data?") and count > 1} == {}
