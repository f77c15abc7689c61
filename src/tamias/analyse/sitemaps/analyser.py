"""Sitemaps into links, hints and datasets: XML, index, Semantic Sitemap, ResourceSync, RSS, Atom, text."""

from collections.abc import Iterator
from xml.parsers.expat import ErrorString, ExpatError

from tamias.analyse.chunks import RefusedError, read_chunks, utf8_chunks
from tamias.analyse.sitemaps.elements import Element, Elements, Gathered
from tamias.analyse.sitemaps.urlset import DatasetReader, read_entry, read_feed_entry
from tamias.content.formats import read_by
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Finding
from tamias.settings import AnalyseSettings

TEXT = "text/x-sitemap"
"""Plain text that is known to be a sitemap, for it cannot be seen."""

_FEEDS = frozenset({"rss", "feed"})
_SITEMAPS = frozenset({"urlset", "sitemapindex"})
_SCHEMES = ("http://", "https://", "ftp://", "ftps://")
_MAX_LINE = 8192


class SitemapAnalyser:
    """Reads what lists addresses for crawlers. Nothing it names is fetched here."""

    media_types = read_by(__name__)

    def __init__(self, limits: AnalyseSettings | None = None) -> None:
        self._limits = limits or AnalyseSettings()

    def analyse(self, document: Document) -> Iterator[Finding]:
        gathered = Gathered(document.url, self._limits)
        reading: _Lines | _Xml = _Lines(gathered)
        if document.media_type.endswith("xml"):
            reading = _Xml(gathered, self._limits.xml_depth)
        limit: LimitExceeded | None = None
        try:
            for chunk in self._chunks(document):
                reading.feed(chunk)
                yield from gathered.batches()
            reading.end()
        except RefusedError as refusal:
            gathered.problem(str(refusal), reading.line)
        except ExpatError as error:
            gathered.problem(f"XML: {ErrorString(error.code)}", error.lineno)
        except LimitExceeded as exceeded:
            limit = exceeded
        yield from gathered.rest()
        if limit:
            raise limit

    def _chunks(self, document: Document) -> Iterator[bytes]:
        left = self._limits.sitemap_bytes
        for chunk in utf8_chunks(read_chunks(document.stream), document.charset):
            yield chunk[:left]
            left -= len(chunk)
            if left < 0:
                most = self._limits.sitemap_bytes
                raise RefusedError(
                    f"sitemap of more than {most} bytes (limit analyse.sitemap_bytes): the rest is not read"
                )


class _Xml(Elements):
    """A sitemap or feed in XML, told apart by its root."""

    def __init__(self, gathered: Gathered, max_depth: int) -> None:
        super().__init__(self._read_entry, max_depth)
        self._gathered = gathered
        self._datasets = DatasetReader(gathered)

    def _read_entry(self, root: Element, entry: Element) -> None:
        if root.name in _FEEDS:
            read_feed_entry(root, entry, self._gathered)
        elif root.name in _SITEMAPS:
            read_entry(root, entry, self._gathered)
            self._datasets.read(root, entry)
        else:
            raise RefusedError(f"the root element {root.name[:100]!r} is of no sitemap or feed")


class _Lines:
    """A sitemap in plain text: one address in each line."""

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered
        self._rest = b""
        self.line = 0

    def feed(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._read(line)
        if len(self._rest) > _MAX_LINE:
            raise RefusedError(f"line of more than {_MAX_LINE} bytes, the rest was not read")

    def end(self) -> None:
        self._read(self._rest)

    def _read(self, line: bytes) -> None:
        self.line += 1
        text = line.decode("utf-8", "replace").strip()
        if not text:
            return
        if not text.lower().startswith(_SCHEMES):
            self._gathered.problem(f"{text[:100]!r} is not a web address", self.line)
        elif url := self._gathered.address(text, self.line):
            self._gathered.page(url)
