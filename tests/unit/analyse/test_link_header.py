"""Link headers: how they are read, and which of their links are followed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamias.analyse.links.discovery import MOST_LINKS, discovery_links, json_ld_context, parsed_links

BASE = "http://a.example/d/page"


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("<x>; rel=next", [("x", ("next",))]),
        ('<x>;rel="Next  PREV"', [("x", ("next", "prev"))]),
        ("<x>; rel=a, <y>; rel=b", [("x", ("a",)), ("y", ("b",))]),
        ("<x>; rel=a; rel=b", [("x", ("a",))]),
        ("<x>", [("x", ())]),
        ("<>; rel=a", [("", ("a",))]),
        ("< x >  ;  rel = a", [("x", ("a",))]),
        ('<x>; title="a, <b>; rel=c"; rel=d', [("x", ("d",))]),
        ('<x>; title="\\"q\\""; rel=d', [("x", ("d",))]),
        ("<x>;;; rel=a;", [("x", ("a",))]),
        ("<x>; flag; rel=a", [("x", ("a",))]),
        ('<x>; title="unclosed; rel=a, <y>; rel=b', [("x", ()), ("y", ("b",))]),
        ("junk, <x>; rel=a junk <y>; rel=b", [("x", ("a",)), ("y", ("b",))]),
        ("<http://b.example/,;=>; rel=a", [("http://b.example/,;=", ("a",))]),
        ("no link at all", []),
        ("<never closed", []),
        ("", []),
    ],
)
def test_links_are_read_with_their_relations(text, links):
    assert [(link.target, link.relations) for link in parsed_links(text)] == links


def test_the_type_of_a_link_is_bare():
    [link] = parsed_links("<x>; type=\"Text/Turtle; charset=utf-8\"; title*=UTF-8''x")
    assert (link.media_type, link.parameters["title*"]) == ("text/turtle", "UTF-8''x")


def test_no_more_links_are_read_than_allowed():
    assert len(parsed_links("<x>; rel=a," * 5000)) == MOST_LINKS


@given(st.text(alphabet='<>;,="\\ arel'))
def test_any_text_can_be_read(text):
    assert isinstance(parsed_links(text), list)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("<m.ttl>; rel=describedby", [(None, ["m.ttl"])]),
        ("<m>; rel=alternate; type=text/turtle", [(None, ["m"])]),
        ("<m>; rel=alternate; type=application/ld+json", [(None, ["m"])]),
        ("<fr>; rel=alternate; hreflang=fr", []),
        ("<feed>; rel=alternate; type=application/rss+xml", []),
        ("<c>; rel=canonical", [(None, ["c"])]),
        ("<c>; rel=canonical; anchor=other", []),
        ("<s>; rel=linkset; type=application/linkset+json", [(None, ["s"])]),
        ("</.well-known/api-catalog>; rel=api-catalog", [(None, ["/.well-known/api-catalog"])]),
        ("<i>; rel=item, <j>; rel=item, <i>; rel=item", [(None, ["i", "j"])]),
        ("<n>; rel=next, <p>; rel=prev", [(None, ["n", "p"])]),
        ("<s.xml>; rel=sitemap", [("sitemap", ["s.xml"])]),
        ("<q>; rel=http://rdfs.org/ns/void#sparqlEndpoint", [("sparql", ["q"])]),
        ("<q>; rel=item, <s.xml>; rel=sitemap", [(None, ["q"]), ("sitemap", ["s.xml"])]),
        ("<l>; rel=license, <t>; rel=type, <s>; rel=stylesheet", []),
        ('<c>; rel="http://www.w3.org/ns/json-ld#context"', []),
        ("<>; rel=item", []),
    ],
)
def test_signposts_are_followed_and_the_rest_is_not(value, found):
    assert [(each.kind, each.references) for each in discovery_links([("LINK", value)], BASE)] == found


def test_several_headers_are_read_as_one():
    headers = [("Link", "<a>; rel=item"), ("Content-Type", "<b>; rel=item"), ("link", "<c>; rel=item")]
    [links] = discovery_links(headers, BASE)
    assert (links.references, links.base) == (["a", "c"], BASE)


@pytest.mark.parametrize(("count", "context"), [(0, None), (1, "c.jsonld"), (2, None)])
def test_a_json_ld_context_must_be_the_only_one(count, context):
    header = ("Link", '<c.jsonld>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"')
    assert json_ld_context([header] * count) == context
