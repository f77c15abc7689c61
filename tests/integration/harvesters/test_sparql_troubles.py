"""Endpoints that fail now and then, or for good; and copies that are broken off and taken up again."""

import pytest

from tamias.features.sparql_copy.copying import SparqlHarvester
from tamias.model.capture import Outcome
from tamias.model.finding import Quads


def statements(subjects, each=5, graph=""):
    return "".join(
        f'<http://example.org/s{number:05}> <http://example.org/p{one}> "{number} {one}" {graph}.\n'
        for number in range(subjects)
        for one in range(each)
    )


def shapes():
    """Some of everything, so that all ways of paging are taken."""
    heavy = "".join(
        f"<http://example.org/heavy> <http://example.org/p> <http://example.org/o{number}> .\n"
        f'<http://example.org/heavy> <http://example.org/q> "same"^^<http://example.org/t{number}> .\n'
        f"_:b{number} <http://example.org/type> <http://example.org/Thing> .\n"
        f'_:b{number} <http://example.org/label> "{number}" .\n'
        for number in range(90)
    )
    graphs = "".join(
        statements(1 + number, 3, f"<http://example.org/g{number}> ") for number in range(0, 60, 5)
    )
    return statements(60) + heavy + graphs


def data(quads):
    """All quads but the graph of the service description."""
    return [quad for quad in quads if not str(quad.graph_name).endswith("#service-description>")]


@pytest.mark.parametrize("fault", ["500", "html", "cut", "gone", "csv"])
def test_an_endpoint_that_fails_every_fifth_answer_is_copied_whole(
    fault, proxy, sparql_server, copied, comparable
):
    sparql_server.load(shapes())
    proxy.cap, proxy.faults = 40, lambda number: fault if number % 5 == 0 else None
    found = copied(SparqlHarvester(), proxy.url, "sparql")
    assert comparable(data(found.quads)) == comparable(sparql_server.content())
    assert found.end.complete, found.end.reason


def test_an_endpoint_that_is_too_slow_at_times_is_copied_whole(proxy, sparql_server, copied, comparable):
    sparql_server.load(statements(60))
    proxy.faults = {4: "slow", 7: "slow"}
    found = copied(SparqlHarvester(page=50), proxy.url, "sparql", first_byte_timeout=1.0, total_timeout=1.5)
    assert comparable(data(found.quads)) == comparable(sparql_server.content())


def test_large_pages_that_always_fail_are_made_smaller(proxy, sparql_server, copied, comparable):
    sparql_server.load(statements(300))
    proxy.faults = lambda _number: "500" if proxy.rows[-1] > 200 else None
    found = copied(SparqlHarvester(), proxy.url, "sparql")
    assert comparable(data(found.quads)) == comparable(sparql_server.content())
    assert found.end.complete, found.end.reason


def test_what_cannot_be_had_is_left_out_and_named(proxy, sparql_server, copied):
    graphs = [f"<http://example.org/g{number}> " for number in range(5)]
    sparql_server.load("".join(statements(20 + at, 5, graph) for at, graph in enumerate(graphs)))
    proxy.refuses = graphs[3].strip()
    found = copied(SparqlHarvester(page=250), proxy.url, "sparql")
    assert not found.end.complete
    assert {f"{quad.graph_name} " for quad in data(found.quads)} == {*graphs} - {graphs[3]}
    assert found.problems


def test_a_server_that_asks_to_be_left_alone_is_left_alone(proxy, sparql_server, copied):
    sparql_server.load(statements(60))
    proxy.faults = {6: "busy"}
    found = copied(SparqlHarvester(page=50), proxy.url, "sparql")
    assert (found.end.retry, found.end.retry_after_ms) == (True, 7_000)
    assert len(proxy.asked) == 6


def test_a_harvest_that_was_stopped_goes_on_where_it_was(proxy, sparql_server, copied, comparable):
    sparql_server.load(statements(60))
    proxy.faults = {7: "busy"}
    first = copied(SparqlHarvester(page=50), proxy.url, "sparql")
    second = copied(SparqlHarvester(page=50), proxy.url, "sparql", state=first.steps[-1].state)
    assert comparable(data(first.quads + second.quads)) == comparable(sparql_server.content())
    assert second.end.complete, second.end.reason


def test_an_address_without_an_endpoint_is_a_failure_that_is_not_repeated(proxy, copied):
    proxy.refuses = "."
    proxy.description = "<!DOCTYPE html><html><form>Ask me</form></html>"
    end = copied(SparqlHarvester(), proxy.url, "sparql").end
    assert (end.outcome, end.retry) == (Outcome.FAILED, False)


def test_an_endpoint_that_is_down_is_to_be_tried_again(proxy, copied):
    url = proxy.url
    proxy.close()
    end = copied(SparqlHarvester(), url, "sparql").end
    assert (end.outcome, end.retry) == (Outcome.FAILED, True)


def test_a_copy_taken_up_after_every_step_has_each_statement_once(proxy, sparql_server, copied):
    sparql_server.load(shapes())
    proxy.cap = 40
    quads, state, end = [], None, None
    while end is None:
        (step,) = copied(SparqlHarvester(), proxy.url, "sparql", state=state, until=lambda steps: True).steps
        quads += [quad for finding in step.findings if isinstance(finding, Quads) for quad in finding.quads]
        state, end = step.state, step.end
    assert len(data(quads)) == len(set(data(quads))) == sparql_server.content().count(b"\n")
    assert end.complete, end.reason


def test_a_copy_of_two_hundred_pages_killed_in_the_middle_repeats_two_pages_at_most(
    proxy, sparql_server, copied
):
    sparql_server.load(statements(1_600))
    proxy.cap = 40
    first = copied(SparqlHarvester(), proxy.url, "sparql", until=lambda steps: len(steps) == 100)
    kept = first.steps[:-1]
    second = copied(SparqlHarvester(), proxy.url, "sparql", state=kept[-1].state)
    pages = [query for query in proxy.pages if "OFFSET" in query]
    assert 200 <= len(pages) <= len(set(pages)) + 2
    first.steps = kept
    assert len(data(first.quads + second.quads)) == len(set(data(first.quads + second.quads))) == 8_000
    assert second.end.complete, second.end.reason


def test_the_state_stays_small(proxy, sparql_server, copied):
    sparql_server.load(
        "".join(statements(1, 2, f"<http://example.org/g{number}> ") for number in range(2_000))
    )
    proxy.cap = 100
    found = copied(SparqlHarvester(), proxy.url, "sparql")
    assert max(len(step.state) for step in found.steps) < 2_000
