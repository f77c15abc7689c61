"""Sitemaps and indexes become links and hints, in whatever spelling the Web has them."""

import gzip

import pytest

from tamias.content.containers.documents import documents
from tamias.model.capture import Body
from tamias.model.site import Hint

PROTOCOL = "http://www.sitemaps.org/schemas/sitemap/0.9"
DAY = 24 * 3_600_000


def urlset(*entries, attributes=f'xmlns="{PROTOCOL}"'):
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {attributes}>{"".join(entries)}</urlset>'


def url(loc, more=""):
    return f"<url><loc>{loc}</loc>{more}</url>"


def test_every_field_of_an_entry_is_read(read):
    more = "<lastmod>1970-01-02</lastmod><changefreq>Monthly</changefreq><priority>0.8</priority>"
    found = read(urlset(url("http://a.example/", more)))
    assert found.pages == ["http://a.example/"]
    assert found.hints == [Hint(url="http://a.example/", lastmod_ms=DAY, changefreq="monthly", priority=0.8)]
    assert found.problems == []


def test_an_entry_without_more_gives_no_hint(read):
    found = read(urlset(url("http://a.example/b")))
    assert (found.pages, found.hints, found.beyond) == (["http://a.example/b"], [], [])


@pytest.mark.parametrize(
    ("loc", "page"),
    [
        ("\n  http://a.example/b \n", "http://a.example/b"),
        ("<![CDATA[http://a.example/?b=1&c=2]]>", "http://a.example/?b=1&c=2"),
        ("http://a.example/?b=1&amp;c=&#50;", "http://a.example/?b=1&c=2"),
        ("/b", "http://a.example/b"),
        ("http://a.example/grüße#top", "http://a.example/gr%C3%BC%C3%9Fe"),
    ],
)
def test_an_address_is_trimmed_unescaped_and_made_absolute(read, loc, page):
    assert read(urlset(url(loc))).pages == [page]


@pytest.mark.parametrize(
    "sitemap",
    [
        urlset(url("http://a.example/b"), attributes=""),
        urlset(url("http://a.example/b"), attributes='xmlns="http://www.google.com/schemas/sitemap/0.84"'),
        urlset(url("http://a.example/b"), attributes='xmlns="http://unknown.example/"'),
        f'<s:urlset xmlns:s="{PROTOCOL}"><s:url><s:loc>http://a.example/b</s:loc></s:url></s:urlset>',
        f'<s:urlset xmlns:s="{PROTOCOL}"><url><loc>http://a.example/b</loc></url></s:urlset>',
        "\ufeff" + urlset(url("http://a.example/b")),
        urlset("<URL><Loc>http://a.example/b</Loc></URL>"),
        urlset(
            '<url xmlns:x="http://x.example/"><x:loc>http://no/</x:loc><loc>http://a.example/b</loc></url>'
        ),
    ],
)
def test_prefixes_namespaces_and_marks_do_not_matter(read, sitemap):
    found = read(sitemap)
    assert (found.pages, found.problems) == (["http://a.example/b"], [])


def test_a_prefix_that_nobody_declared_does_not_matter(read):
    found = read(
        urlset(url("http://a.example/b", "<image:image><image:loc>http://i/</image:loc></image:image>"))
    )
    assert (found.pages, found.problems) == (["http://a.example/b"], [])


def test_extensions_are_passed_over(read):
    more = (
        '<i:image xmlns:i="http://www.google.com/schemas/sitemap-image/1.1"><i:loc>http://i/</i:loc></i:image>'
        '<x:link xmlns:x="http://www.w3.org/1999/xhtml" rel="alternate" hreflang="de" href="http://de/"/>'
        '<v:video xmlns:v="http://www.google.com/schemas/sitemap-video/1.1"><v:loc>http://v/</v:loc></v:video>'
    )
    assert read(urlset(url("http://a.example/b", more))).pages == ["http://a.example/b"]


def test_an_index_leads_to_sitemaps_with_the_dates_of_their_change(read):
    found = read(
        f'<sitemapindex xmlns="{PROTOCOL}"><sitemap><loc>http://a.example/1.xml.gz</loc>'
        "<lastmod>1970-01-02T00:00:00+00:00</lastmod></sitemap>"
        "<sitemap><loc>http://a.example/2.xml</loc></sitemap></sitemapindex>"
    )
    assert (found.pages, found.sitemaps) == ([], ["http://a.example/1.xml.gz", "http://a.example/2.xml"])
    assert found.hints == [Hint(url="http://a.example/1.xml.gz", lastmod_ms=DAY)]


