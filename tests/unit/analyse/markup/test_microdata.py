"""Microdata where the public suite is silent."""

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from tamias.analyse.markup.page import MarkupPage
from tamias.features.markup import microdata
from tamias.model.finding import Problem, Quads
from tests.messages import unnamed

URL = "http://a.example/d/page"


def extracted(page):
    page = page.encode() if isinstance(page, str) else page
    findings = list(microdata.extract(MarkupPage(page, url=URL, base=URL, media_type="text/html")))
    quads = [quad for finding in findings if isinstance(finding, Quads) for quad in finding.quads]
    return quads, [finding.what for finding in findings if isinstance(finding, Problem)]


def canonical(quads):
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def turtle(text):
    prefixes = "@prefix s: <https://schema.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> ."
    return canonical(parse(prefixes + text, format=RdfFormat.TURTLE, base_iri=URL))


THING = "itemscope itemtype=https://schema.org/Thing"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (f"<p {THING}><b itemprop=name lang=de>A</b>", "[] a s:Thing ; s:name 'A'@de"),
        (f"<html lang=en><p {THING}><b itemprop=name>A</b>", "[] a s:Thing ; s:name 'A'@en"),
        (f"<p {THING}><b itemprop=price content='9.5'>9,5 €</b>", "[] a s:Thing ; s:price '9.5'"),
        (f"<p {THING}><a itemprop=url>no address</a>", "[] a s:Thing ; s:url 'no address'"),
        (f"<p {THING}><a itemprop=url href='x y'>A</a>", "[] a s:Thing ; s:url <http://a.example/d/x%20y>"),
        (
            f"<p {THING} itemid=#x><b itemprop='name alternateName'>A</b>",
            "<#x> a s:Thing ; s:name 'A' ; s:alternateName 'A'",
        ),
        (f"<p {THING}><b itemprop=http://x.example/p>A</b>", "[] a s:Thing ; <http://x.example/p> 'A'"),
        (
            f"<p {THING}><link itemprop=additionalType href=http://x.example/T>",
            "[] a s:Thing, <http://x.example/T> ; s:additionalType <http://x.example/T>",
        ),
        ("<b itemprop=name>of nothing</b><p itemscope></p>", ""),
        ("<p itemscope itemtype='not an address'><b itemprop=name>A</b>", "[] <#name> 'A'"),
    ],
)
def test_statements_are_those_of_the_markup(page, expected):
    quads, problems = extracted(page)
    assert (canonical(quads), problems) == (turtle(f"{expected} ." if expected else ""), [])


def test_an_item_in_two_others_is_one():
    page = (
        f"<p {THING} itemref=shared></p><p {THING} itemref=shared></p>"
        f"<div id=shared itemprop=about {THING}><b itemprop=name>A</b></div>"
    )
    quads, _ = extracted(page)
    assert canonical(quads) == turtle(
        "_:a a s:Thing ; s:name 'A' . [] a s:Thing ; s:about _:a . [] a s:Thing ; s:about _:a ."
    )


def test_an_item_that_is_a_part_of_itself_is_told():
    page = "<p itemscope><b id=x itemprop=p itemscope itemref=x></b></p>"
    quads, problems = extracted(page)
    [problem] = problems
    assert (len(quads), unnamed(problem, "Microdata", "itemref")) == (1, [])


def test_a_long_chain_of_references_is_followed_to_its_end():
    chain = "".join(f"<p itemscope itemprop=x id=i{n} itemref=i{n + 1}></p>" for n in range(5000))
    quads, problems = extracted(chain + "<p itemscope itemref=i0></p>")
    assert (len(quads), problems) == (5000, [])


@pytest.mark.parametrize("value", ["<b itemprop=x>y</b>", "<a itemprop=x href='http://[y'></a>"])
def test_a_page_that_multiplies_what_it_says_is_cut_off(value):
    page = f"<div id=a>{value * 5000}</div>" + "<p itemscope itemref=a></p>" * 5000
    _, problems = extracted(page)
    assert unnamed(problems[0], "Microdata", "16 times") == []
