"""A resumed crawl writes to the sinks of its first run, and leaves what one run would leave."""

import signal

import pytest
from pyoxigraph import RdfFormat, Store, parse
from warcio.archiveiterator import ArchiveIterator

import tamias as library
from tamias.sinks.document_files import read_index

PAGES = 8


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


@pytest.mark.parametrize("sink", ["warc", "archive", "turtle-files", "hdt-files", "sparql"])
def test_a_crawl_that_was_interrupted_goes_on_writing_to_its_sink(tamias, chain, sparql_server, sink):
    named = f"sparql:{sparql_server.url}/store" if sink == "sparql" else sink
    words = ("--allow-private", "--delay", "0.3", "--workers", "1", "--sink", named)
    first = tamias.start("crawl", *words, chain.url("/0.ttl"))
    tamias.wait_until(lambda: chain.asked("/3.ttl"))
    first.send_signal(signal.SIGINT)
    said = first.communicate(timeout=60)
    assert first.returncode == 130, said
    assert not chain.asked(f"/{PAGES}.ttl")
    resumed = tamias.run("crawl")
    assert (resumed.returncode, "changed" in resumed.stderr) == (0, False), resumed.stderr
    found = {
        "warc": lambda: in_warc(tamias) == bodies(chain),
        "archive": lambda: in_archive(tamias, chain) == bodies(chain),
        "turtle-files": lambda: in_turtle(tamias) == wanted(chain),
        "hdt-files": lambda: in_hdt(tamias) == wanted(chain),
        "sparql": lambda: in_server(sparql_server, chain) == wanted(chain),
    }
    assert found[sink]()
    exported = parse("\n".join(tamias.quads()).encode(), format=RdfFormat.N_QUADS)
    assert triples(exported) == wanted(chain)
