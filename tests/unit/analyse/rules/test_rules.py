"""What a rule can say, on the smallest pages that show it."""

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from tamias.features.scraping import apply, book
from tamias.features.scraping.book import load_rules
from tamias.model.finding import Links, Problem, Quads
from tests.messages import unnamed

URL = "https://example.org/item/7?x=1"
TITLE = "http://purl.org/dc/terms/title"


def typed(text, name):
    return Literal(text, datatype=NamedNode("http://www.w3.org/2001/XMLSchema#" + name))


@pytest.fixture
def findings(tmp_path):
    """`findings(rule, page)`: what the lines of one `[[page]]` make of a page."""

    def found(rule, page, url=URL):
        path = tmp_path / "rules.toml"
        path.write_text(f'hosts = "example.org"\n[[page]]\nmatch = "*"\n{rule}\n')
        return list(load_rules(path).extract(url, page.encode()))

    return found


@pytest.fixture
def titles(findings):
    """The objects of dct:title under a rule for it."""

    def found(value, page):
        return [
            quad.object
            for each in findings(f'"dct:title" = {value}', page)
            if isinstance(each, Quads)
            for quad in each.quads
            if quad.predicate.value == TITLE
        ]

    return found


def quads(found):
    return [quad for each in found if isinstance(each, Quads) for quad in each.quads]


def problems(found):
    return [each.what for each in found if isinstance(each, Problem)]


@pytest.mark.parametrize(
    ("value", "page", "wanted"),
    [
        ('"p"', "<p> a\n <b>b</b></p><p>c</p>", [Literal("a b"), Literal("c")]),
        ('"p@title"', '<p title="t">x</p><p>no</p>', [Literal("t")]),
        ('"a@href"', "<a href=../b>x</a>", [NamedNode("https://example.org/b")]),
        ('{ select = "a@href", iri = false }', "<a href=../b>x</a>", [Literal("../b")]),
        ('{ select = "p", iri = true }', "<p>b c</p>", [NamedNode("https://example.org/item/b%20c")]),
        ('{ select = "p", prefix = "urn:x:", iri = true }', "<p>7</p>", [NamedNode("urn:x:7")]),
        ('{ select = "p", prefix = "{page}#", iri = true }', "<p>7</p>", [NamedNode(URL + "#7")]),
        ('{ select = "p", lang = "de" }', "<p>Hut</p>", [Literal("Hut", language="de")]),
        ('{ select = "p", datatype = "xsd:gYear" }', "<p>1901</p>", [typed("1901", "gYear")]),
        ('{ select = "p", split = ";" }', "<p>a; b;</p>", [Literal("a"), Literal("b")]),
        ('{ select = "p", after = ":", before = "(" }', "<p>By: Ada (1815)</p>", [Literal("Ada")]),
        ('{ select = "p", first = true }', "<p></p><p>a</p><p>b</p>", [Literal("a")]),
        ('{ select = "p", number = true }', "<p>1,234 of them</p>", [Literal(1234)]),
        ('{ select = "p", number = "," }', "<p>1.234,50 t</p>", [typed("1234.50", "decimal")]),
        ('{ select = "p", date = "%d.%m.%Y" }', "<p>3.2.2026</p>", [typed("2026-02-03", "date")]),
        ('{ constant = "a" }', "", [Literal("a")]),
        ('{ constant = "dct:x", iri = true }', "", [NamedNode("http://purl.org/dc/terms/x")]),
        ('{ constant = "{host} {last}" }', "", [Literal("example.org 7")]),
        ("5", "", [Literal(5)]),
        ("2026-02-03", "", [typed("2026-02-03", "date")]),
        ('["h1", "h2"]', "<h2>b</h2><h1>a</h1>", [Literal("a"), Literal("b")]),
    ],
)  # fmt: skip
def test_a_value_is_made_as_its_rule_says(titles, value, page, wanted):
    assert titles(value, page) == wanted


def test_a_list_keeps_its_order(findings):
    found = quads(findings('"dct:title" = { select = "li", list = true }', "<li>b</li><li>a</li>"))
    assert [str(quad.object) for quad in found if quad.predicate.value.endswith("#first")] == ['"b"', '"a"']


def test_subjects_are_numbered(findings):
    rule = 'each = "li"\nsubject = "{page}#{n}"\n"dct:title" = "."'
    assert [quad.subject.value for quad in quads(findings(rule, "<li>a</li><li>b</li>"))] == [
        URL + "#1",
        URL + "#2",
    ]


def test_a_nested_subject_without_a_name_is_a_blank_node(findings):
    found = quads(findings('[page."dct:creator"]\n"foaf:name" = "b"', "<b>Ada</b>"))
    assert isinstance(found[-1].object, BlankNode)
    assert found[-1].object == found[0].subject


