"""Short cuts for small documents say the same as the long way."""

import pytest
from pyoxigraph import DefaultGraph, RdfFormat, parse

from tamias.analyse.chunks import FEW, times
from tamias.analyse.rdf.turtle import valid_base
from tamias.content.quad_lines import QuadLines

ADDRESSES = [
    "http://127.2.0.1:18800/dataset-0/resource-1",
    "https://example.org",
    "https://example.org/a_b/~c.ttl",
    "http://example.org:80",
    "http://example.org/%zz",
    "http://example.org/a b",
    "http://example.org:port/",
    "http://exämple.org/ü",
    "http://example.org/a?b=c|d",
    "http:/a",
    "a/b",
    "",
]


def asked_of_the_parser(url):
    try:
        parse(b"", format=RdfFormat.TURTLE, base_iri=url)
    except ValueError:
        return None
    return url


@pytest.mark.parametrize("url", ADDRESSES)
def test_a_base_is_judged_as_the_parser_judges_it(url):
    assert valid_base(url) == asked_of_the_parser(url)


@pytest.mark.parametrize("size", [0, 1, FEW - 1, FEW, 3 * FEW])
def test_a_byte_is_counted_alike_in_short_and_long_texts(size):
    text = (b"ab\n" * size)[:size]
    assert times(b"\n", text) == text.count(b"\n")


def test_lines_without_the_predicates_asked_for_say_nothing():
    text = b"<http://e.example/s> <http://e.example/p> <http://e.example/o> .\n"
    lines = QuadLines(text, DefaultGraph())
    assert lines.saying({b"<http://e.example/q>"}) == []
    assert len(lines.saying({b"<http://e.example/p>"})) == 1
