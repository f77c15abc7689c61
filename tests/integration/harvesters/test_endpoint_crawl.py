"""Endpoints copied by the command and compared, as graphs and unfiltered, with what the server holds."""

import pytest
from pyoxigraph import DefaultGraph, NamedNode, Quad, RdfFormat, parse

EX = "http://example.org/"
SD = "http://www.w3.org/ns/sparql-service-description#"
VOID = "http://rdfs.org/ns/void#"
NO_DESCRIPTION = "<!DOCTYPE html><html><form>Query</form></html>"


def exported(tamias, endpoint):
    """The exported quads as the server has them: its default graph is the one with the endpoint's name."""
    done = tamias.run("export", "--format", "nquads")
    assert done.returncode == 0, done.stderr
    own = NamedNode(endpoint)
    return [
        Quad(quad.subject, quad.predicate, quad.object, DefaultGraph()) if quad.graph_name == own else quad
        for quad in parse(done.stdout.encode(), format=RdfFormat.N_QUADS)
    ]


def triple_terms(count, *, elsewhere):
    """Statements about triples with blank nodes in them, which other statements name too if `elsewhere`."""
    lines = []
    for number in range(count):
        claim = f"<<( _:a{number} <{EX}knows> _:b{number} )>>"
        lines += [
            f"<{EX}r{number}> <{EX}reifies> {claim} .",
            f"<{EX}q{number}> <{EX}denies> {claim} .",
            f"<{EX}d{number}> <{EX}deep> <<( <{EX}x> <{EX}says> <<( _:b{number} <{EX}p> _:c )>> )>> .",
        ]
        if elsewhere:
            lines += [f'_:a{number} <{EX}name> "a{number}" .', f'_:b{number} <{EX}name> "b{number}" .']
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("relabelled", [False, True], ids=["labels hold", "labels change"])
@pytest.mark.parametrize("form", ["application/n-triples", "application/sparql-results+json"])
@pytest.mark.parametrize("elsewhere", [True, False], ids=["named outside too", "only inside"])
def test_blank_nodes_inside_triple_terms_are_the_same_nodes_after_a_copy(
    elsewhere, form, relabelled, tamias, proxy, sparql_server, comparable
):
    sparql_server.load(triple_terms(40, elsewhere=elsewhere))
    proxy.relabelled, proxy.description = relabelled, NO_DESCRIPTION
    proxy.cap = None if relabelled else 30
    if "json" in form:
        proxy.refuses = "^CONSTRUCT"
    done = tamias.crawl("--depth", "0", "--no-robots", f"sparql:{proxy.url}")
    assert done.returncode == 0, done.stderr
    assert comparable(exported(tamias, proxy.url)) == comparable(sparql_server.content())


def test_torn_blank_nodes_inside_triple_terms_are_reported(tamias, proxy, sparql_server):
    sparql_server.load(triple_terms(40, elsewhere=False))
    proxy.relabelled, proxy.cap = True, 30
    done = tamias.crawl("--depth", "0", "--no-robots", f"sparql:{proxy.url}")
    assert done.returncode == 0, done.stderr
    (attempt,) = tamias.attempts()[proxy.url]
    assert "blank nodes relabelled" in attempt["reason"]


@pytest.mark.parametrize("form", ["json", "xml", "tsv"])
def test_a_literal_that_looks_like_a_blank_node_of_a_server_stays_a_literal(
    form, tamias, proxy, sparql_server, comparable
):
    values = [
        '"nodeID://b10"', '"nodeID://b10"@en', '"nodeID://"', f'"nodeID://b10"^^<{EX}t>', "_:b10",
        f'<<( <{EX}a> <{EX}b> "nodeID://b10" )>>', '"_:b10"', '"bnode"',
    ]  # fmt: skip
    sparql_server.load("".join(f"<{EX}s> <{EX}p> {value} .\n" for value in values))
    proxy.refuses, proxy.description = "^CONSTRUCT", NO_DESCRIPTION
    kinds = {"json": "application/sparql-results+json", "xml": "application/sparql-results+xml"}
    proxy.gives = {"application/sparql-results+json": kinds.get(form, "text/tab-separated-values")}
    done = tamias.crawl("--depth", "0", "--no-robots", f"sparql:{proxy.url}")
    assert done.returncode == 0, done.stderr
    assert comparable(exported(tamias, proxy.url)) == comparable(sparql_server.content())


def test_the_description_of_an_endpoint_is_in_a_graph_of_its_own(tamias, proxy, sparql_server, comparable):
    sparql_server.load(f"<{EX}s> <{EX}p> _:b .\n_:b <{EX}p> <{EX}o> <{EX}g> .\n")
    proxy.description = f"[] a <{SD}Service> ; <{SD}endpoint> <> ; <{SD}defaultDataset> [ a <{SD}Dataset> ] ."
    done = tamias.crawl("--depth", "0", "--no-robots", f"sparql:{proxy.url}")
    assert done.returncode == 0, done.stderr
    own = NamedNode(proxy.url + "#service-description")
    quads = exported(tamias, proxy.url)
    described = [quad.triple for quad in quads if quad.graph_name == own]
    data = [quad for quad in quads if quad.graph_name != own]
    assert comparable(data) == comparable(sparql_server.content())
    said = parse(proxy.description, format=RdfFormat.TURTLE, base_iri=proxy.url)
    assert comparable(Quad(*triple) for triple in described) == comparable(said)


