"""Documents from outside, as the analysers read them. Bad data is a `Problem`; nothing is raised.

Whatever is found must be bounded by what was read, and stand in the document's own graphs once it is kept.
"""

import io
import tempfile
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pyoxigraph

from tamias.analyse.html.analyser import HtmlAnalyser
from tamias.analyse.links.discovery import LinksetAnalyser
from tamias.analyse.rdf.analyser import RdfAnalyser
from tamias.analyse.sitemaps.urlset import SitemapAnalyser
from tamias.content.sniff import found_charset
from tamias.features.ftp.listing_analyser import FtpListingAnalyser
from tamias.features.hdt.analyser import HdtAnalyser
from tamias.features.hdt.reader import Cursor
from tamias.features.jelly.analyser import JellyAnalyser
from tamias.features.scraping.book import RuleBook, load_portal
from tamias.features.syntaxes.rdf_json import RdfJsonAnalyser
from tamias.features.syntaxes.trix import TrixAnalyser
from tamias.model.document import Document
from tamias.model.errors import ConfigError, UrlError
from tamias.model.finding import Links, Problem, Quads
from tamias.model.url import resolve
from tamias.protocols import Analyser
from tamias.settings import AnalyseSettings
from tamias.sinks.segments.naming import Naming

SITE = "http://example.org/"
URL = SITE + "a/b"
LIMITS = AnalyseSettings(max_errors=20)
FREE_QUADS = 1000
MOST_QUADS_A_BYTE = 64
_RDF = ("text/turtle", "application/trig", "text/n3", "application/n-quads", "application/rdf+xml",
        "application/ld+json")  # fmt: skip
_PAGE = (
    b"""<html><body><h1 class=t id=a>One 1.234,5</h1><a href="/x?page=3">x</a><ul><li>a<li>b</ul></body>"""
)


def read(analyser: Analyser, media_type: str, data: bytes, charset: str | None = None) -> None:
    """Analyses a document and checks all that was found."""
    charset = charset or found_charset(data, None, media_type)
    document = Document(url=URL, stream=io.BytesIO(data), media_type=media_type, charset=charset)
    quads = problems = 0
    for finding in analyser.analyse(document):
        if isinstance(finding, Quads):
            quads += len(finding.quads)
            can_be_kept(finding)
        elif isinstance(finding, Links):
            for reference in finding.references:
                can_be_followed(reference, finding.base)
        problems += isinstance(finding, Problem)
    assert quads <= FREE_QUADS + MOST_QUADS_A_BYTE * len(data), f"{quads} quads of {len(data)} bytes"
    assert problems <= 5 * LIMITS.max_errors, f"{problems} problems"


def can_be_kept(found: Quads) -> None:
    """Under the names they get, statements are a line each that is read again, in graphs of the own site."""
    naming = Naming(URL, "0" * 64)
    text = naming.nquads(found.quads)
    assert text.count(b"\n") == len(found.quads) - naming.left_out, "a statement is not one line"
    kept = pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.N_QUADS, lenient=True)
    assert all(quad.graph_name.value.startswith(SITE) for quad in kept), "a stranger's graph"


def can_be_followed(reference: str, base: str) -> None:
    """A reference is a URL or it is none."""
    try:
        resolve(reference, base)
    except UrlError:
        return


def sitemap(data: bytes) -> None:
    """Sitemaps, indexes, Semantic Sitemaps and feeds in XML."""
    read(SitemapAnalyser(LIMITS), "application/x-sitemap+xml", data)


def sitemap_text(data: bytes) -> None:
    """Sitemaps in plain text."""
    read(SitemapAnalyser(LIMITS), "text/x-sitemap", data)


def rdfa(data: bytes) -> None:
    """RDFa, with the marker that opens its gate; as HTML or XHTML by the first byte."""
    media_type = "application/xhtml+xml" if data[:1] == b"<" else "text/html"
    read(HtmlAnalyser(LIMITS), media_type, b"<html vocab='http://v.example/'><body>" + data)


def xhtml(data: bytes) -> None:
    """Pages that are XML, their entities among them."""
    read(HtmlAnalyser(LIMITS), "application/xhtml+xml", data)


def microdata(data: bytes) -> None:
    """Microdata inside an item."""
    page = b"<body><div itemscope itemtype='http://schema.org/Thing'>" + data
    read(HtmlAnalyser(LIMITS), "text/html", page)


def page(data: bytes) -> None:
    """A page of any kind: links, metas, all markup, microformats."""
    read(HtmlAnalyser(LIMITS, anchors=True), "text/html", data)


def hdt(data: bytes) -> None:
    """HDT, as it is and as if all its checksums were right, which nobody would guess."""
    read(HdtAnalyser(LIMITS), "application/vnd.hdt", data)
    with patch.object(Cursor, "_verify", lambda cursor, checksum, what: cursor.take(len(checksum))):
        read(HdtAnalyser(LIMITS), "application/vnd.hdt", data)


def trix(data: bytes) -> None:
    """TriX."""
    read(TrixAnalyser(LIMITS), "application/trix", data)


def rdf_json(data: bytes) -> None:
    """RDF/JSON."""
    read(RdfJsonAnalyser(LIMITS), "application/rdf+json", data)


def rdf(data: bytes) -> None:
    """The other syntaxes, whose faults are mended by code of ours; the first byte chooses one."""
    read(RdfAnalyser(LIMITS), _RDF[data[0] % len(_RDF)] if data else _RDF[0], data[1:])


def jelly(data: bytes) -> None:
    """Jelly."""
    read(JellyAnalyser(LIMITS), "application/x-jelly-rdf", data)


def linkset(data: bytes) -> None:
    """Linksets, as JSON or text."""
    read(LinksetAnalyser(LIMITS), "application/linkset", data)


def ftp_lines(data: bytes) -> None:
    """The list of a directory as the fetcher hands it on."""
    read(FtpListingAnalyser(LIMITS), "application/x-ftp-listing+json", data)


@cache
def scratch() -> Path:
    """A file for those who read files."""
    return Path(tempfile.mkdtemp(prefix="tamias-fuzz-")) / "input"


def rules(data: bytes) -> None:
    """A rule file is refused with file and line, or it can be applied to a page; a page may follow a NUL."""
    text, _, page = data.partition(b"\0")
    scratch().write_bytes(text)
    try:
        portal = load_portal(scratch())
    except ConfigError as error:
        assert str(error).startswith(str(scratch())), error  # noqa: PT017
        return
    host = portal.hosts[0].replace("*", "www") if portal.hosts else "example.org"
    url = f"http://{host}/dataset/a"
    for finding in RuleBook([portal]).extract(url, page or _PAGE):
        if isinstance(finding, Quads):
            can_be_kept(finding)
