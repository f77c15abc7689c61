"""The links of pages, as browsers would see them."""

import io
import random

import pytest

import tamias
from tamias.analyse.html.analyser import HtmlAnalyser
from tamias.model.document import Document
from tamias.model.finding import Links, Problem
from tamias.settings import AnalyseSettings

URL = "http://a.example/d/page"


def analysed(page, *, media_type="text/html", charset=None, **limits):
    page = page.encode() if isinstance(page, str) else page
    document = Document(url=URL, stream=io.BytesIO(page), media_type=media_type, charset=charset)
    return list(HtmlAnalyser(AnalyseSettings(**limits)).analyse(document))


def references(page, **options):
    [links] = [finding for finding in analysed(page, **options) if isinstance(finding, Links)]
    return links.references


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<a href=x>1</a><a href=y>2</a>", ["x", "y"]),
        ("<a href=x>1</a><a href=x>2</a>", ["x"]),
        ("<a href=' x\n'>", ["x"]),
        ("<a href='?a=1&amp;b=2'>", ["?a=1&b=2"]),
        ("<a>no</a><a href>no</a><a href=''>no</a>", []),
        ("<a href='#top'>no</a><a href='javascript:x()'>no</a><a href='mailto:a@b'>no</a>", []),
        ("<map><area href=x></map>", ["x"]),
        ("<iframe src=x></iframe>", ["x"]),
        ("<frameset><frame src=x><frame src=y></frameset>", ["x", "y"]),
        ("<link rel=alternate type=text/turtle href=d.ttl>", ["d.ttl"]),
        ("<link rel=next href=x><link rel=canonical href=y><link href=z>", ["x", "y", "z"]),
        ("<link rel=stylesheet href=x><link rel='shortcut icon' href=y><link rel=preload href=z>", []),
        ("<a rel='nofollow' href=x><a rel='me NoFollow' href=y><a rel=me href=z>", ["z"]),
        ("<!-- <a href=x> --><script>'<a href=y>'</script><A HREF=z>", ["z"]),
        ("<p>unclosed <b><a href=x>and <i>crossed</b></i>", ["x"]),
        ("", []),
        ("just text", []),
        ("<a href=é>", ["é"]),
    ],
)
def test_links_are_found_in_order_and_once(page, expected):
    assert references(page) == expected


@pytest.mark.parametrize(
    ("page", "base"),
    [
        ("<a href=x>", URL),
        ("<base href='http://b.example/c/'><a href=x>", "http://b.example/c/"),
        ("<base href='../up/'>", "http://a.example/up/"),
        ("<base href='/1/'><base href='/2/'>", "http://a.example/1/"),
        ("<base target=_blank><base href='/2/'>", "http://a.example/2/"),
        ("<base href='javascript:x'>", URL),
        ("<base href='http://[bad'>", URL),
        ("<base href=''>", URL),
    ],
)
def test_the_base_is_that_of_the_page(page, base):
    [links] = analysed(page)
    assert links.base == base


PIECES = (
    *("<base", "<BASE ", "<b", "<a", "<svg><a", "<meta", "<title>", "</title>", "<!--", "-->", "<script>"),
    *(
        " href",
        " HREF",
        " xlink:href",
        " http-equiv",
        "=refresh",
        " content='0;url=/r'",
        " rel=me",
        " rel=nofollow",
    ),
    *("='/x'", '="http://b.example/y"', "=z", "='", '"', ">", "/>", " ", "\0", "\n", "text", "</script>"),
)


@pytest.mark.parametrize("seed", range(300))
def test_what_is_looked_for_only_where_its_words_stand_is_found_wherever_it_is(seed):
    page = "".join(random.Random(seed).choices(PIECES, k=40))
    assert analysed(page) == analysed(f"<!-- <base http-equiv> -->{page}")


