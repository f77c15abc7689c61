"""Microformats on small pages; the public suite has the rest (tests/suites/test_microformats_suite.py)."""

import re
from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, Literal, NamedNode, RdfFormat, parse

from tamias.analyse.markup.page import MarkupPage, is_open
from tamias.features.microformats.items import microformats
from tamias.features.microformats.quads import (
    ADDRESSES,
    HAS_ALT,
    HAS_CHILD,
    HAS_ITEM,
    MAX_QUADS,
    MF,
    RDF_HTML,
    RELATIONS,
    extract,
)
from tamias.model.finding import Problem, Quads

URL = "http://example.org/people/"
TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


def page(text, media_type="text/html"):
    return MarkupPage(text.encode(), url=URL, base=URL, media_type=media_type)


def findings(text, media_type="text/html"):
    return list(extract(page(text, media_type)))


def quads(text, media_type="text/html"):
    return [quad for each in findings(text, media_type) if isinstance(each, Quads) for quad in each.quads]


def said(text, name):
    """The objects of one property, wherever it stands."""
    return [quad.object for quad in quads(text) if quad.predicate == NamedNode(MF + name)]


def items(text):
    return microformats(page(text).tree, base=URL, room=1_000_000)[0]["items"]


def is_asked(text):
    return is_open("microformats", text.encode())


def test_an_item_is_typed_and_belongs_to_its_page():
    found = quads('<p class="h-card">Ada</p>')
    item = next(quad.object for quad in found if quad.predicate == HAS_ITEM)
    assert {(quad.subject, quad.object) for quad in found if quad.predicate == TYPE} == {
        (item, NamedNode(MF + "h-card"))
    }


def test_the_name_of_an_item_that_does_not_say_it_is_its_text():
    assert said('<p class="h-card"> Ada </p>', "name") == [Literal("Ada")]


def test_addresses_are_iris_resolved_against_the_base():
    assert said('<a class="h-card" href="ada#me">Ada</a>', "url") == [NamedNode(URL + "ada#me")]


def test_a_url_property_that_is_no_address_is_text():
    assert said('<p class="h-card"><b class="p-url">none</b></p>', "url") == [Literal("none")]


def test_an_item_with_a_uid_is_named_by_it():
    found = quads('<p class="h-card"><data class="u-uid" value="http://example.org/#ada"></data></p>')
    assert found[0].object == NamedNode("http://example.org/#ada")


def test_embedded_content_is_html_and_text():
    objects = said('<p class="h-entry"><span class="e-content">a <a href="b">c</a></span></p>', "content")
    assert objects == [
        Literal('a <a href="http://example.org/people/b">c</a>', datatype=RDF_HTML),
        Literal("a c"),
    ]


def test_the_alternative_text_is_said_of_the_image():
    found = quads('<p class="h-card"><img class="u-photo" src="a.png" alt="Ada"></p>')
    assert [(quad.subject, quad.object) for quad in found if quad.predicate == HAS_ALT] == [
        (NamedNode(URL + "a.png"), Literal("Ada"))
    ]


def test_an_item_in_a_property_is_its_object():
    found = quads('<div class="h-entry"><p class="p-author h-card">Ada</p></div>')
    author = next(quad.object for quad in found if quad.predicate.value == MF + "author")
    assert any(quad.subject == author and quad.object == NamedNode(MF + "h-card") for quad in found)


def test_an_item_in_no_property_is_a_child():
    found = quads('<div class="h-feed"><p class="h-entry">One</p><p class="h-entry">Two</p></div>')
    assert len([quad for quad in found if quad.predicate == HAS_CHILD]) == 2


def test_version_one_is_read_by_its_own_names():
    text = '<p class="vcard"><a class="fn url" href="/ada">Ada</a> <b class="title">Countess</b></p>'
    assert items(text) == [
        {
            "type": ["h-card"],
            "properties": {
                "name": ["Ada"],
                "url": ["http://example.org/ada"],
                "job-title": ["Countess"],
            },
        }
    ]


def test_names_of_version_one_do_not_count_in_an_item_of_version_two():
    text = '<p class="h-card"><b class="p-name">Ada</b> <b class="title">Countess</b></p>'
    assert list(items(text)[0]["properties"]) == ["name"]


def test_a_time_without_a_date_has_the_date_before_it():
    text = """<p class="h-event"><time class="dt-start">2026-03-01 10:00</time>
        <time class="dt-end">12:00</time></p>"""
    assert items(text)[0]["properties"]["end"] == ["2026-03-01 12:00"]