def test_an_index_that_names_itself_is_read_once(read):
    found = read("<sitemapindex><sitemap><loc>/sitemap.xml</loc></sitemap></sitemapindex>")
    assert found.sitemaps == ["http://a.example/sitemap.xml"]


@pytest.mark.parametrize(
    ("date", "milliseconds"),
    [
        ("1971", 365 * DAY),
        ("1970-02", 31 * DAY),
        ("1970-01-02", DAY),
        ("1970-01-02T01:00Z", DAY + 3_600_000),
        ("1970-01-02T01:00:01+01:00", DAY + 1000),
        ("1970-01-02T00:00:00.25Z", DAY + 250),
        ("1970-01-02t00:00:00z", DAY),
        ("1970-01-02 00:00:00", DAY),
        ("Fri, 02 Jan 1970 00:00:00 +0000", DAY),
        ("1969-12-31", -DAY),
    ],
)
def test_dates_are_read_in_every_precision(read, date, milliseconds):
    [hint] = read(urlset(url("http://a.example/b", f"<lastmod>{date}</lastmod>"))).hints
    assert hint.lastmod_ms == milliseconds


@pytest.mark.parametrize(
    ("field", "word"),
    [
        ("<lastmod>yesterday</lastmod>", "yesterday"),
        ("<lastmod>2024-13-01</lastmod>", "2024-13-01"),
        ("<changefreq>sometimes</changefreq>", "sometimes"),
        ("<priority>1.1</priority>", "1.1"),
        ("<priority>-1</priority>", "-1"),
        ("<priority>nan</priority>", "nan"),
    ],
)
def test_a_hint_that_makes_no_sense_is_told_once_and_the_address_counts(read, field, word):
    found = read(urlset(*(url(f"http://a.example/{n}", field) for n in range(1000))))
    assert (len(found.pages), found.hints) == (1000, [])
    [problem] = found.problems
    assert repr(word) in problem.what
    assert "999 more" in problem.what
    assert problem.line == 2


def test_a_zero_priority_is_a_hint(read):
    [hint] = read(urlset(url("http://a.example/b", "<priority>0.0</priority>"))).hints
    assert hint.priority == 0.0


def test_a_sitemap_in_a_folder_speaks_for_that_folder_only(read):
    locs = ["http://a.example/b/c", "http://a.example/d", "https://a.example/b/e", "http://f.example/b/g"]
    found = read(
        urlset(*(url(loc, "<priority>1</priority>") for loc in locs)), url="http://a.example/b/map.xml"
    )
    assert found.pages == locs
    assert [hint.url for hint in found.hints] == locs[:1]
    assert [hint.url for hint in found.beyond] == locs[1:]


@pytest.mark.parametrize("entry", ["<url/>", "<url><loc/></url>", url("http://[b"), url("http://a b/")])
def test_an_entry_without_a_good_address_is_told_with_its_line_and_the_rest_counts(read, entry):
    found = read(urlset("\n", entry, "\n", url("http://a.example/b")))
    assert found.pages == ["http://a.example/b"]
    [problem] = found.problems
    assert problem.line == 3


def test_latin_1_is_read_as_the_document_says(read):
    text = '<?xml version="1.0" encoding="iso-8859-1"?><urlset><url><loc>/ü</loc></url></urlset>'
    assert read(text.encode("latin-1"), charset="iso-8859-1").pages == ["http://a.example/%C3%BC"]


def test_utf_16_is_read(read):
    assert read(urlset(url("/b")).replace("UTF-8", "UTF-16").encode("utf-16"), charset="utf-16").pages == [
        "http://a.example/b"
    ]


def test_a_packed_sitemap_is_found_and_read_whatever_the_server_calls_it(read):
    data = gzip.compress(urlset(url("http://a.example/b")).encode())
    body = Body(size=len(data), sha256="", data=data)
    for part in documents(body, url="http://a.example/sitemap.xml", declared_type="text/html"):
        assert part.media_type == "application/x-sitemap+xml"
        assert read(part.stream).pages == ["http://a.example/b"]
