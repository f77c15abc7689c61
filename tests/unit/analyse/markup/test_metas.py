"""Dublin Core and Open Graph in the head of a page."""

import pytest
from pyoxigraph import Dataset, RdfFormat, parse

from tamias.analyse.markup.page import MarkupPage, extracted
from tamias.features.markup import metas
from tamias.model.finding import Quads

URL = "http://a.example/d/page"


def page(text):
    return MarkupPage(text.encode(), url=URL, base=URL, media_type="text/html")


def statements(findings):
    return Dataset(quad for finding in findings if isinstance(finding, Quads) for quad in finding.quads)


def turtle(text):
    prefixes = """@prefix dc: <http://purl.org/dc/elements/1.1/> .
        @prefix dcterms: <http://purl.org/dc/terms/> . @prefix og: <http://ogp.me/ns#> ."""
    return Dataset(parse(prefixes + text, format=RdfFormat.TURTLE, base_iri=URL))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("<meta name=DC.title content=A>", "<> dc:title 'A'"),
        ("<meta name=dc.Title content=A>", "<> dc:title 'A'"),
        ("<meta name=dc:title content=A>", "<> dc:title 'A'"),
        ("<meta name=DCTERMS.rightsHolder content=A>", "<> dcterms:rightsHolder 'A'"),
        ("<meta name=DC.Date.Created content=2020>", "<> dcterms:created '2020'"),
        ("<meta name=DC.title content=A lang=de>", "<> dc:title 'A'@de"),
        ("<html lang=en><meta name=DC.title content=A>", "<> dc:title 'A'@en"),
        (
            "<link rel=schema.DC href=http://purl.org/dc/terms/><meta name=DC.title content=A>",
            "<> dcterms:title 'A'",
        ),
        (
            "<link rel=schema.X href=http://x.example/ns#><meta name=X.Thing content=A>",
            "<> <http://x.example/ns#Thing> 'A'",
        ),
        ("<meta name=DC.date scheme=DCTERMS.W3CDTF content=2020>", "<> dc:date '2020'^^dcterms:W3CDTF"),
        ("<link rel=DC.relation href=other>", "<> dc:relation <other>"),
        ("<meta name=og:title content=A>", "<> og:title 'A'"),
        ("<meta name=DC.Publisher.Address content=A>", ""),
        ("<meta name=description content=A><meta name=DC. content=A><meta name=DC.title>", ""),
    ],
)
def test_a_meta_is_a_statement_about_the_page(head, expected):
    assert statements(metas.extract(page(head))) == turtle(f"{expected} ." if expected else "")


def test_open_graph_in_property_is_read_once_and_by_rdfa():
    found = extracted(page("<meta property=og:title content=A><meta name=og:title content=A>"))
    assert statements(found) == turtle("<> og:title 'A' .")


@pytest.mark.parametrize(
    "head",
    ["<META NAME='DC.title' CONTENT=A>", "<link rel='schema.x' href=http://x/><meta name=x.y content=A>"],
)
def test_the_gate_opens_for_it(head):
    assert len(statements(extracted(page(head)))) == 1
