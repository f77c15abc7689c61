"""A user's query as a source of addresses, on a real server that caps its answers."""

import pytest

from tamias.features.sparql_copy.client import EndpointClient, EndpointLimits, QueryFailed
from tamias.features.sparql_copy.query_source import SelectState, question, select_pages


@pytest.fixture
def found(proxy, sparql_server, with_client):
    sparql_server.load(
        "".join(
            f'<http://example.org/s{each:04}> <http://example.org/label> "{each}" .\n'
            f'<http://example.org/s{each:04}> <http://example.org/page> "http://example.org/page/{each}" .\n'
            for each in range(250)
        )
    )

    def ask(query, **limits):
        async def use(http):
            state = SelectState()
            client = EndpointClient(http, proxy.url, state.dialect, EndpointLimits().most_bytes)
            return [
                row async for rows in select_pages(client, question(query), state, **limits) for row in rows
            ]

        return with_client(use)

    return ask


@pytest.mark.parametrize("shuffled", [False, True])
def test_all_rows_come_though_the_server_caps_them(shuffled, found, proxy):
    proxy.cap, proxy.shuffled = 40, shuffled
    rows = found("SELECT ?label ?s { ?s <http://example.org/label> ?label }")
    assert {row["label"] for row in rows} == {str(number) for number in range(250)}


def test_the_first_iri_is_the_address(found):
    rows = found("SELECT ?label ?s { ?s <http://example.org/label> ?label } LIMIT 3")
    assert all(list(row) == ["s", "label"] for row in rows)


def test_a_variable_called_url_is_the_address(found):
    rows = found("SELECT ?s ?url { ?s <http://example.org/page> ?url }")
    assert all(next(iter(row.values())).startswith("http://example.org/page/") for row in rows)


def test_a_row_without_an_address_is_passed_over(found):
    assert found('SELECT ("x" AS ?a) { }') == []


@pytest.mark.parametrize("cap", [None, 40])
def test_the_limit_of_the_user_is_respected(cap, found, proxy):
    proxy.cap = cap
    rows = found("SELECT ?s { ?s <http://example.org/label> ?o } ORDER BY ?s LIMIT 90 OFFSET 5")
    names = [row["s"].removeprefix("http://example.org/s") for row in rows]
    assert names == [f"{number:04}" for number in range(5, 95)]


def test_there_are_no_more_rows_than_allowed(found):
    assert len(found("SELECT ?s { ?s ?p ?o }", page=30, most=70)) == 70


def test_a_query_that_the_server_refuses_is_an_error_with_its_reason(found):
    with pytest.raises(QueryFailed, match="400"):
        found("SELECT ?s { nonsense }")