def test_a_subject_about_which_the_page_says_nothing_is_not_written(findings):
    assert findings('type = "dcat:Dataset"\n"dct:title" = "h1"\n"dct:type" = { constant = "x" }', "<p>") == []


def test_constants_alone_are_written(findings):
    assert len(quads(findings('type = "dcat:Dataset"', "<p>"))) == 1


def test_relative_addresses_follow_the_base_of_the_page(titles):
    assert titles('"a@href"', '<base href="/b/"><a href="c">x</a>') == [NamedNode("https://example.org/b/c")]


@pytest.mark.parametrize(
    ("value", "page", "names"),
    [
        ('{ select = "p", number = true }', "<p>none</p>", ["rules.toml:4", "number", "'none'"]),
        ('{ select = "p", date = "%Y" }', "<p>x</p>", ["rules.toml:4", "'x'", "date", "%Y"]),
    ],
)
def test_a_text_that_does_not_fit_is_told_with_the_line_of_its_rule(findings, value, page, names):
    [problem] = problems(findings(f'"dct:title" = {value}', page))
    assert not unnamed(problem, *names)


@pytest.mark.parametrize(
    ("url", "is_for"),
    [
        ("https://example.org/dataset/a", True),
        ("https://example.org/dataset/a?b=c", True),
        ("https://www.example.org/dataset/a", True),
        ("https://example.org/dataset/a/edit", False),
        ("https://example.org/about", False),
        ("https://notexample.org/dataset/a", False),
        ("https://example.org.evil.test/dataset/a", False),
    ],
)
def test_a_rule_is_for_the_pages_that_fit_its_patterns(tmp_path, url, is_for):
    path = tmp_path / "rules.toml"
    path.write_text('hosts = "*.example.org"\n[[page]]\nmatch = "/dataset/*"\nexcept = "*/edit"\n')
    assert load_rules(path).applies(url) == is_for


def test_a_pattern_of_many_stars_takes_no_time_to_speak_of():
    from tamias.features.scraping.book import matches

    assert not matches("/" + "*a" * 50 + "b", "/" + "a" * 100_000)


def test_links_to_follow_are_told(findings):
    found = findings(
        'follow = [".next", "button@data-to"]', '<a class=next href="?p=2">2</a><button data-to="/x">'
    )
    assert found == [Links(["?p=2", "/x"], URL)]


def test_numbered_pages_are_told_by_the_first_alone(findings):
    rule = 'paginate = { parameter = "p", last = ".last" }'
    page = "<b class=last>page 3 of 3</b>"
    assert findings(rule, page) == [Links([f"{URL}&p=2", f"{URL}&p=3"], URL)]
    assert findings(rule, page, url=URL + "&p=2") == []


def test_a_portal_may_ask_that_only_its_links_be_followed(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text('hosts = "example.org"\n[[page]]\nmatch = "/list"\nfollow = "a"\nfollow_only = true\n')
    rules = load_rules(path)
    assert rules.narrows("https://example.org/list")
    assert not rules.narrows("https://example.org/other")


def test_matches_beyond_the_limit_are_told(findings):
    found = findings('"dct:title" = "p"', "<p>a" * (apply.MAX_MATCHES + 1))
    [problem] = problems(found)
    assert unnamed(problem, "p: ", apply.MAX_MATCHES + 1, 1000) == []


def test_statements_beyond_the_limit_are_told(findings):
    values = ", ".join(f'{{ select = "i", prefix = "{number} " }}' for number in range(25))
    found = findings(f'"dct:title" = [{values}]', "".join(f"<i>{number}</i>" for number in range(1000)))
    assert len(quads(found)) == apply.MAX_QUADS
    assert unnamed(problems(found)[0], apply.MAX_QUADS) == []


def test_text_read_over_and_over_is_stopped_and_told(findings):
    page = "<div>" * 300 + "x" * 40_000
    assert "8000000 characters" in problems(findings('"dct:title" = "div"', page))[0]


def test_selectors_that_count_are_not_tried_on_pages_of_many_tags(findings):
    page = "<i>x</i>" * (book.MAX_TAGS_COUNTED // 2 + 1)
    assert "count siblings" in problems(findings('"dct:title" = "i:nth-child(2)"', page))[0]


def test_bytes_that_are_no_text_are_no_danger(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text('hosts = "example.org"\n[[page]]\nmatch = "*"\n"dct:title" = ["p", "p@title"]\n')
    found = list(load_rules(path).extract(URL, b'<p title="\xff">\xff\xfe\xed\xa0\x80&#xD800;&#0;</p>'))
    assert len(quads(found)) >= 1
