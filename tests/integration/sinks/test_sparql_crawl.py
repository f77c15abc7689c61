"""A crawl into a SPARQL server, where both are killed in the middle: nothing missing, nothing twice."""

from collections import defaultdict
from contextlib import closing

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, Store

from tamias.database.connect import Database
from tamias.features.demo.plan import make_plan
from tamias.features.demo.server import serving
from tamias.model.item import NEVER
from tamias.sinks.delivery import HOLD_SECONDS

pytestmark = pytest.mark.processes

PATIENCE = 150


@pytest.fixture(scope="module")
def web():
    with serving(make_plan(seed=5, nodes=8, resources=12, crawl_delay=False)) as running:
        yield running


def by_graph(nquads):
    """The triples of each graph as that server keeps them, the names of blank nodes made comparable.

    It keeps values rather than spellings: 1.50 is 1.5 to it.
    """
    store, graphs = Store(), defaultdict(list)
    store.load(nquads, format=RdfFormat.N_QUADS)
    for quad in store:
        graphs[str(quad.graph_name)].append(quad)
    return {name: canonical(quads) for name, quads in graphs.items()}


def canonical(quads):
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return sorted(map(str, dataset))


def let_holds_end(tamias):
    """A killed crawl holds the documents that it was about to deliver: as if that time had gone by."""
    passed = "UPDATE outbox SET due = outbox.due - %b::int8 WHERE outbox.due < %b::int8"
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        session.transact(lambda cursor: cursor.execute(passed, (int(HOLD_SECONDS * 1000), NEVER)))


def test_what_both_kills_leave_is_what_the_export_holds(tamias, web, sparql_server, kill):
    tamias.let_go()
    words = ("--allow-private", "--delay", "0.2", "--sink", f"sparql:{sparql_server.url}/store", *web.seeds)
    crawl = tamias.start("crawl", *words)
    tamias.wait_until(lambda: len(sparql_server.stored()) > 0)
    sparql_server.kill()
    seen = len(web.log)
    tamias.wait_until(lambda: len(web.log) > seen + 20)
    sparql_server.start()
    before = len(sparql_server.stored())
    tamias.wait_until(lambda: len(sparql_server.stored()) > before)
    assert kill(crawl.pid)
    crawl.wait()
    assert crawl.returncode == -9
    tamias.wait_until(lambda: not tamias.in_use())
    delivered = by_graph(sparql_server.stored())
    let_holds_end(tamias)
    crawl = tamias.start("crawl", *words)
    sparql_server.kill()
    tamias.wait_until(lambda: len(tamias.workers()) > 0)
    sparql_server.start()
    said = crawl.communicate(timeout=PATIENCE)
    assert crawl.returncode == 0, said
    exported = by_graph(tamias.run("export", "--graph", "all").stdout.encode())
    stored = by_graph(sparql_server.stored())
    assert stored.keys() == exported.keys()
    assert stored == exported
    assert len(exported) > 30
    assert delivered != exported, "the crawl was killed when all was done"
