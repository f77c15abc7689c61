"""Sinks belong to the crawl: whoever resumes it or works on it writes to them."""

import json
import signal

import pytest
from pyoxigraph import RdfFormat, Store, parse
from warcio.archiveiterator import ArchiveIterator

import tamias as library
from tamias.features.graph_stores.document_files import read_index
from tests.others import OTHERS

PAGES = 8
SINKS = ("warc", "archive", "turtle-files", "hdt-files", "sparql")


@pytest.fixture
def chain(site):
    """Pages that each link to the next."""
    for page in range(PAGES):
        site.pages[f"/{page}.ttl"] = f"<> <#to> </{page + 1}.ttl> ; <#is> 'page {page}' .".encode()
    site.pages[f"/{PAGES}.ttl"] = b"<> <#is> 'the last' ."
    return site


def bodies(chain):
    return {chain.url(path): body for path, body in chain.pages.items()}


def triples(quads):
    return {(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads}


def wanted(chain):
    return {
        each
        for url, body in bodies(chain).items()
        for each in triples(parse(body, format=RdfFormat.TURTLE, base_iri=url))
    }


def in_warc(tamias):
    found = {}
    for file in (tamias.data / "warc").rglob("*.warc.gz"):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "response":
                    found[record.rec_headers["WARC-Target-URI"]] = record.content_stream().read()
    return {url: body for url, body in found.items() if url.endswith(".ttl")}


def in_archive(tamias, chain):
    return {url: tamias.run("get", url).stdout.encode() for url in bodies(chain)}


def in_turtle(tamias):
    folder = tamias.data / "turtle"
    syntaxes = {".trig": RdfFormat.TRIG, ".ttl": RdfFormat.TURTLE}
    paths = [folder / name for name in read_index(folder).values()]
    return triples(quad for path in paths for quad in parse(path=path, format=syntaxes[path.suffix]))


def in_hdt(tamias):
    files = (tamias.data / "hdt").rglob("*.hdt")
    return triples(quad for path in files for quad in library.read(path).quads)


def in_server(server, chain):
    store = Store()
    store.load(server.stored(), format=RdfFormat.N_QUADS)
    graphs = set(bodies(chain))
    return triples(quad for quad in store if quad.graph_name.value in graphs)


def holds(tamias, chain, server, sink):
    """Whether a sink has what the pages of the chain say, and nothing else of them."""
    if sink == "warc":
        return in_warc(tamias) == bodies(chain)
    if sink == "archive":
        return in_archive(tamias, chain) == bodies(chain)
    stored = {
        "turtle-files": lambda: in_turtle(tamias),
        "hdt-files": lambda: in_hdt(tamias),
        "sparql": lambda: in_server(server, chain),
    }
    return stored[sink]() == wanted(chain)


def named(sink, server):
    return f"sparql:{server.url}/store" if sink == "sparql" else sink


@pytest.mark.parametrize("sink", SINKS)
def test_a_crawl_that_was_interrupted_goes_on_writing_to_its_sink(tamias, chain, sparql_server, sink):
    words = ("--allow-private", "--delay", "0.3", "--workers", "1", "--sink", named(sink, sparql_server))
    first = tamias.start("crawl", *words, chain.url("/0.ttl"))
    tamias.wait_until(lambda: chain.asked("/3.ttl"))
    first.send_signal(signal.SIGINT)
    said = first.communicate(timeout=60)
    assert first.returncode == 130, said
    assert not chain.asked(f"/{PAGES}.ttl")
    resumed = tamias.run("crawl")
    assert (resumed.returncode, "changed" in resumed.stderr) == (0, False), resumed.stderr
    assert holds(tamias, chain, sparql_server, sink)
    exported = parse("\n".join(tamias.quads()).encode(), format=RdfFormat.N_QUADS)
    assert triples(exported) == wanted(chain)


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("who", OTHERS)
def test_whoever_works_on_a_crawl_writes_to_its_sink(tamias, chain, sparql_server, who, sink):
    words = ("--in-service", "--allow-private", "--delay", "0", "--sink", named(sink, sparql_server))
    assert tamias.run("crawl", *words, chain.url("/0.ttl")).returncode == 0
    other = OTHERS[who](tamias)
    if who == "far worker" and sink in {"warc", "archive"}:
        _, said = other.communicate(timeout=120)
        assert (other.returncode, f"writes to {sink}, which needs bodies" in said) == (1, True), said
        assert not chain.log
        return
    tamias.wait_until(lambda: chain.asked(f"/{PAGES}.ttl"))
    if who != "service":
        tamias.wait_until(lambda: not json.loads(tamias.run("crawls", "--json").stdout)[0]["open"])
        done = tamias.run("crawl")  # whoever helps leaves sinks outside to the crawl
        assert done.returncode == 0, done.stderr
    # A worker that is still there completes its WARC file when it sees that its user ran the crawl again.
    tamias.wait_until(lambda: holds(tamias, chain, sparql_server, sink))
    assert all(chain.asked(path) == 1 for path in chain.pages)
