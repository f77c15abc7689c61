"""A user's query is taken apart only where its own window is."""

import pytest
from pyoxigraph import Store

from tamias.features.sparql_copy.query_source import question
from tamias.model.errors import UsageError

PREFIX = "PREFIX limit: <http://example.org/LIMIT#10> "


@pytest.mark.parametrize(
    ("query", "limit", "offset", "ordered"),
    [
        ("SELECT ?s { ?s ?p ?o }", None, 0, False),
        ("select * where { ?s ?p ?o } limit 7", 7, 0, False),
        ("SELECT ?s { ?s ?p ?o } LIMIT 7 OFFSET 3", 7, 3, False),
        ("SELECT ?s { ?s ?p ?o } OFFSET 3 LIMIT 0", 0, 3, False),
        ("SELECT ?s { ?s ?p ?o } ORDER BY ?s LIMIT 7 # LIMIT 9", 7, 0, True),
        ("SELECT ?s { { SELECT ?s { ?s ?p ?o } ORDER BY ?s LIMIT 2 } }", None, 0, False),
        ('SELECT ?s { ?s ?p "} LIMIT 5" . ?s ?q """x " LIMIT 6""" }', None, 0, False),
        (PREFIX + "SELECT ?limit { ?limit ?p limit:OFFSET }", None, 0, False),
        ("SELECT ?s { ?s ?p ?o } LIMIT 7 VALUES ?p { <http://example.org/p> }", 7, 0, False),
        ("SELECT (COUNT(?s) AS ?n) ?p { ?s ?p ?o } GROUP BY ?p HAVING (COUNT(?s) > 3)", None, 0, False),
    ],
)
def test_the_window_of_a_query_is_found(query, limit, offset, ordered):
    found = question(query)
    assert (found.limit, found.offset, found.ordered) == (limit, offset, ordered)
    Store().query(found.window(10, 20))


@pytest.mark.parametrize("query", ["ASK { ?s ?p ?o }", "ASK { SELECT ?s { } }", "DESCRIBE <a:b>", ""])
def test_a_query_that_returns_neither_rows_nor_statements_is_refused(query):
    with pytest.raises(UsageError, match="neither a SELECT nor a CONSTRUCT"):
        question(query)


def test_a_construct_is_told_from_a_select_in_its_pattern():
    assert question("PREFIX a: <b:> CONSTRUCT { ?s a ?t } WHERE { SELECT ?s ?t { ?s a ?t } }").constructs
    assert not question("SELECT ?construct { ?construct ?p ?o }").constructs
