"""Statements: exact counts, blank nodes matched, and SPARQL that turns one graph into the other."""

import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Quad, RdfFormat, Store, parse
from rdflib import Graph
from rdflib.compare import isomorphic

from tamias.features.diffs.triples import statements_diff
from tamias.features.diffs.updates import as_nquads, as_sparql_update
from tamias.model.diff import DiffKind, DiffLimits
from tests.examples import examples
from tests.messages import unsaid

NT, TURTLE = "application/n-triples", "text/turtle"


@pytest.mark.parametrize("media_type", [NT, TURTLE])
def test_many_statements_are_counted_exactly(compared, media_type, stopwatch):
    random_ = random.Random(11)
    lines = [
        f'<http://e.org/thing/{n}> <http://e.org/p{n % 7}> "{random_.randint(1, 10**9)}" .'
        for n in range(60_000)
    ]
    new = random_.sample(lines, 59_500) + [
        f"<http://e.org/new/{n}> <http://e.org/p> <http://e.org/o> ." for n in range(922)
    ]
    texts = "\n".join(lines), "\n".join(new)
    with stopwatch(f"{len(texts[0]) / 1e6:.1f} MB of {media_type}"):
        found = compared(*texts, media_type)
    assert (found.kind, found.added, found.removed, found.changed) == (DiffKind.TRIPLES, 922, 500, 0)


def test_a_document_that_says_the_same_has_no_difference(counts):
    old = '@prefix : <http://e.org/> . :a :p [ :q 1, 2 ; :r (1 1) ] , "x" .'
    new = 'prefix e: <http://e.org/> e:a e:p "x" . e:a e:p _:n . _:n e:r ( 1 1 ) ; e:q 2, 1 .'
    assert counts(old, new, TURTLE) == (DiffKind.TRIPLES, 0, 0, 0)


def test_a_blank_node_of_which_one_thing_changed_is_still_the_same_node(compared):
    old = '@prefix : <http://e.org/> . :a :address [ :street "A" ; :town "W" ] ; :phone [ :number 1 ] .'
    new = '@prefix : <http://e.org/> . :a :phone [ :number 1 ] ; :address [ :town "W" ; :street "B" ] .'
    found = compared(old, new, TURTLE)
    assert (found.added, found.removed) == (1, 1)
    assert '<http://e.org/street> "A"' in found.changes[0].old
    assert '<http://e.org/street> "B"' in found.changes[1].new


def test_labels_that_shift_between_exports_are_no_difference(counts):
    old = "".join(f'_:b{n} <http://e.org/p> "{n}" .\n' for n in range(50))
    new = "".join(f'_:b{n + 1} <http://e.org/p> "{n}" .\n' for n in range(50))
    assert counts(old, new, NT) == (DiffKind.TRIPLES, 0, 0, 0)


def test_one_of_two_equal_blank_nodes_can_go(counts):
    one, two = "<e:a> <e:p> [ <e:q> 1 ] .", "<e:a> <e:p> [ <e:q> 1 ] , [ <e:q> 1 ] ."
    kind, added, removed, _ = counts(two, one, TURTLE)
    assert kind is DiffKind.TRIPLES
    assert removed - added == 2


def test_an_item_put_into_a_list_leaves_the_others(counts):
    old, new = "<e:a> <e:p> (1 2 3 4 5 6) .", "<e:a> <e:p> (1 2 3 9 4 5 6) ."
    _, added, removed, _ = counts(old, new, TURTLE)
    assert (added, removed) == (3, 1)


def test_relative_addresses_are_resolved_with_the_base(compared):
    found = compared("<a> <b> <c> .", "<a> <b> <d> .", TURTLE, base="http://e.org/x/")
    assert found.changes[1].new == "<http://e.org/x/a> <http://e.org/x/b> <http://e.org/x/d> ."


def test_quads_are_compared_with_their_graphs(counts):
    old = "<e:a> <e:b> <e:c> <e:g> .\n<e:a> <e:b> <e:c> .\n"
    assert counts(old, "<e:a> <e:b> <e:c> .\n", "application/n-quads") == (DiffKind.TRIPLES, 0, 1, 0)


def test_json_ld_whose_context_is_elsewhere_is_compared_as_json(compared):
    ld = "application/ld+json"
    found = compared('{"@context":"https://e.org/c","a":1}', '{"@context":"https://e.org/c","a":2}', ld)
    assert (found.kind, found.changed) == (DiffKind.JSON, 1)
    assert found.notes[0].startswith("not compared as triples: ")


def test_what_is_not_turtle_is_compared_as_lines(compared):
    found = compared("<e:a> <e:b> <e:c> .\n", "<e:a> <e:b>\n", TURTLE)
    assert found.kind is DiffKind.LINES
    assert found.notes[0].startswith("not compared as triples: not Turtle: ")


