"""Sitemaps that are broken, endless or out for our memory: what came before counts, and nothing raises."""

import io
import sys
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamias.analyse.sitemaps.urlset import SitemapAnalyser
from tamias.model.document import Document, LimitExceeded
from tests.examples import examples
from tests.messages import unsaid

SPACES = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:sc="http://sw.deri.org/2007/07/sitemapextension/scschema.xsd"'
    ' xmlns:rs="http://www.openarchives.org/rs/terms/"'
)
URL = "<url><loc>http://a.example/{}</loc></url>\n"


class Endless(io.RawIOBase):
    """A stream that repeats itself; counts what was taken."""

    def __init__(self, start, again):
        self.taken = 0
        self._next, self._again = start, again

    def read(self, size=-1):
        chunk, self._next = self._next, self._again
        self.taken += len(chunk)
        return chunk


def only(problems):
    [problem] = problems
    return problem


def test_what_stands_before_a_fault_counts_and_its_line_is_told(read):
    text = f"<urlset>\n{URL.format(1)}{URL.format(2)}<url><loc>http://a.example/3</b></url></urlset>"
    found = read(text)
    assert found.pages == ["http://a.example/1", "http://a.example/2"]
    assert (only(found.problems).line, only(found.problems).what) == (4, "XML: mismatched tag")


def test_a_sitemap_that_is_cut_off_is_told(read):
    found = read(f"<urlset>\n{URL.format(1)}<url><loc>http://a.exa")
    assert found.pages == ["http://a.example/1"]
    assert only(found.problems).line == 3


@pytest.mark.parametrize("data", [b"", b"   ", b"\xff\xfe", b"\0\0", b"<urlset", b"not xml", b"<urlset>\xff"])
def test_what_is_no_xml_is_a_problem(read, data):
    assert only(read(data).problems).what.startswith("XML: ")


def test_another_root_is_a_problem(read):
    assert "'html'" in only(read("<html><body/></html>").problems).what


def test_a_million_entries_are_read_up_to_the_limit(read):
    stream = Endless(b"<urlset>", URL.encode() * 100)
    found = read(stream)
    assert len(found.pages) == 50_000
    assert "50000 addresses (limit analyse.sitemap_urls)" in only(found.problems).what
    assert stream.taken < 4_000_000


def test_a_million_datasets_are_read_up_to_the_limit(read):
    entry = b"<sc:dataset><sc:dataDumpLocation>/x</sc:dataDumpLocation></sc:dataset>" * 100
    found = read(Endless(f"<urlset {SPACES}>".encode(), entry))
    assert len(found.datasets) == 25_000  # each with a location
    assert "analyse.sitemap_urls" in only(found.problems).what


def test_more_bytes_than_allowed_are_not_read(read):
    found = read(f"<urlset>{URL.format(1)}{' ' * 200_000}{URL.format(2)}</urlset>", sitemap_bytes=100_000)
    assert found.pages == ["http://a.example/1"]
    assert "100000 bytes (limit analyse.sitemap_bytes)" in only(found.problems).what


def test_exactly_as_many_bytes_as_allowed_are_read(read):
    text = f"<urlset>{URL.format(1)}</urlset>"
    assert read(text, sitemap_bytes=len(text)).problems == []
    assert len(read(text, sitemap_bytes=len(text) - 1).problems) == 1


def test_exactly_as_many_addresses_as_allowed_are_read(read):
    assert read(f"<urlset>{URL.format(1) * 3}</urlset>", sitemap_urls=3).problems == []


def test_an_address_beyond_the_limit_is_left_out_and_told(read):
    found = read(f"<urlset>{URL.format('x' * 3000)}{URL.format(1)}</urlset>")
    assert found.pages == ["http://a.example/1"]
    assert "2048 characters (limit analyse.sitemap_loc)" in only(found.problems).what


@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY % a SYSTEM "http://a.example/a.dtd"> %a;',
    ],
)
def test_entities_are_refused(read, declared):
    found = read(
        f"<!DOCTYPE urlset [{declared}]>\n<urlset><url><loc>http://a.example/&a;</loc></url></urlset>"
    )
    assert found.pages == []
    assert not unsaid(only(found.problems).what, "XML")


def test_declared_attributes_are_refused(read):
    found = read(f'<!DOCTYPE urlset [<!ATTLIST url a CDATA "{"x" * 9}">]><urlset>{URL}</urlset>')
    assert not unsaid(only(found.problems).what, "url")


def test_a_crowd_of_namespaces_is_refused(read):
    spaces = " ".join(f'xmlns:n{n}="n"' for n in range(101))
    assert "100 namespaces" in only(read(f"<urlset {spaces}>{URL}</urlset>").problems).what