@pytest.mark.parametrize(
    "graphs", [("<http://example.org/g>", "<http://example.org/h>"), ("", "<http://example.org/h>")]
)
@pytest.mark.parametrize("inside", [False, True], ids=["as an object", "inside a triple term"])
def test_a_blank_node_that_two_graphs_share_is_not_torn_without_a_word(
    inside, graphs, tamias, proxy, sparql_server
):
    node = f"<<( <{EX}a> <{EX}b> _:shared )>>" if inside else "_:shared"
    sparql_server.load(
        f'_:shared <{EX}name> "one" {graphs[0]} .\n<{EX}s> <{EX}p> {node} {graphs[1]} .\n'
        + "".join(f'_:b{number} <{EX}name> "{number}" {graphs[0]} .\n' for number in range(9))
    )
    proxy.relabelled = True
    done = tamias.crawl("--depth", "0", "--no-robots", f"sparql:{proxy.url}")
    assert done.returncode == 0, done.stderr
    (attempt,) = tamias.attempts()[proxy.url]
    assert "blank nodes relabelled" in attempt["reason"]


def test_the_only_blank_nodes_of_two_graphs_stay_two(tamias, proxy, sparql_server, comparable):
    sparql_server.load(f'_:a <{EX}name> "a" .\n_:b <{EX}name> "b" <{EX}g> .\n_:b <{EX}same> "b" <{EX}g> .\n')
    proxy.relabelled, proxy.description = True, NO_DESCRIPTION
    done = tamias.crawl("--depth", "0", "--no-robots", f"sparql:{proxy.url}")
    assert done.returncode == 0, done.stderr
    assert comparable(exported(tamias, proxy.url)) == comparable(sparql_server.content())


def resources_of(site, folder, count):
    return "".join(f'<{site.url(f"/{folder}/{number}")}> <{EX}p> "{number}" .\n' for number in range(count))


def test_an_endpoint_is_requested_once_whatever_links_to_it(tamias, site, reply, proxy, sparql_server):
    sparql_server.load(f'<{EX}only> <{EX}p> "one" .\n')
    html = {"Content-Type": "text/html"}
    site.pages["/"] = (
        f"<> <{VOID}sparqlEndpoint> <{proxy.url}> ; <{EX}see> <{proxy.url}>, <a>, <b> .".encode()
    )
    site.pages["/a"] = reply(200, f"<html><a href='{proxy.url}'>query</a><a href='/c'>c</a>".encode(), **html)
    site.pages["/b"] = f"<> <{EX}see> <{proxy.url}> .".encode()
    site.pages["/c"] = reply(200, f"<html><a href='{proxy.url}'>query</a>".encode(), **html)
    done = tamias.crawl("--depth", "3", "--scope", "host", site.url("/"))
    assert done.returncode == 0, done.stderr
    assert proxy.described == 1
    assert any(f"<{EX}only>" in line for line in tamias.quads())


def test_of_resources_that_an_endpoint_describes_and_nobody_serves_a_sample_is_requested(
    tamias, site, proxy, sparql_server, comparable
):
    for number in range(60):
        site.pages[f"/live/{number}"] = f'<> <{EX}q> "{number}" .'.encode()
    sparql_server.load(resources_of(site, "missing", 200) + resources_of(site, "live", 60))
    proxy.description = NO_DESCRIPTION
    done = tamias.crawl("--depth", "1", "--scope", "host", "--no-robots", f"sparql:{proxy.url}")
    assert done.returncode == 0, done.stderr
    assert sum(site.asked(f"/missing/{number}") for number in range(200)) == 20
    assert all(site.asked(f"/live/{number}") for number in range(60))
    copied = [quad for quad in exported(tamias, proxy.url) if quad.graph_name == DefaultGraph()]
    assert comparable(copied) == comparable(sparql_server.content())


def test_a_page_that_is_wrongly_called_an_endpoint_is_read(tamias, site, reply):
    page = f"<html><a href='{site.url('/next')}'>next</a></html>".encode()
    site.pages["/"] = f"<> <{VOID}sparqlEndpoint> <page> .".encode()
    site.pages["/page"] = reply(200, page, **{"Content-Type": "text/html"})
    site.pages["/next"] = f'<> <{EX}q> "read" .'.encode()
    tamias.crawl("--depth", "4", "--scope", "host", site.url("/"))
    assert any('"read"' in line for line in tamias.quads())