def test_blank_nodes_that_cannot_be_told_apart_are_told(compared):
    ring = "".join(f"_:a{n} <e:p> _:a{(n + 1) % 6} .\n" for n in range(6))
    found = compared(ring, ring + "<e:a> <e:b> <e:c> .\n", NT)
    assert (found.added, found.removed) == (1, 0)
    [problem] = found.notes
    assert not unsaid(problem)


nodes = st.sampled_from(["<http://e.org/a>", "<http://e.org/b>", "_:x", "_:y", "_:z"])
values = nodes | st.sampled_from(['"1"', '"two\\n"@en', "<http://e.org/c>"])
places = st.sampled_from(["", " <http://e.org/g>"])
graphs = st.lists(
    st.builds("{} <http://e.org/{}> {}{} .\n".format, nodes, st.sampled_from("pq"), values, places),
    max_size=8,
)


def updated(old, update):
    store = Store()
    store.extend(parse(old.encode(), format=RdfFormat.N_QUADS))
    if update:
        store.update(update)
    return [line for line in store.dump(format=RdfFormat.N_QUADS).decode().splitlines() if line]


def ground(lines):
    return {line for line in lines if "_:" not in line}


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=graphs, new=graphs)
def test_the_update_makes_the_new_ground_statements_of_the_old(versions, old, new):
    old, new = [sorted(ground(each)) for each in (old, new)]
    found = statements_diff(*versions("".join(old), "".join(new)), "application/n-quads", DiffLimits())
    assert set(updated("".join(old), as_sparql_update(found))) == {line.strip() for line in new}


def isomorphic_to(made, wanted):
    graphs = Graph(), Graph()
    for graph, text in zip(graphs, (made, wanted), strict=True):
        graph.parse(data=text, format="nt")
    return isomorphic(*graphs)


blank_graphs = st.sets(
    st.builds("{} <http://e.org/{}> {} .\n".format, nodes, st.sampled_from("pqr"), values), max_size=8
)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=blank_graphs, new=blank_graphs)
def test_the_update_makes_the_new_graph_where_its_blank_nodes_can_be_told_apart(versions, old, new):
    old_text, new_text = "".join(sorted(old)), "".join(sorted(new))
    found = statements_diff(*versions(old_text, new_text), "application/n-triples", DiffLimits())
    labels = [set(re.findall(r"_:\w+", text)) for text in (old_text, b"\n".join(found.around).decode())]
    if len(labels[0]) == len(labels[1]) and not found.notes:
        assert isomorphic_to("\n".join(updated(old_text, as_sparql_update(found))), new_text)


UPDATES = [
    ('<e:a> <e:p> [ <e:q> "1" ; <e:r> "x" ] .', '<e:a> <e:p> [ <e:q> "2" ; <e:r> "x" ] .'),
    ('<e:a> <e:p> [ <e:q> "1" ] , [ <e:q> "2" ] .', '<e:a> <e:p> [ <e:q> "2" ] .'),
    ("<e:a> <e:p> <e:b> .", "<e:a> <e:p> <e:c> , [ <e:q> [ <e:r> 1 ] ] ."),
    ("<e:a> <e:p> (1 2 3) .", "<e:a> <e:p> (1 5 2 3) ."),
    ("<e:a> <e:p> [ <e:q> [ <e:r> 1 ] ] .", "<e:a> <e:p> [ <e:q> [ <e:r> 1, 2 ] ; <e:s> 3 ] ."),
]


@pytest.mark.parametrize(("old", "new"), UPDATES)
def test_the_update_makes_the_new_graph_with_its_blank_nodes(versions, old, new):
    found = statements_diff(*versions(old, new), "text/turtle", DiffLimits())
    store = Store()
    store.extend(Quad(*triple) for triple in parse(old.encode(), format=RdfFormat.TURTLE))
    store.update(as_sparql_update(found))
    made, wanted = Graph(), Graph()
    made.parse(data=store.dump(format=RdfFormat.N_QUADS), format="nt")
    wanted.parse(data=new, format="turtle")
    assert isomorphic(made, wanted)


def test_the_difference_is_given_as_two_documents(versions):
    found = statements_diff(*versions("<e:a> <e:b> 1 .", "<e:a> <e:b> 2 ."), "text/turtle", DiffLimits())
    integer = b"<http://www.w3.org/2001/XMLSchema#integer>"
    assert as_nquads(found.added) == b'<e:a> <e:b> "2"^^' + integer + b" .\n"
    assert as_nquads(found.removed) == b'<e:a> <e:b> "1"^^' + integer + b" .\n"
