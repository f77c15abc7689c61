"""The addresses that a batch of quads speaks of."""

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tamias.content.quad_lines import rdf_links

QUADS = [
    Quad(NamedNode("http://s/"), NamedNode("https://p/"), NamedNode("http://o/"), NamedNode("http://g/")),
    Quad(BlankNode("b"), NamedNode("https://p/"), Literal("http://text/")),
    Quad(NamedNode("urn:x"), NamedNode("http://q/"), NamedNode("mailto:a@b")),
    Quad(NamedNode("http://s/"), NamedNode("http://q/"), BlankNode("b")),
]


def test_all_places_but_graph_names_count():
    assert rdf_links(QUADS) == {"http://s/", "https://p/", "http://o/", "http://q/"}


def test_the_policy_chooses_the_places():
    assert rdf_links(QUADS, predicates=False) == {"http://s/", "http://o/"}
    assert rdf_links(QUADS, subjects=False, objects=False) == {"https://p/", "http://q/"}


def test_an_iri_is_not_rewritten():
    quad = Quad(NamedNode("HTTP://A/%7E"), NamedNode("urn:p"), Literal("x"))
    assert rdf_links([quad]) == {"HTTP://A/%7E"}


def test_no_quads_have_no_links():
    assert rdf_links([]) == set()
