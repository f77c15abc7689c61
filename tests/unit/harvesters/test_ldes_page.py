"""What stands on one page of an event stream."""

from datetime import UTC, datetime

import pytest
from pyoxigraph import RdfFormat, parse

from tamias.features.ldes.harvester import Lead, tree_page

URL = "http://a.example/page"
PREFIXES = """
@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> .
@prefix : <http://a.example/v#> .
@prefix dct: <http://purl.org/dc/terms/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def page(turtle, **told):
    return tree_page(quads(turtle), [URL], **told)


def quads(text):
    return list(parse(PREFIXES + text, format=RdfFormat.TRIG, base_iri=URL))


def noon(day):
    return datetime(2024, 1, day, 12, tzinfo=UTC)


def relation(name, value, path=":t"):
    return f"[ a tree:{name}Relation ; tree:path {path} ; tree:value '{value}' ; tree:node <2> ]"


def said(member):
    return {
        str(quad.object) for quad in member.quads if quad.predicate.value.startswith("http://a.example/v#")
    }


def test_members_have_their_statements_and_those_of_what_they_alone_refer_to():
    [member] = page(
        "</s> tree:member </m> . </m> :a 1 ; :b [ :c 2 ; :d </n> ] . </n> :e 3 . </o> :f 4 ."
    ).members
    assert {'"1"', '"2"', '"3"', '"4"'} & {text.partition("^")[0] for text in said(member)} == {
        '"1"',
        '"2"',
        '"3"',
    }


def test_what_two_members_refer_to_is_the_page_s_own():
    read = page("</s> tree:member </m>, </n> . </m> :a [ :b </o> ] . </n> :a </o> . </o> :c [ :d 4 ] .")
    assert {quad.predicate.value[-1] for quad in read.own} == {"c", "d"}


def test_members_that_refer_to_each_other_stay_apart():
    read = page("</s> tree:member </m>, </n> . </m> :a </n> . </n> :a </m> .")
    assert [said(member) for member in read.members] == [{"<http://a.example/n>"}, {"<http://a.example/m>"}]


def test_a_graph_named_like_a_member_is_that_member_s():
    [member] = page("</s> tree:member </m> . </m> { </x> :a 1 . } </y> :b 2 .").members
    assert len(member.quads) == 2


def test_the_description_of_the_stream_is_the_page_s_own():
    read = page("</s> tree:member </m> ; dct:title 'S' ; tree:view <> . </m> :a </s> .")
    assert len(read.own) == 2


def test_a_member_is_known_again_whatever_its_blank_nodes_are_called():
    one, other = (page(f"</s> tree:member _:{name} . _:{name} :a 1 .").members[0] for name in "xy")
    assert one.digest == other.digest


def test_a_member_that_says_something_else_is_another():
    one, other = (page(f"</s> tree:member </m> . </m> :a {value} .").members[0] for value in (1, 2))
    assert one.digest != other.digest


def test_members_are_dated_by_the_stream_s_own_property():
    read = page("</s> ldes:timestampPath :t ; tree:member </m> . </m> :t '2024-01-02T13:00:00+01:00' .")
    assert (read.dated_by, read.members[0].moment) == ("http://a.example/v#t", noon(2))


@pytest.mark.parametrize(
    ("turtle", "leads"),
    [
        ("<> tree:relation [ tree:node <2> ] .", [Lead("http://a.example/2")]),
        ("<> tree:relation [ tree:node <2#x> ], [ tree:node <> ] .", [Lead("http://a.example/2")]),
        ("<> tree:relation [ tree:node <2> ] . <other> tree:relation [ tree:node <3> ] .",
         [Lead("http://a.example/2")]),
        ("<other> tree:relation [ tree:node <3> ] .", [Lead("http://a.example/3")]),
        (f"<> tree:relation {relation('LessThan', '2024-01-02T12:00:00Z')} .",
         [Lead("http://a.example/2", noon(2))]),
        (f"<> tree:relation {relation('LessThanOrEqualTo', '2024-01-02T12:00:00')} .",
         [Lead("http://a.example/2", noon(2), inclusive=True)]),
        (f"<> tree:relation {relation('GreaterThan', '2024-01-01T12:00:00Z')},"
         f" {relation('LessThan', '2024-01-03T12:00:00Z')} .",
         [Lead("http://a.example/2", noon(3))]),
        (f"<> tree:relation {relation('LessThan', '2024-01-02T12:00:00Z', ':other')} .",
         [Lead("http://a.example/2")]),
        (f"<> tree:relation {relation('LessThan', 'soon')} .",
         [Lead("http://a.example/2")]),
        ("<> tree:relation [ tree:node 'literal' ], [ tree:node <urn:x> ], [] .", []),
        ("</s> tree:view </b>, </a> .", [Lead("http://a.example/a")]),
        ("</s> tree:view </b>, </a> . </b> a ldes:EventSource .", [Lead("http://a.example/b")]),
        ("</s> tree:view </b>, <> .", []),
    ],
)  # fmt: skip
def test_a_page_leads_to_others(turtle, leads):
    assert page(turtle, dated_by="http://a.example/v#t").leads == leads


@pytest.mark.parametrize(
    ("lead", "older"),
    [
        (Lead(URL), False),
        (Lead(URL, noon(1)), True),
        (Lead(URL, noon(2)), True),
        (Lead(URL, noon(2), inclusive=True), False),
        (Lead(URL, noon(3)), False),
    ],
)
def test_behind_a_bound_of_the_past_nothing_is_new(lead, older):
    assert lead.is_before(noon(2)) is older


@pytest.mark.parametrize(
    ("turtle", "immutable"),
    [
        ("<> ldes:immutable true .", True),
        ("<> ldes:immutable false .", False),
        ("</x> ldes:immutable true .", False),
    ],
)
def test_a_page_can_say_that_it_will_not_change(turtle, immutable):
    assert page(turtle).immutable is immutable


def test_a_long_chain_that_all_members_share_is_passed_twice_at_most():
    chain = "".join(f"_:n{n} :next _:n{n + 1} .\n" for n in range(3000))
    members = "".join(f"</s> tree:member </m{n}> . </m{n}> :a _:n0 .\n" for n in range(3000))
    assert len(page(members + chain).own) == 3000
