"""A real crawl, brought to each sink and read back: the same triples as the N-Quads export gives."""

import gzip
import os
import threading
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pyoxigraph import RdfFormat, parse, serialize

from tamias.archive.file_store import segments_of
from tamias.database.connect import Database
from tamias.features.graph_stores.document_files import TurtleFiles, read_index
from tamias.features.graph_stores.placement import Placement, PostgresLedger
from tamias.features.graph_stores.sparql_sink import SparqlStore
from tamias.model.vocabulary import address_iri
from tamias.sinks.delivery import Deliverer
from tamias.sinks.outbox import Outbox, add_sink
from tamias.sinks.segments.segment_files import SegmentReader
from tests import commands

TYPES = {
    ".ttl": "text/turtle",
    ".nq": "application/n-quads",
    ".html": "text/html",
    ".trig": "application/trig",
}


class Site(SimpleHTTPRequestHandler):
    extensions_map = TYPES

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """The data directory after a crawl of a small site, and its N-Quads export."""
    folder = tmp_path_factory.mktemp("site")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, directory=folder))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    write_site(folder, base)
    data = tmp_path_factory.mktemp("crawl") / "data"
    tamias("crawl", f"{base}/a.ttl", "--data", data, "--delay", "0", "--allow-private", "--scope", "host")
    exported = tamias("export", "--data", data)
    server.shutdown()
    server.server_close()
    assert exported.count(b"\n") > 20
    return data, exported


def write_site(folder, base):
    (folder / "a.ttl").write_text(
        "\n".join(f'<> <http://e/next> <{base}/{name}>, [ <http://e/n> "{name}" ] .' for name in pages())
    )
    for name, text in pages().items():
        (folder / name).write_text(text.replace("BASE", base))


def pages():
    return {
        "b.ttl": '<#x> <http://e/p> "a \\"quoted\\" \\\\u0041 line\\n"@en, 1, _:b . _:b <http://e/q> <#x> .',
        "dump.nq": '<http://e/s> <http://e/p> "in b" <BASE/b.ttl> .\n'
        "<http://e/s> <http://e/p> <http://e/o> <http://stranger.example/g> .\n"
        "<http://e/s> <http://e/p> <http://e/default> .\n",
        "g.trig": "<http://e/a> { <http://e/s> <http://e/p> 1 } <BASE/a.ttl> { <http://e/s> <http://e/p> 2 }",
        "empty.ttl": "",
        "c.html": '<p vocab="http://schema.org/" typeof="Person"><span property="name">Ann</span></p>'
        '<script type="application/ld+json">{"@id": "http://e/j", "http://e/p": "v"}</script>',
    }


def tamias(*words):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
    command = [*map(str, words)]
    result = commands.run(command, env=clean, capture_output=True, timeout=180, check=False)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout


@pytest.fixture
def deliver(crawl):
    """`deliver(name, make)` brings the crawl to the sink that `make(session, number, read)` makes."""
    data, _ = crawl
    database = Database(data, create=False)
    session = database.session()
    reader = SegmentReader(segments_of(session, data))

    def deliver(name, make):
        number = add_sink(session, name, 1)
        outbox = Outbox(session, number)
        with closing(make(session, number, reader.read)) as sink:
            deliverer = Deliverer(outbox, sink, reader.read)
            while outbox.waiting().documents:
                deliverer.round()
        assert outbox.refused() == []

    yield deliver
    reader.close()
    session.close()
    database.close()


@pytest.mark.parametrize("way", ["store", "update"])
def test_a_sparql_server_holds_the_quads_of_the_export(crawl, deliver, sparql_server, comparable, way):
    def make(session, number, read):
        store = SparqlStore(f"{sparql_server.url}/{way}")
        return Placement(store, PostgresLedger(session, number), read)

    deliver(f"sparql:{way}", make)
    assert sparql_server.content() == comparable(crawl[1])


def test_turtle_files_hold_the_quads_of_the_export(crawl, deliver, tmp_path, comparable):
    deliver("turtle-files", lambda *_: TurtleFiles(tmp_path, compress=True))
    assert comparable(b"".join(file_quads(tmp_path))) == comparable(crawl[1])


def file_quads(folder):
    for url, name in read_index(folder).items():
        text = gzip.decompress((folder / name).read_bytes())
        if name.endswith(".trig.gz"):
            yield serialize(parse(text, format=RdfFormat.TRIG), format=RdfFormat.N_QUADS)
        else:
            triples = serialize(parse(text, format=RdfFormat.TURTLE), format=RdfFormat.N_QUADS)
            yield triples.replace(b" .\n", f" <{address_iri(url)}> .\n".encode())
