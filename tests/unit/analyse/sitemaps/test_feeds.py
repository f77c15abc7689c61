"""RSS and Atom become links and the dates of their change."""

from functools import partial

import pytest

from tamias.model.site import Hint

DAY = 24 * 3_600_000


@pytest.fixture
def rss(read):
    return partial(read, media_type="application/rss+xml")


@pytest.fixture
def atom(read):
    return partial(read, media_type="application/atom+xml")


def channel(*items):
    return f'<rss version="2.0"><channel>{"".join(items)}</channel></rss>'


def feed(*entries, more=""):
    return f'<feed xmlns="http://www.w3.org/2005/Atom" {more}>{"".join(entries)}</feed>'


def test_the_items_of_rss_have_links_and_dates(rss):
    found = rss(
        channel(
            "<title>x</title><link>http://a.example/</link>",
            "<item><link>http://a.example/1</link><pubDate>Fri, 02 Jan 1970 00:00:00 GMT</pubDate></item>",
            "<item><title>no date</title><link> /2 </link></item>",
        )
    )
    assert found.pages == ["http://a.example/", "http://a.example/1", "http://a.example/2"]
    assert found.hints == [Hint(url="http://a.example/1", lastmod_ms=DAY)]


def test_an_enclosure_is_a_link(rss):
    found = rss(
        channel('<item><link>/1</link><enclosure url="/1.ttl" type="text/turtle" length="9"/></item>')
    )
    assert found.pages == ["http://a.example/1", "http://a.example/1.ttl"]


@pytest.mark.parametrize(
    ("guid", "pages"),
    [
        ("<guid>http://a.example/1</guid>", ["http://a.example/1"]),
        ('<guid isPermaLink="true">http://a.example/1</guid>', ["http://a.example/1"]),
        ('<guid isPermaLink="false">tag-1</guid>', []),
        ("<link>/2</link><guid>http://a.example/1</guid>", ["http://a.example/2"]),
    ],
)
def test_a_guid_stands_for_a_missing_link_unless_it_says_it_is_none(rss, guid, pages):
    assert rss(channel(f"<item>{guid}</item>")).pages == pages


def test_entities_of_html_that_nobody_declared_do_not_end_a_feed(rss):
    found = rss(channel("<item><title>a&nbsp;b &eacute;</title><link>/1</link></item>"))
    assert (found.pages, found.problems) == (["http://a.example/1"], [])


def test_a_document_type_is_passed_over(rss):
    doctype = '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://a.example/rss-0.91.dtd">'
    assert rss(doctype + channel("<item><link>/1</link></item>")).pages == ["http://a.example/1"]


def test_the_entries_of_atom_have_links_and_the_date_of_their_update(atom):
    found = atom(
        feed(
            '<link rel="self" href="/feed"/><link href="/"/><link rel="next" href="/feed?page=2"/>',
            '<entry><id>urn:x</id><link href="http://a.example/1"/><published>1970-01-01T00:00:00Z</published>'
            "<updated>1970-01-02T00:00:00Z</updated></entry>",
        )
    )
    assert found.pages == ["http://a.example/", "http://a.example/feed?page=2", "http://a.example/1"]
    assert found.hints == [Hint(url="http://a.example/1", lastmod_ms=DAY)]


def test_links_of_atom_are_relative_to_the_base_around_them(atom):
    found = atom(
        feed(
            '<entry xml:base="d/"><link href="1"/><link xml:base="/e/" href="2"/><content src="3"/></entry>',
            more='xml:base="http://b.example/c/"',
        )
    )
    assert found.pages == ["http://b.example/c/d/1", "http://b.example/e/2", "http://b.example/c/d/3"]


def test_links_to_the_machinery_of_a_feed_are_left_out(atom):
    links = "".join(f'<link rel="{rel}" href="/{rel}"/>' for rel in ("edit", "replies", "hub", "alternate"))
    assert atom(feed(f"<entry>{links}</entry>")).pages == ["http://a.example/alternate"]


def test_a_date_that_makes_no_sense_is_told(rss):
    found = rss(channel("<item><link>/1</link><pubDate>Friday</pubDate></item>"))
    assert (found.pages, found.hints) == (["http://a.example/1"], [])
    assert "'Friday'" in found.problems[0].what
