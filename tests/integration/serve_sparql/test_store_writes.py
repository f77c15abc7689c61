"""What the process that writes the store is told is what the store has, whichever way it takes."""

import os
import random
import signal
import time
from contextlib import closing

import pytest
import rdflib
from pyoxigraph import NamedNode, Quad, RdfFormat, parse
from rdflib.compare import isomorphic

from tamias.features.catalogue.store.graph_writer import GraphWriter
from tamias.features.catalogue.store.snapshots import make_store, open_newest, size_of

HEAD = "urn:tamias:catalogue:" + "a" * 24
HARD = rb"""<urn:s> <urn:p> "a\" .\n b"@de .
_:a <urn:p> _:b .
_:b <urn:p> "\\ . <urn:g> ."^^<urn:t> .
<urn:s> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""


def triples(graph, count=40):
    return "".join(f'<urn:{graph}/{n}> <urn:p{n % 7}> "{graph} {n}" .\n' for n in range(count)).encode()


def statements(folder):
    with closing(open_newest(folder)) as snapshot:
        return {str(quad) for quad in snapshot.store}


def quads(graphs):
    for graph, content in graphs.items():
        for quad in parse(content, format=RdfFormat.N_TRIPLES):
            yield Quad(quad.subject, quad.predicate, quad.object, NamedNode(graph))


def told(graphs):
    return {str(quad) for quad in quads(graphs)}


@pytest.fixture
def writer(tmp_path):
    with closing(GraphWriter(tmp_path)) as writer:
        yield writer


@pytest.mark.parametrize("more", [0, 20], ids=["a transaction", "the bulk loader"])
@pytest.mark.parametrize("layout", [HARD, HARD.replace(b" .\n", b"\t.  \n")], ids=["ours", "another"])
def test_a_graph_is_the_one_that_another_parser_reads(writer, tmp_path, more, layout):
    writer.replace_all({"http://d.example/g": layout} | {f"urn:g{n}": triples(n) for n in range(more)})
    writer.publish()
    with closing(open_newest(tmp_path)) as snapshot:
        content = snapshot.store.dump(format=RdfFormat.N_TRIPLES, from_graph=NamedNode("http://d.example/g"))
    found, wanted = (
        rdflib.Graph().parse(data=content, format="nt"),
        rdflib.Graph().parse(data=HARD, format="nt"),
    )
    assert isomorphic(found, wanted)


def test_labels_of_blank_nodes_stay(writer, tmp_path):
    graphs = {"urn:g": HARD} | {f"urn:g{n}": triples(n) for n in range(20)}
    writer.replace_all(graphs)
    writer.publish()
    assert statements(tmp_path) == told(graphs)


def test_a_store_of_new_graphs_is_nearly_as_small_as_one_that_was_loaded(writer, tmp_path):
    lots = [{f"urn:g{lot}/{n}": triples(f"{lot}/{n}") for n in range(50)} for lot in range(6)]
    for lot in lots:
        writer.replace_all(lot)
        writer.publish()
    whole = {graph: content for lot in lots for graph, content in lot.items()}
    (tmp_path / "loaded").mkdir()
    make_store(tmp_path / "loaded", quads(whole))
    assert statements(tmp_path) == told(whole)
    assert size_of(tmp_path / "oxigraph") < 2 * size_of(tmp_path / "loaded" / "oxigraph")


def head(number):
    return b'<urn:d> <urn:title> "a" .\n<urn:d> <urn:current> <urn:d/%d> .\n' % number


def test_the_head_of_a_resource_is_replaced_without_being_read(writer, tmp_path, monkeypatch):
    writer.replace_all({HEAD: head(1)})
    monkeypatch.setattr(GraphWriter, "_read", None)
    for number in (2, 3):
        writer.replace_all({HEAD: head(number)})
        writer.publish()
        assert statements(tmp_path) == told({HEAD: head(number)})


def test_a_head_that_may_not_have_been_written_is_read(writer, tmp_path):
    writer.replace_all({HEAD: head(1)})
    with pytest.raises(SyntaxError):
        writer.replace_all({HEAD: head(2), "urn:g": b"nonsense .\n"})
    writer.replace_all({HEAD: head(3)})
    writer.publish()
    assert statements(tmp_path) == told({HEAD: head(3)})


def test_a_head_that_was_removed_comes_back(writer, tmp_path):
    for content in (head(1), b"", head(2)):
        writer.replace_all({HEAD: content})
    writer.publish()
    assert statements(tmp_path) == told({HEAD: head(2)})


def test_more_heads_than_are_remembered_are_replaced(writer, tmp_path, monkeypatch):
    monkeypatch.setattr("tamias.features.catalogue.store.graph_writer._HEADS_BYTES", 500)
    for number in (1, 2):
        graphs = {f"urn:tamias:catalogue:{n:024x}": head(number) for n in range(10)}
        writer.replace_all(graphs)
    writer.publish()
    assert len(writer._heads) < 10
    assert statements(tmp_path) == told(graphs)


def test_what_is_held_is_written_once_as_it_was_last(writer, tmp_path, monkeypatch):
    writer.replace_all({HEAD: head(1), "urn:gone": triples("gone")})
    lots, whole = [], GraphWriter.replace_all
    monkeypatch.setattr(
        GraphWriter, "replace_all", lambda self, graphs: (lots.append(graphs), whole(self, graphs))
    )
    graphs = {HEAD: head(3)} | {f"urn:g{n}": triples(n) for n in range(20)}
    writer.hold({HEAD: head(2), "urn:gone": b"", "urn:g0": triples("another")})
    for graph, content in graphs.items():
        writer.hold({graph: content})
    assert lots == []
    writer.publish()
    assert len(lots) == 1
    assert statements(tmp_path) == told(graphs)


def test_what_is_held_is_written_before_it_is_too_much(writer, tmp_path, monkeypatch):
    monkeypatch.setattr("tamias.features.catalogue.store.graph_writer._LOT_BYTES", 5000)
    graphs = {f"urn:g{n}": triples(n) for n in range(20)}
    for graph, content in graphs.items():
        writer.hold({graph: content})
        assert sum(map(len, writer._held.values())) <= 5000
    writer.publish()
    assert statements(tmp_path) == told(graphs)


def test_what_is_written_after_something_was_held_is_newer(writer, tmp_path):
    writer.hold({HEAD: head(1), "urn:g": triples(1)})
    writer.replace_all({HEAD: head(2)})
    writer.publish()
    assert statements(tmp_path) == told({HEAD: head(2), "urn:g": triples(1)})


def test_what_is_held_and_published_by_nobody_is_published_soon(writer, tmp_path, monkeypatch):
    monkeypatch.setattr("tamias.features.catalogue.store.graph_writer._IDLE_SECONDS", 0.0)
    writer.hold({HEAD: head(1)})
    writer.tend()
    assert statements(tmp_path) == told({HEAD: head(1)})


def lot(number):
    """Heads that change, and new graphs: the removals of one half, the bulk loader for the other."""
    new = {f"urn:g{number}/{n}": triples(f"{number}/{n}", 20) for n in range(30)}
    return {f"urn:tamias:catalogue:{n:024x}": head(number) for n in range(30)} | new


def write_until_killed(folder):
    with closing(GraphWriter(folder)) as writer:
        for number in range(1000):
            writer.replace_all(lot(number))
            writer.publish()


def test_a_writer_that_is_killed_at_any_moment_leaves_a_store_that_takes_the_same_again(tmp_path):
    chance = random.Random(7)
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            try:
                write_until_killed(tmp_path)
            finally:
                os._exit(0)
        time.sleep(chance.uniform(0.05, 0.6))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with closing(GraphWriter(tmp_path)) as writer:
        graphs = {graph: content for number in range(40) for graph, content in lot(number).items()}
        graphs |= dict.fromkeys(others(tmp_path) - graphs.keys(), b"")
        writer.replace_all(graphs)
        writer.publish()
    assert statements(tmp_path) == told(graphs)


def others(folder):
    with closing(open_newest(folder)) as snapshot:
        return {graph.value for graph in snapshot.store.named_graphs()}
