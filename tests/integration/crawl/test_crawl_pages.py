"""Pages lead on as browsers are led on: by meta refresh, by choices, without session ids."""

import re

import brotli
import pytest
import zstandard

from tests.messages import unsaid

PAGE = b"<html><body>a page</body></html>"


def paths(site):
    return [path for path, _ in site.log if path != "/robots.txt"]


@pytest.fixture
def page(reply):
    return lambda text: reply(200, text.encode(), Content_Type="text/html")


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0; url=/there", "/there"),
        ("5;URL='/there'", "/there"),
        ('0, url = "/there" ', "/there"),
        ("0;/there", "/there"),
        ("3", None),
        ("0; url=javascript:away()", None),
    ],
)
def test_a_meta_refresh_is_followed_as_a_redirect_is(tamias, site, page, content, target):
    """As deep as the page itself, so that --depth 0 reaches it."""
    site.pages["/"] = page(f"<html><head><meta http-equiv=Refresh content='{content}'></head>")
    if "'" in content:
        site.pages["/"] = page(f'<html><head><meta http-equiv=Refresh content="{content}"></head>')
    site.pages["/there"] = page("<html>")
    assert tamias.crawl(site.url("/"), "--depth", 0).returncode == 0
    assert paths(site) == ["/", *([target] if target else [])]


def test_the_alternates_of_a_300_are_visited(tamias, site, reply):
    links = '</data.ttl>; rel=alternate; type="text/turtle", </page.html>; rel=alternate; type="text/html"'
    site.pages |= {"/": reply(300, Link=links), "/data.ttl": b"<> <#p> <#o> .", "/page.html": PAGE}
    assert tamias.crawl(site.url("/"), "--depth", 0).returncode == 0
    assert paths(site) == ["/", "/data.ttl"]
    (told,) = tamias.attempts()[site.url("/")]
    assert told["outcome"] == "ok"
    assert not unsaid(told["reason"], "300", "Choices", "1")


def test_a_300_that_prefers_one_is_a_redirect(tamias, site, reply):
    site.pages |= {"/": reply(300, Location="/best"), "/best": b"<> <#p> <#o> ."}
    assert tamias.crawl(site.url("/"), "--depth", 0).returncode == 0
    (told,) = tamias.attempts()[site.url("/")]
    assert (told["finalUrl"], told["triples"]) == (site.url("/best"), "1")


def test_of_a_url_and_its_session_variants_the_plain_one_is_asked(tamias, site, page):
    hrefs = ("/a;jsessionid=1A", "/b?PHPSESSID=7&x=1", "/c?x=1&sid=2", "/c?x=1", "/d?aside=1")
    site.pages["/"] = page("".join(f'<a href="{href}">x</a>' for href in hrefs))
    assert tamias.crawl(site.url("/")).returncode == 0
    assert sorted(paths(site)) == ["/", "/a", "/b?x=1", "/c?x=1", "/d?aside=1"]


@pytest.mark.parametrize(("status", "times"), [(501, 1), (505, 1), (502, 3)])
def test_what_a_server_cannot_do_is_not_asked_again(tamias, site, reply, status, times):
    tamias.env["TAMIAS_CRAWL__RETRIES"] = "2"
    site.pages["/"] = reply(status)
    tamias.crawl(site.url("/"))
    assert site.asked("/") == times


def titled(charset=""):
    return f"<html><head>{charset}<meta property='og:title' content='Café'></head>"


ENCODED = {
    "/mark": (b"\xef\xbb\xbf" + titled("<meta charset=latin1>").encode(), {"Content_Type": "text/html"}),
    "/header": (
        titled("<meta charset=utf-8>").encode("cp1252"),
        {"Content_Type": "text/html; charset=latin1"},
    ),
    "/meta": (titled("<meta charset=iso-8859-15>").encode("iso-8859-15"), {"Content_Type": "text/html"}),
    "/nothing": (titled().encode("cp1252"), {"Content_Type": "text/html"}),
    "/zstd": (
        zstandard.ZstdCompressor().compress(titled().encode()),
        {"Content_Type": "text/html; charset=utf-8", "Content_Encoding": "zstd"},
    ),
}


def test_pages_are_decoded_as_browsers_decode_them(tamias, site, reply):
    """By a byte order mark, the header, a meta element, and else as windows-1252; zstd by ourselves."""
    site.pages |= {path: reply(200, body, **headers) for path, (body, headers) in ENCODED.items()}
    assert tamias.crawl(*map(site.url, ENCODED), "--depth", 0).returncode == 0
    titles = {
        graph: value for value, graph in re.findall(r'title> "(.*)" <(.*)> \.', "\n".join(tamias.quads()))
    }
    assert titles == {site.url(path): "Café" for path in ENCODED}


LITERALS = (
    *("http://www.w3.org/ns/dcat#downloadURL", "http://www.w3.org/ns/dcat#accessURL"),
    *("http://schema.org/contentUrl", "https://schema.org/contentUrl", "http://rdfs.org/ns/void#dataDump"),
)


def test_every_way_of_naming_a_document_leads_to_it(tamias, site, reply):
    """Addresses as literals, in triple terms and as datatypes; by Link; under unknown types."""
    named = [f'<#d{n}> <{name}> "{site.url(f"/literal{n}")}" .' for n, name in enumerate(LITERALS)]
    term = f"<<( <{site.url('/s')}> <{site.url('/p')}> <<( <#x> <{site.url('/q')}> <{site.url('/o')}> )>> )>>"
    text = "\n".join([*named, f"<#t> <#states> {term} .", f'<#t> <#is> "1"^^<{site.url("/type")}> .'])
    links = "</cite>; rel=cite-as, </item>; rel=item, </about>; rel=describedby"
    packed = brotli.compress(f"<#a> <#b> <{site.url('/packed')}> .".encode())
    site.pages |= {
        "/": reply(200, text.encode(), Content_Type="text/turtle", Link=links),
        "/item": reply(200, packed, Content_Type="application/br"),
        "/cite": reply(200, b"\x00\x01\x02\x03" * 99, Content_Type="application/x-thing"),
        "/about": reply(200, b"%PDF-1.7", Content_Type="application/pdf"),
    }
    tamias.env["TAMIAS_ANALYSE__FOLLOW"] = "subjects,predicates,objects,datatypes"
    done = tamias.crawl(site.url("/"))
    literals = {f"/literal{n}" for n in range(len(LITERALS))}
    terms = {"/s", "/p", "/q", "/o", "/type"}
    assert set(paths(site)) == {"/", "/cite", "/item", "/about", "/packed", *literals, *terms}
    (unread,) = re.findall("2 documents had no reader: (.*)", done.stderr)
    assert set(unread.split(", ")) == {"1 application/x-thing", "1 application/pdf"}
    printed = tamias.run("read", "--links", "--allow-private", site.url("/")).stdout.split()
    named = {*literals, "/cite", "/item", "/about", "/s", "/p", "/q", "/o"}
    assert set(printed) >= {site.url(path) for path in named}
