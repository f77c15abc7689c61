"""Structured data of pages, through the analyser: gates, encodings, kinds of document, limits."""

import io

import pytest

from tamias.analyse.html.analyser import HtmlAnalyser
from tamias.analyse.markup.page import MarkupPage
from tamias.model.document import Document
from tamias.model.finding import Links, Quads
from tamias.settings import AnalyseSettings
from tests.messages import unsaid

URL = "http://a.example/d/page"
TITLE = "http://purl.org/dc/terms/title"
PAGE = "<html xmlns='http://www.w3.org/1999/xhtml'><p property='dc:title'>é</p></html>"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def analysed(page, *, media_type="text/html", charset=None, **limits):
    page = page.encode() if isinstance(page, str) else page
    document = Document(url=URL, stream=io.BytesIO(page), media_type=media_type, charset=charset)
    return list(HtmlAnalyser(AnalyseSettings(**limits)).analyse(document))


def quads(findings):
    return [quad for finding in findings if isinstance(finding, Quads) for quad in finding.quads]


def titles(page, **options):
    found = quads(analysed(page, **options))
    return [(quad.subject.value, quad.object.value) for quad in found if quad.predicate.value == TITLE]


@pytest.fixture
def trees(monkeypatch):
    """Counts the trees that are made."""
    made = []
    tree = MarkupPage.tree.func
    monkeypatch.setattr(MarkupPage.tree, "func", lambda page: made.append(page) or tree(page))
    return made


@pytest.mark.parametrize(
    "page",
    [
        "<html><head><title>A</title><link rel=stylesheet href=x></head><body><a rel=nofollow href=y>B</a>",
        "<p class=c>typeof x, a property of things; about the vocab</p>",
        "<meta name=description content=A><meta name=viewport content=B>",
        "<div role=main id=x>A</div>",
        "",
    ],
)
def test_a_page_without_markup_costs_one_parse(page, trees):
    analysed(page)
    assert trees == []


def test_a_page_with_all_kinds_of_markup_costs_one_tree(trees):
    analysed("<meta name=DC.title content=A><p property=dc:title>B</p><p itemscope><b itemprop=x>C</b>")
    assert len(trees) == 1


def test_links_come_before_statements():
    kinds = [type(finding) for finding in analysed("<a href=x>A</a><p property=dc:title>B")]
    assert kinds == [Links, Quads]


@pytest.mark.parametrize(
    ("page", "options"),
    [
        ("<p property=dc:title>é", {}),
        (b"\xef\xbb\xbf<p property=dc:title>\xc3\xa9", {"charset": "utf-8"}),
        (b"<p property=dc:title>\xe9", {"charset": "iso8859-1"}),
        ("<p property=dc:title>é".encode("utf-16"), {"charset": "utf-16"}),
        (PAGE, {"media_type": "application/xhtml+xml"}),
        (
            f"<?xml version='1.0' encoding='iso-8859-1'?>{PAGE}".encode("latin-1"),
            {"media_type": "application/xhtml+xml", "charset": "iso8859-1"},
        ),
        ("<r><p property='dc:title'>é</p></r>", {"media_type": "application/xml"}),
        (
            "<svg xmlns='http://www.w3.org/2000/svg'><desc property='dc:title'>é</desc></svg>",
            {"media_type": "image/svg+xml"},
        ),
    ],
)
def test_a_title_is_read_in_every_encoding_and_kind_of_document(page, options):
    assert titles(page, **options) == [(URL, "é")]


def test_the_base_of_the_page_holds_for_its_statements():
    assert titles("<base href=/e/><p about=x property=dc:title>A") == [("http://a.example/e/x", "A")]


def test_a_page_that_forbids_following_has_statements_and_its_base():
    page = "<base href=/e/><meta name=robots content=nofollow><p about=x property=dc:title>A"
    assert titles(page) == [("http://a.example/e/x", "A")]


def test_rdf_in_a_drawing_is_read():
    page = f"""<svg xmlns="http://www.w3.org/2000/svg"><metadata><rdf:RDF xmlns:rdf="{RDF}">
        <rdf:Description rdf:about=""><dc:title xmlns:dc="http://purl.org/dc/terms/">A</dc:title></rdf:Description>
        </rdf:RDF></metadata></svg>"""
    assert titles(page, media_type="image/svg+xml") == [(URL, "A")]


def test_many_empty_elements_of_xml_are_not_deep():
    page = "<r>" + "<p property='dc:title'/>" * 10_000 + "</r>"
    assert titles(page, media_type="application/xml") == [(URL, "")]


def test_entities_that_grow_past_the_limit_are_refused():
    page = (
        "<!DOCTYPE r [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;'>]><r property='dc:title'>&b;</r>"
    )
    [problem] = analysed(page, media_type="application/xml", entity_bytes=20)
    assert not unsaid(problem.what, "20", "limit analyse.entity_bytes")


@pytest.mark.parametrize("attribute", [" a{}=1", " a{}='>'", "/a{}", " a{}"])
def test_a_tag_of_very_many_attributes_is_refused(attribute):
    page = "<p property=dc:title" + "".join(attribute.format(number) for number in range(10_000)) + ">A"
    [problem] = analysed(page)
    assert not unsaid(problem.what, "analyse.html_nesting")


def test_a_tag_with_one_very_long_attribute_is_read():
    assert titles(f'<p property=dc:title style="{"/ " * 50_000}">A') == [(URL, "A")]


@pytest.mark.parametrize(
    "media_type", ["text/html", "application/xhtml+xml", "application/xml", "image/svg+xml"]
)
@pytest.mark.parametrize(
    "page",
    [
        b"",
        b" ",
        b"\x00property=\x00",
        b"<!-- property= -->",
        b"<p property=",
        b"<p property='dc:title' content='\xff\xfe'",
        b"property= itemscope name=dc. rel=license",
        b"<p itemscope itemref='a a' id=a itemprop=b><p property='::: [] _: dc:' typeof='' about='[' rel=''>",
        b"<base href='http://[x'><p property=dc:x resource='[:x]' datatype=':::' vocab='::' prefix=': :'>",
        b"<?xml version='1.0'?><!DOCTYPE r [<!ENTITY a '&a;'>]><r property='&a;'/>",
    ],
)
def test_whatever_stands_in_a_page_nothing_is_raised(page, media_type):
    analysed(page, media_type=media_type)
