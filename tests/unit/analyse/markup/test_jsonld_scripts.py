"""JSON-LD in the scripts of a page, as broken as it comes."""

import pytest

from tamias.analyse.markup.jsonld import extract
from tamias.analyse.markup.page import MarkupPage, is_open
from tamias.model.finding import Quads
from tamias.settings import AnalyseSettings

NODE = '"@context": "https://schema.org", "@id": "http://s", "name": "Ann"'
STATEMENT = '<http://s> <http://schema.org/name> "Ann"'


def read(
    content, *, media_type="text/html", script_type="application/ld+json", before="", contexts=None, **options
):
    if media_type == "text/html":
        data = f'<html><head>{before}\n<script type="{script_type}">{content}</script></head></html>'
    else:
        data = (
            f'<html xmlns="http://www.w3.org/1999/xhtml"><head>{before}'
            f'<script type="{script_type}">{content}</script></head></html>'
        )
    page = MarkupPage(
        data.encode(), url="http://a/p", base="http://a/base/", media_type=media_type, contexts=contexts
    )
    assert is_open("jsonld", data.lower().encode())
    quads, problems = [], []
    for finding in extract(page, **options):
        if isinstance(finding, Quads):
            quads += map(str, finding.quads)
        else:
            problems.append(finding)
    return quads, problems


@pytest.mark.parametrize(
    "content",
    [
        f"{{{NODE}}}",
        f"\n\ufeff{{{NODE}}}\n",
        f"<!-- {{{NODE}}} -->",
        f"<!--\n{{{NODE}}}\n//-->",
        f"//<![CDATA[\n{{{NODE}}}\n//]]>",
        f"/*<![CDATA[*/ {{{NODE}}} /*]]>*/",
        f"<![CDATA[{{{NODE}}}]]>",
        f"{{{NODE}}};",
    ],
)
def test_what_is_wrapped_around_a_script_is_no_fault(content):
    assert read(content) == ([STATEMENT], [])


@pytest.mark.parametrize(
    "content",
    [
        f"{{{NODE},}}",
        f"[{{{NODE},}},]",
        f"{{{NODE}, // Ann\n}}",
        f"/* Ann */ {{{NODE}}}",
        f"{{{NODE}}}".replace('"', "&quot;"),
    ],
)
def test_what_is_clear_is_mended_and_told(content):
    quads, problems = read(content)
    assert (quads, len(problems)) == ([STATEMENT], 1)


def test_a_line_end_in_a_text_is_a_part_of_it():
    quads, problems = read('{"@context": "https://schema.org", "@id": "http://s", "name": "a\nb"}')
    assert quads == ['<http://s> <http://schema.org/name> "a\\nb"']
    assert len(problems) == 1


@pytest.mark.parametrize("between", ["", "\n", ",", ";\n"])
def test_two_objects_in_one_script_are_both_read(between):
    second = '{"@context": "https://schema.org", "@id": "http://t", "name": "Bob"}'
    quads, problems = read(f"{{{NODE}}}{between}{second}")
    assert quads == [STATEMENT, '<http://t> <http://schema.org/name> "Bob"']
    assert len(problems) == 1


@pytest.mark.parametrize(
    "script_type",
    ["application/ld+json;charset=utf-8", "APPLICATION/LD+JSON", " application/ld+json ; profile=x"],
)
def test_the_type_may_have_parameters_and_any_case(script_type):
    assert read(f"{{{NODE}}}", script_type=script_type) == ([STATEMENT], [])


def test_other_scripts_are_left_alone():
    assert read("{", script_type="application/ld+json2") == ([], [])


@pytest.mark.parametrize(
    "content",
    [f"{{{NODE}}}", f"<!-- {{{NODE}}} -->", f"//<![CDATA[\n{{{NODE}}}\n//]]>", f"<![CDATA[{{{NODE}}}]]>"],
)
def test_scripts_of_xhtml_are_read(content):
    assert read(content, media_type="application/xhtml+xml") == ([STATEMENT], [])


def test_references_are_relative_to_the_base_of_the_page():
    quads, _ = read('{"@id": "x", "http://p": {"@id": "y"}}')
    assert quads == ["<http://a/base/x> <http://p> <http://a/base/y>"]


def test_a_bad_script_does_not_hinder_the_others():
    quads, problems = read(f"{{{NODE}}}", before='<script type="application/ld+json">{"a" 1}</script>')
    assert quads == [STATEMENT]
    assert problems


def test_a_problem_has_its_line_in_the_page():
    _, problems = read(f'\n{{{NODE},\n "x": }}')
    assert (problems[0].line, problems[0].column) == (4, 7)


def test_a_context_that_is_missing_is_wanted():
    quads, [problem] = read('{"@context": "http://c/a", "p": 1}')
    assert (quads, problem.wants) == ([], "http://c/a")


def test_a_context_that_is_given_is_used():
    def contexts(_address):
        return b'{"@context": {"p": "http://p"}}'

    quads, problems = read('{"@context": "http://c/a", "@id": "http://s", "p": "x"}', contexts=contexts)
    assert (quads, problems) == (['<http://s> <http://p> "x"'], [])


def test_deep_json_is_refused():
    quads, [problem] = read("[" * 20_000, limits=AnalyseSettings())
    assert quads == []
    assert "limit analyse.json_depth" in problem.what


@pytest.mark.parametrize(
    "content", ["", " ", "null", "7", "{}", "[]", "<!-- -->", "not json", "{" * 100, '{"@id":']
)
def test_what_says_nothing_gives_no_statement(content):
    assert read(content)[0] == []
