"""Sitemaps and feeds are known by their root, whatever the server calls them."""

import pytest

from tamias.content.sniff import found_type

SITEMAP, RSS, ATOM = "application/x-sitemap+xml", "application/rss+xml", "application/atom+xml"
NS = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
RDF_NS = b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
ROWS = [
    ("urlset", b'<?xml version="1.0"?>\n<urlset ' + NS + b">", SITEMAP),
    ("without a declaration", b"<urlset><url/></urlset>", SITEMAP),
    ("with a prefix", b'<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9">', SITEMAP),
    ("index", b"<sitemapindex " + NS + b">", SITEMAP),
    (
        "semantic",
        b"<urlset " + NS + b' xmlns:sc="http://sw.deri.org/2007/07/sitemapextension/scschema.xsd">',
        SITEMAP,
    ),
    ("with RDF's namespace", b"<urlset " + NS + b" " + RDF_NS + b">", SITEMAP),
    ("ResourceSync", b"<urlset " + NS + b' xmlns:rs="http://www.openarchives.org/rs/terms/">', SITEMAP),
    (
        "style sheet and comment",
        b'<?xml version="1.0"?><?xml-stylesheet href="a"?><!-- x --><urlset>',
        SITEMAP,
    ),
    ("UTF-16", '<?xml version="1.0" encoding="UTF-16"?><urlset>'.encode("utf-16"), SITEMAP),
    ("RSS", b'<rss version="2.0"><channel>', RSS),
    ("RSS with RDF's namespace", b'<rss version="2.0" xmlns="http://x.example/" ' + RDF_NS + b">", RSS),
    ("Atom", b'<feed xmlns="http://www.w3.org/2005/Atom">', ATOM),
    ("Atom with RDF's namespace", b'<feed xmlns="http://www.w3.org/2005/Atom" ' + RDF_NS + b">", ATOM),
    ("RSS 1.0 is RDF", b"<rdf:RDF " + RDF_NS + b' xmlns="http://purl.org/rss/1.0/">', "application/rdf+xml"),
]


@pytest.mark.parametrize(("head", "found"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
@pytest.mark.parametrize(
    "told", [None, "text/xml", "text/html; charset=utf-8", "text/plain", "application/rdf+xml"]
)
def test_the_root_decides(head, found, told):
    assert found_type(head, told, "sitemap.xml") == found