@pytest.mark.parametrize(
    ("meta", "followed"),
    [
        ("<meta name=robots content='index, nofollow'>", False),
        ("<meta name=ROBOTS content=NONE>", False),
        ("<meta name=tamias content=nofollow>", False),
        ("<meta name=otherbot content=nofollow>", True),
        ("<meta name=robots content='noindex'>", True),
        ("<meta name=robots>", True),
    ],
)
def test_a_page_can_forbid_that_its_links_are_followed(meta, followed):
    assert references(f"{meta}<a href=x>") == (["x"] if followed else [])


@pytest.mark.parametrize(
    ("charset", "encoded"),
    [
        (None, "utf-8"),
        ("utf-8", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("cp1251", "cp1251"),
        ("iso8859-1", "cp1252"),
    ],
)
def test_the_charset_of_the_page_is_respected(charset, encoded):
    name = "я" if encoded == "cp1251" else "é"
    assert references(f"<a href={name}>".encode(encoded), charset=charset) == [name]


def test_bytes_that_are_no_utf_8_are_read_as_browsers_read_them():
    assert references(b"<a href=x>\xff\xfe</a><a href='\xff'>") == ["x", "ÿ"]


def test_xhtml_elements_that_end_themselves_do_not_swallow_the_page():
    page = '<html><head><title/><script src="s.js"/></head><a href="x"/></html>'
    assert references(page, media_type="application/xhtml+xml") == ["x"]


def test_a_page_that_is_too_long_is_read_as_far_as_allowed():
    problem, links = analysed("<a href=x>" + " " * 5000 + "<a href=y>", html_bytes=1000)
    assert isinstance(problem, Problem)
    assert "analyse.html_bytes" in problem.what
    assert links == Links(["x"], URL)


@pytest.mark.parametrize(
    "page",
    [
        b"<div>" * 100_000,
        b"<x-y>" * 100_000 + b"</x-y>" * 100_000,
        b"<p>" + b"".join(b"<font size=%d>" % n for n in range(2000)) + b"</p>" + b"<p>x</p>" * 2000,
    ],
    ids=["blocks", "closed again", "formatting"],
)
def test_a_page_nested_to_harm_the_parser_is_refused(page):
    [problem] = analysed(page)
    assert "limit analyse.html_nesting" in problem.what


@pytest.mark.parametrize(
    "page",
    [
        "<ul>" + "<li><b class=x>1</b> <a href=x>2</a><br>" * 20_000,
        "<table>" + "<tr><td><font size=1>a</font><td><img src=y>" * 20_000 + "<tr><td><a href=x>",
        "<p>text<hr>" * 20_000 + "<a href=x>",
    ],
)
def test_long_flat_pages_are_read(page):
    assert references(page) == ["x"]


def test_real_pages_have_links(suites):
    folder = suites("real-html-samples")
    pages = [file.read_bytes() for file in sorted(folder.rglob("*.html"))]
    counts = [len(references(page)) for page in pages]
    assert (len(counts), sum(counts) > 300) == (7, True)


FIRST_TAGS = ["dl", "aside", "figure", "h4", "blockquote", "my-app", "object", "data", "x:y"]


@pytest.mark.parametrize("tag", FIRST_TAGS)
def test_a_page_that_is_declared_as_html_may_begin_with_any_tag(tag):
    page = (
        f'<{tag}><a href="/there">x</a>'
        '<p vocab="http://schema.org/" typeof="Person" resource="#me"><b property="name">Ann</b></p>'
    )
    found = tamias.read(page.encode(), base="http://a/", media_type="text/html")
    assert "http://a/there" in found.links
    assert '<http://a/#me> <http://schema.org/name> "Ann"' in {str(quad) for quad in found.quads}


def test_attributes_of_a_late_body_are_those_of_the_body():
    page = (
        b'<p property="name">Ann</p><body vocab="http://schema.org/" resource="#me" lang="en">'
        b'<body lang="de" typeof="Person">'
    )
    found = {str(quad) for quad in tamias.read(page, base="http://a/", media_type="text/html").quads}
    assert '<http://a/#me> <http://schema.org/name> "Ann"@en' in found
    assert any(line.endswith("#type> <http://schema.org/Person>") for line in found)
