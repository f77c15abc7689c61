"""The plan and the documents made from it, without any server."""

import pytest
from pyoxigraph import NamedNode, RdfFormat, parse, serialize

from tamias.features.demo.plan import PACKINGS, SYNTAXES, make_plan, reachable, starting_nodes
from tamias.features.demo.web import LABELS, ODDITIES, VALUES, build_web, expected_of, missing, written


@pytest.fixture(scope="module")
def everything():
    return expected_of(build_web(make_plan(1), 8000))


def test_the_same_seed_gives_the_same_bytes():
    assert build_web(make_plan(5), 8000) == build_web(make_plan(5), 8000)


def test_another_seed_gives_another_web():
    assert make_plan(5) != make_plan(6)


def test_another_port_changes_nothing_but_the_port():
    pages = build_web(make_plan(5), 8000).sites["127.0.0.3"].pages
    elsewhere = build_web(make_plan(5), 9999).sites["127.0.0.3"].pages
    bodies = {path: page.body or b"" for path, page in pages.items()}
    assert bodies == {path: page.body.replace(b":9999", b":8000") for path, page in elsewhere.items()}


def test_every_node_is_a_host_of_its_own():
    plan = make_plan(1, nodes=300)
    assert len({node.address for node in plan.nodes}) == 300


def test_a_web_has_at_least_one_node():
    with pytest.raises(ValueError, match="nodes"):
        make_plan(1, nodes=0)


@pytest.mark.parametrize("seed", range(20))
def test_every_node_can_be_reached_from_the_starting_nodes(seed):
    plan = make_plan(seed, nodes=30, links=1)
    assert reachable([node.links for node in plan.nodes], plan.seeds) == set(range(30))


def test_a_circle_nobody_links_to_is_entered_at_its_lowest_node():
    assert starting_nodes([(1,), (), (3,), (2,)]) == (0, 2)


def test_every_oddity_is_somewhere_in_the_default_web():
    assert {name for node in make_plan(1).nodes for name in node.oddities} == set(ODDITIES)


def test_a_web_of_one_node_still_has_every_other_oddity():
    assert set(make_plan(1, nodes=1).nodes[0].oddities) == set(ODDITIES) - {"crawl-delay"}


def test_many_dumps_show_every_syntax_in_every_packing():
    forms = {(node.syntax, node.packing) for node in make_plan(1, nodes=200).nodes if node.kind == "dump"}
    assert len(forms) == len(SYNTAXES) * len(PACKINGS)


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_every_literal_survives_being_written(syntax, everything):
    triples = {quad.triple for quad in everything.quads}
    form = RdfFormat.from_extension(syntax)
    found = parse(written(triples, form), format=form)
    assert {quad.object for quad in found} >= {*LABELS, *VALUES}


def test_what_has_no_graph_of_its_own_is_expected_in_the_graph_of_its_url(everything):
    url, quads = next(
        (url, quads) for url, quads in everything.documents.items() if url.endswith("/resource/3")
    )
    assert {quad.graph_name for quad in quads} == {NamedNode(url)}


def test_a_graph_that_a_dump_names_is_expected_under_its_name(everything):
    url, quads = next((url, quads) for url, quads in everything.documents.items() if ".trig" in url)
    assert {quad.graph_name for quad in quads} == {NamedNode(url), NamedNode(f"{url}#graph")}


def test_what_is_disallowed_is_not_expected(everything):
    assert everything.disallowed
    assert everything.refused_quads
    assert not everything.disallowed & everything.documents.keys()
    assert not everything.refused_quads & everything.quads


def test_data_that_comes_only_the_second_time_is_expected(everything):
    assert any(url.endswith("/busy") for url in everything.documents)


def test_a_statement_is_not_missing_when_its_blank_node_has_another_label(everything):
    relabelled = parse(
        serialize(everything.quads, format=RdfFormat.N_QUADS),
        format=RdfFormat.N_QUADS,
        rename_blank_nodes=True,
    )
    assert missing(everything.quads, relabelled) == set()


def test_a_statement_that_was_not_found_is_missing(everything):
    lost, *rest = everything.documents.values()
    assert missing(everything.quads, set().union(*rest)) == set(lost)


def test_no_iri_leads_off_the_loopback_network(everything):
    iris = {term.value for quad in everything.quads for term in quad if isinstance(term, NamedNode)}
    assert all(iri.startswith("http://127.") for iri in iris)