def test_a_million_deleted_resources_are_read_up_to_the_limit(read):
    entry = b'<url><loc>/x</loc><rs:md change="deleted" datetime="2024-01-01"/></url>' * 100
    found = read(Endless(f"<urlset {SPACES}>".encode(), entry))
    assert (found.pages, len(found.hints)) == ([], 50_000)
    assert "analyse.sitemap_urls" in only(found.problems).what


def test_a_deep_sitemap_is_not_followed_down(read):
    stream = Endless(f"<urlset>{URL.format(1)}".encode(), b"<a>" * 1000)
    found = read(stream)
    assert found.pages == ["http://a.example/1"]
    assert "analyse.xml_depth" in only(found.problems).what
    assert stream.taken < 100_000


@pytest.mark.parametrize("start", [b"<!--", b"<a b='", b"<![CDATA[", b"<?x "])
def test_a_token_without_end_is_bounded_in_memory_and_time(read, start):
    stream = Endless(f"<urlset>{URL.format(1)}".encode() + start, b"x" * 16384)
    found = read(stream)
    assert found.pages == ["http://a.example/1"]
    assert len(found.problems) == 1


def test_an_entry_without_end_is_bounded(read):
    stream = Endless(f"<urlset>{URL.format(1)}<url>".encode(), b"<a/>" * 4096)
    found = read(stream)
    assert found.pages == ["http://a.example/1"]
    assert "20000 elements" in only(found.problems).what


def test_text_without_end_is_not_kept(read):
    stream = Endless(b"<urlset><url><loc>", b"x" * 65536)
    tracemalloc.start()
    try:
        found = read(stream)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.pages == []
    assert peak < 4_000_000


def test_a_limit_of_the_stream_passes_through_after_what_came_before():
    class Limited(Endless):
        def read(self, size=-1):
            if self.taken:
                raise LimitExceeded("too much (limit open.max_unpacked)")
            return super().read(size)

    stream = Limited(f"<urlset>{URL.format(1)}".encode(), b"")
    document = Document(url="http://a.example/s", stream=stream, media_type="application/x-sitemap+xml")
    findings = SitemapAnalyser().analyse(document)
    assert next(findings).references == ["http://a.example/1"]
    with pytest.raises(LimitExceeded):
        list(findings)


TAGS = ["url", "loc", "lastmod", "sitemap", "sc:dataset", "sc:dataDumpLocation", "sc:datasetURI", "rs:md"]
TAGS += ["rs:ln", "item", "entry", "link", "guid", "pubDate"]
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["http://a/", "http://[", "/x", "2024-01-01", "9999-99-99T00:00Z", "0001-01-01T00:00+14:00"]
    ),
)


def element(inner):
    return st.builds(
        lambda tag, attribute, value, parts: f'<{tag} {attribute}="{value}">{"".join(parts)}</{tag}>',
        st.sampled_from(TAGS),
        st.sampled_from(["priority", "href", "rel", "xml:base", "hash", "isPermaLink", "xmlns", "xmlns:sc"]),
        TEXTS,
        st.lists(inner, max_size=4),
    )


TREES = st.recursive(TEXTS, element, max_leaves=20)


@given(
    st.sampled_from(["urlset", "sitemapindex", "rss", "feed"]),
    st.lists(TREES, max_size=6),
    st.sampled_from(["application/x-sitemap+xml", "text/x-sitemap"]),
)
@settings(max_examples=examples(300))
def test_no_sitemap_raises(read, root, trees, media_type):
    read(f"<{root} {SPACES}>{''.join(trees)}</{root}>".encode("utf-8", "replace"), media_type=media_type)


@given(st.binary(max_size=200), st.sampled_from(["text/x-sitemap", "application/atom+xml"]), st.booleans())
@settings(max_examples=examples(300))
def test_no_bytes_raise(read, data, media_type, rooted):
    read(b"<feed>" * rooted + data, media_type=media_type)


@given(st.integers(0, 400))
def test_a_sitemap_cut_anywhere_gives_what_is_whole(read, length):
    text = f"<urlset>{''.join(URL.format(n) for n in range(9))}</urlset>"
    found = read(text[:length])
    assert found.pages == [f"http://a.example/{n}" for n in range(text[:length].count("</url>"))]


def test_the_speed_of_fifty_thousand_addresses_is_printed(read, capsys):
    more = "<lastmod>2024-05-{:02d}</lastmod><changefreq>daily</changefreq><priority>0.5</priority>"
    entries = (
        f"<url><loc>http://a.example/catalogue/item/{n}</loc>{more.format(n % 28 + 1)}</url>\n"
        for n in range(50_000)
    )
    data = f"<urlset {SPACES}>{''.join(entries)}</urlset>".encode()
    start = time.perf_counter()
    found = read(data)
    seconds = time.perf_counter() - start
    with capsys.disabled():
        sys.stdout.write(f"\nsitemap of 50,000 addresses, {len(data) / 1e6:.1f} MB: {seconds:.2f} s\n")
    assert (len(found.pages), len(found.hints), found.problems) == (50_000, 50_000, [])
