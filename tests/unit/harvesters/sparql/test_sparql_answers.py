"""Answers are known by their content, and cut or wrong ones are never taken for results."""

import pytest

from tamias.features.sparql_copy.answers import Cell, UnreadableAnswer, read_answer

JSON = (
    b'{"head":{"vars":["s","o"]},"results":{"bindings":[{"s":{"type":"uri","value":"http://example.org/s"},'
    b'"o":{"type":"literal","value":"x","xml:lang":"en"}},{"s":{"type":"bnode","value":"b1"}}]}}'
)
XML = (
    b'<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#"><head>'
    b'<variable name="s"/><variable name="o"/></head><results><result><binding name="s">'
    b'<uri>http://example.org/s</uri></binding><binding name="o"><literal xml:lang="en">x</literal></binding>'
    b'</result><result><binding name="s"><bnode>b1</bnode></binding></result></results></sparql>'
)
TSV = b'?s\t?o\n<http://example.org/s>\t"x"@en\n_:b1\t\n'
ROWS = [
    {"s": Cell("uri", "http://example.org/s"), "o": Cell("literal", "x", "en")},
    {"s": Cell("bnode", "b1")},
]


@pytest.mark.parametrize(
    "body", [JSON, XML, TSV, b"\xef\xbb\xbf \n" + JSON], ids=["json", "xml", "tsv", "mark"]
)
def test_rows_are_the_same_in_every_form(body):
    assert read_answer(body).rows == ROWS


@pytest.mark.parametrize("body", [JSON, XML, TSV], ids=["json", "xml", "tsv"])
def test_variables_are_given_in_their_order(body):
    assert read_answer(body).variables == ["s", "o"]


@pytest.mark.parametrize("body", [JSON, XML], ids=["json", "xml"])
def test_an_answer_cut_anywhere_is_unreadable(body):
    for length in range(len(body) - 1):
        with pytest.raises(UnreadableAnswer):
            read_answer(body[:length])


def test_tab_separated_values_cut_in_a_line_are_unreadable():
    with pytest.raises(UnreadableAnswer):
        read_answer(TSV[:-4])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<!DOCTYPE html><html><body>Error</body></html>",
        b"<html>",
        b'<?xml version="1.0"?><!-- x --><error>no</error>',
        b"s,o\r\nhttp://example.org/s,x\r\n",
        b'{"error": "timeout"}',
        b'{"head":{},"boolean":true}',
        b"Virtuoso 42000 Error The estimated execution time exceeds the limit",
        b"[" * 100_000,
        b'{"results":' * 50_000,
    ],
)
def test_what_is_no_results_is_unreadable(body):
    with pytest.raises(UnreadableAnswer):
        read_answer(body)


def test_an_entity_bomb_is_not_set_off():
    bomb = (
        b'<!DOCTYPE sparql [<!ENTITY a "'
        + b"x" * 1000
        + b'">'
        + b"".join(
            b'<!ENTITY a%d "%b">' % (level, b"&a%b;" % (str(level - 1).encode() if level else b"") * 10)
            for level in range(9)
        )
    )
    results = (
        b']><sparql xmlns="http://www.w3.org/2005/sparql-results#"><head/><results>&a8;</results></sparql>'
    )
    try:
        rows = read_answer(bomb + results).rows
    except UnreadableAnswer:
        rows = []
    assert rows == []


def test_control_characters_left_in_json_are_read_as_they_are():
    assert read_answer(JSON.replace(b'"x"', b'"x\ty\nz"')).rows[0]["o"].value == "x\ty\nz"