@pytest.mark.parametrize(
    ("pieces", "together"),
    [
        (["2026-03-01", "7pm"], "2026-03-01 19:00"),
        (["2026-03-01", "12:30 a.m.", "+01:00"], "2026-03-01 00:30+0100"),
        (["2026-060"], "2026-060"),
    ],
)
def test_a_date_in_pieces_is_put_together(pieces, together):
    values = "".join(f'<b class="value">{piece}</b>' for piece in pieces)
    assert items(f'<p class="h-event"><i class="dt-start">{values}</i></p>')[0]["properties"]["start"] == [
        together
    ]


def test_what_a_template_holds_is_not_said():
    assert items('<template><p class="h-card">Ada</p></template>') == []


def test_the_heights_of_a_style_sheet_are_no_items():
    assert quads('<div class="h-full w-full"><p class="h-10">Ada</p></div>') == []


def test_pages_in_xhtml_are_read_too():
    text = '<html xmlns="http://www.w3.org/1999/xhtml"><body><p class="h-card">Ada</p></body></html>'
    assert any(quad.object == Literal("Ada") for quad in quads(text, "application/xhtml+xml"))


def test_relations_that_are_microformats_are_said_of_the_page():
    found = quads('<a rel="license nofollow" href="/terms">Terms</a>')
    assert [str(quad) for quad in found] == [f"<{URL}> <{MF}rel_license> <http://example.org/terms>"]


@pytest.mark.parametrize(
    "text", ['<p class="post vcard">', "<p class=h-card>", '<a rel="me">', '<p class="x h-8-vendor-card">']
)
def test_the_gate_lets_marked_pages_in(text):
    assert is_asked(text)


@pytest.mark.parametrize("name", ["home page", "h-10 w-10", "h-full", "h-screen flex", "graph-node"])
def test_the_gate_keeps_ordinary_pages_out(name):
    assert not is_asked(f'<body class="{name}"><h1>News</h1><a rel="nofollow" href="/x">x</a></body>')


def test_an_included_part_counts_where_it_is_included():
    text = """<p class="vcard"><b class="fn">Ada</b> <a class="include" href="#firm">firm</a></p>
        <p id="firm"><b class="org">Engines</b></p>"""
    assert items(text)[0]["properties"]["org"] == ["Engines"]


def test_a_part_that_includes_itself_ends():
    text = '<div id="a" class="vcard"><b class="fn">Ada</b><a class="include" href="#a">a</a></div>'
    assert items(text)[0]["properties"] == {"name": ["Ada"]}


def test_text_repeated_without_end_is_stopped_and_told():
    depth = 200
    text = "<div class='h-card'>" + "<div class='p-name'>" * depth + "x" * 40_000
    assert any(isinstance(each, Problem) and "repeat" in each.what for each in findings(text))


def test_items_in_many_properties_of_each_other_are_stopped_and_told():
    many = " ".join(f"p-{letter}" for letter in "abcdefghij")
    text = f"<div class='h-card {many}'>" * 30
    found = findings(f"<div class='h-card'>{text}")
    assert sum(len(each.quads) for each in found if isinstance(each, Quads)) <= MAX_QUADS


def test_items_nested_beyond_measure_are_left_out():
    found = quads("<div class='h-card p-author'>" * 250)
    assert 40 <= sum(quad.object == NamedNode(MF + "h-card") for quad in found) <= 42


@pytest.fixture
def manual():
    return (Path(__file__).resolve().parents[4] / "docs" / "microformats.md").read_text()


@pytest.mark.parametrize(
    ("names", "paragraph"),
    [(ADDRESSES, "The properties for addresses are"), (RELATIONS, "The relations are")],
)
def test_the_manual_names_what_the_mapping_treats_as_addresses(manual, names, paragraph):
    text = manual.partition(paragraph)[2].partition(". ")[0]
    assert set(re.findall(r"`([a-z-]+)`", text)) == names


def test_the_example_of_the_manual_is_true(manual):
    html = manual.partition("```html\n")[2].partition("```")[0]
    turtle = manual.partition("```turtle\n")[2].partition("```")[0]
    url = "https://example.org/people"
    example = MarkupPage(html.encode(), url=url, base=url, media_type="text/html")
    found = Dataset(quad for each in extract(example) for quad in each.quads)
    wanted = Dataset(parse(f"@prefix mf: <{MF}> .\n{turtle}".encode(), format=RdfFormat.TURTLE))
    for dataset in (found, wanted):
        dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    assert found == wanted
