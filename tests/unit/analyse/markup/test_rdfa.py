"""RDFa where the public suite is silent: real mistakes, odd pages, hostile ones."""

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from tamias.analyse.markup.page import MarkupPage
from tamias.features.markup import rdfa
from tamias.model.finding import Problem, Quads
from tests.messages import unsaid

URL = "http://a.example/d/page"
DC = "http://purl.org/dc/terms/"


def extracted(page, media_type="text/html"):
    page = page.encode() if isinstance(page, str) else page
    findings = list(rdfa.extract(MarkupPage(page, url=URL, base=URL, media_type=media_type)))
    quads = [quad for finding in findings if isinstance(finding, Quads) for quad in finding.quads]
    return quads, [finding.what for finding in findings if isinstance(finding, Problem)]


def canonical(quads):
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def turtle(text):
    prefixes = f"""@prefix dc: <{DC}> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .
        @prefix og: <http://ogp.me/ns#> . @prefix xhv: <http://www.w3.org/1999/xhtml/vocab#> ."""
    return canonical(parse(prefixes + text, format=RdfFormat.TURTLE, base_iri=URL))


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p property=dc:title>A</p>", "<> dc:title 'A'"),
        ("<p property=dc:title content=B>A</p>", "<> dc:title 'B'"),
        ("<p property=dc:title lang=en-GB>A</p>", "<> dc:title 'A'@en-gb"),
        ("<p property=dc:title lang=en_GB>A</p>", "<> dc:title 'A'@en-gb"),
        ("<p property=dc:title lang='no language'>A</p>", "<> dc:title 'A'"),
        ("<p property=dc:title>A<!-- b -->C</p>", "<> dc:title 'AC'"),
        ("<p PROPERTY=dc:title>A</p>", "<> dc:title 'A'"),
        ("<a property=dc:source href='x y'>A</a>", "<> dc:source <http://a.example/d/x%20y>"),
        ("<a property=dc:source href='http://é.example/ü'>A</a>", "<> dc:source <http://é.example/ü>"),
        ("<a rel=license href=l>A</a>", "<> xhv:license <l>"),
        ("<a rel='nofollow license' href=l>A</a>", "<> xhv:license <l>"),
        ("<link rel=stylesheet href=l>", ""),
        ("<div rel=foaf:knows><a href=b>B</a><p><img src=c></p></div>", "<> foaf:knows <b>, <c>"),
        ("<div about=#me><b property=foaf:name>N</b></div>", "<#me> foaf:name 'N'"),
        ("<meta property=og:title content=T>", "<> og:title 'T'"),
        (
            "<meta property=article:author content=T>",
            "<> <http://ogp.me/ns/article#author> 'T'",
        ),
        (
            "<html prefix='article: http://x.example/'><meta property=article:author content=T>",
            "<> <http://x.example/author> 'T'",
        ),
        ("<html xmlns:x='http://x.example/'><p property=x:y>A", "<> <http://x.example/y> 'A'"),
        ("<p property='dc:title dc:title'>A", "<> dc:title 'A'"),
        (
            "<time property=dc:date datetime=2020-01-02>A",
            "<> dc:date '2020-01-02'^^<http://www.w3.org/2001/XMLSchema#date>",
        ),
        ("<div role=navigation>A</div>", ""),
    ],
)
def test_statements_are_those_of_the_markup(page, expected):
    quads, problems = extracted(page)
    assert (canonical(quads), problems) == (turtle(f"{expected} ." if expected else ""), [])


def test_a_page_that_says_it_is_of_rdfa_1_0_is_read_so():
    doctype = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML+RDFa 1.0//EN" "x.dtd">'
    page = f"{doctype}<html xmlns:q='{DC}'><p property='q:title'>A</p><p property='dc:title'>B</p></html>"
    assert canonical(extracted(page)[0]) == turtle("<> dc:title 'A' .")


def test_entities_of_xhtml_need_no_document_type():
    page = "<html xmlns='http://www.w3.org/1999/xhtml'><p property='dc:title'>A&nbsp;&eacute;&lt;</p></html>"
    [quad] = extracted(page, "application/xhtml+xml")[0]
    assert quad.object.value == "A\u00a0é<"


def test_members_of_a_list_below_a_named_object_belong_to_it():
    members = "<b property=dc:title inlist>1</b><b property=dc:title inlist>2</b>"
    quads, _ = extracted(f"<div rel=dc:hasPart resource=#x>{members}</div>")
    assert canonical(quads) == turtle("<> dc:hasPart <#x> . <#x> dc:title ('1' '2') .")


def test_what_is_no_iri_is_told_and_the_rest_is_read():
    quads, problems = extracted("<a property=dc:source href='http://[x'>A</a><p property=dc:title>B</p>")
    assert canonical(quads) == turtle("<> dc:source 'A' ; dc:title 'B' .")
    [problem] = problems
    assert not unsaid(problem, "RDFa", "'http://[x'", "IRI")


def test_a_comment_in_an_xml_literal_is_kept():
    page = "<p property=dc:title datatype=rdf:XMLLiteral><!-- a --><br></p>"
    [quad] = extracted(page)[0]
    assert quad.object.value == '<!-- a --><br xmlns="http://www.w3.org/1999/xhtml"/>'


ROW = " ".join(f"dc:t{number}" for number in range(5000))


@pytest.mark.parametrize(
    "page",
    [
        f"<div rel='{ROW}'>" + "<a href=x></a>" * 5000,
        f"<div inlist rel='{ROW}'>" + "<a href=x></a>" * 5000,
        f"<p property='{ROW}'>" + "x" * 1_000_000,
        "".join(
            f"<i resource=_:a{n} typeof=rdfa:Pattern><link property=rdfa:copy resource=_:a{n + 1}></i>"
            for n in range(2000)
        ),
    ],
    ids=["relations", "lists", "literals", "patterns"],
)
def test_a_page_that_multiplies_what_it_says_is_cut_off(page):
    quads, problems = extracted(page)
    [problem] = problems
    assert not unsaid(problem, "RDFa", "16")
    assert len(quads) < len(page)
