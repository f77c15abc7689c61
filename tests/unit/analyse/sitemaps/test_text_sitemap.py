"""A sitemap in plain text has one address in each line."""

from functools import partial

import pytest

from tests.messages import unsaid


@pytest.fixture
def text(read):
    return partial(read, media_type="text/x-sitemap", url="http://a.example/sitemap.txt")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", " \n"])
def test_each_line_is_an_address_whatever_its_end(text, end):
    found = text(end.join(["http://a.example/1", "https://b.example/2"]))
    assert (found.pages, found.problems) == (["http://a.example/1", "https://b.example/2"], [])


@pytest.mark.parametrize(
    ("mark", "charset"), [("utf-8-sig", "utf-8"), ("utf-8-sig", None), ("utf-16", "utf-16")]
)
def test_a_byte_order_mark_is_passed_over(text, mark, charset):
    found = text("http://a.example/ü\n".encode(mark), charset=charset)
    assert (found.pages, found.problems) == (["http://a.example/%C3%BC"], [])


def test_text_that_was_found_to_be_plain_is_read_alike(text):
    assert text("http://a.example/1\n", media_type="text/plain").pages == ["http://a.example/1"]


def test_a_line_that_is_no_address_is_told_with_its_number(text):
    found = text("http://a.example/1\nhello\nhttp://a.example/2\n")
    assert found.pages == ["http://a.example/1", "http://a.example/2"]
    [problem] = found.problems
    assert (problem.line, unsaid(problem.what, "'hello'")) == (2, [])


def test_a_page_of_prose_tells_a_bounded_number_of_problems(text):
    found = text("no address here\n" * 100_000, max_errors=10)
    assert found.pages == []
    assert len(found.problems) == 11
    assert "99990 more errors" in found.problems[-1].what


def test_a_million_lines_are_read_up_to_the_limit(text):
    found = text("".join(f"http://a.example/{n}\n" for n in range(1_000_000)))
    assert (len(found.pages), found.pages[-1]) == (50_000, "http://a.example/49999")
    [problem] = found.problems
    assert "analyse.sitemap_urls" in problem.what
    assert problem.line == 50_001


def test_a_line_without_end_is_not_read_on(text):
    found = text("http://a.example/1\nhttp://" + "a" * 1_000_000)
    assert found.pages == ["http://a.example/1"]
    assert not unsaid(found.problems[0].what)
