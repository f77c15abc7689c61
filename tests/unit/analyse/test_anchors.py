"""The words of links: what is clicked on, and what stands around it."""

import pytest
from selectolax.lexbor import LexborHTMLParser

from tamias.analyse.html.analyser import LONGEST_ANCHOR, LONGEST_CONTEXT, anchored


def words_of(body, reference="x", head="<html>"):
    return anchored(LexborHTMLParser(f"{head}<body>{body}</body>".encode()))[reference]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('<p>one <a href="x">two</a> three</p>', ("one", "two", "three")),
        ('<p>one <b>bold</b> <a href="x">t<i>w</i>o</a>, three</p>', ("one bold", "two", ", three")),
        ('<p>before</p><p>one <a href="x">two</a></p><p>after</p>', ("one", "two", "")),
        ('<ul><li><a href="y">other</a><li><a href="x">two</a></ul>', ("", "two", "")),
        ('<p>one<script>var a;</script> <a href="x">two</a></p>', ("one", "two", "")),
        ('<p>a\n   b <a href=" x ">two</a></p>', ("a b", "two", "")),
        ('<p>one <a href="x"><img src=i></a> three</p>', ("one", "", "three")),
    ],
)
def test_the_words_of_a_link_are_those_of_its_paragraph(body, words):
    found = words_of(body)
    assert (found.left, found.anchor, found.right) == words


def test_a_link_that_stands_twice_is_counted_and_keeps_the_words_it_has():
    found = words_of('<a href="x"><img></a> <p>one <a href="x">two</a></p> <a href="x">three</a>')
    assert (found.anchor, found.count) == ("two", 3)


def test_words_are_cut_where_there_are_too_many():
    found = words_of(f'<p>{"a " * 9999}<a href="x">{"b" * 9999}</a>{" c" * 9999}</p>')
    assert len(found.anchor) == LONGEST_ANCHOR
    assert max(len(found.left), len(found.right)) <= LONGEST_CONTEXT


@pytest.mark.parametrize(
    ("head", "link", "language"),
    [
        ("<html lang=fr>", '<a href="x">', "fr"),
        ("<html lang=fr>", '<a href="x" hreflang="DE-at">', "de-at"),
        ("<html>", '<a href="x">', None),
    ],
)
def test_the_language_is_what_the_link_says_or_else_the_page(head, link, language):
    assert words_of(f"{link}a</a>", head=head).language == language


def test_a_deep_page_is_read():
    assert words_of("<div>" * 20_000 + '<a href="x">deep</a>').anchor == "deep"
