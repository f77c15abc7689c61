"""Sitemaps into links, hints and datasets: XML, index, Semantic Sitemap, ResourceSync, RSS, Atom, text.

The entries of `urlset` and `sitemapindex` have one shape with those of ResourceSync. Beside them is the
`dataset` of the Semantic Sitemap extension, in both of its namespaces and all spellings.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final
from xml.parsers.expat import ErrorString, ExpatError

from tamias.analyse.chunks import RefusedError, read_chunks, utf8_chunks
from tamias.analyse.sitemaps.elements import Element, Elements, Gathered
from tamias.content.formats import read_by
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Finding
from tamias.model.site import CHANGE_FREQUENCIES, NAMESPACES, Hint, Location, Prefix, SemanticDataset, covers
from tamias.model.url import fetch_url
from tamias.settings import AnalyseSettings

_W3C_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:[Tt ].{5,40})?)?)?", re.ASCII)
_NUMBER = re.compile(r"[+]?(?:\d{1,9}(?:\.\d{0,30})?|\.\d{1,30})", re.ASCII)
_SHA256 = re.compile(r"(?:^|\s)sha-?256:([0-9a-f]{64})(?:$|\s)", re.IGNORECASE)


@lru_cache(maxsize=1024)
def time_ms(text: str) -> int | None:
    """A date as sitemaps and Atom write it (W3C, all six precisions) or as RSS does (RFC 822); else None.

    Without a time zone it is taken as UTC.

    >>> time_ms("1970-01-02"), time_ms("Thu, 01 Jan 1970 00:00:01 GMT"), time_ms("soon")
    (86400000, 1000, None)
    """
    try:
        moment = _w3c(text) if _W3C_DATE.fullmatch(text) else parsedate_to_datetime(text[:100])
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1000)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _w3c(text: str) -> datetime:
    return datetime.fromisoformat(text.upper() + "-01-01"[: max(0, 10 - len(text))])


def change_frequency(text: str) -> str | None:
    """Return one of the seven words, or None."""
    word = text.lower()
    return word if word in CHANGE_FREQUENCIES else None


def share(text: str) -> float | None:
    """A number from 0 to 1, or None.

    >>> share("0.8"), share("1.5")
    (0.8, None)
    """
    value = float(text) if _NUMBER.fullmatch(text) else 2.0
    return value if value <= 1.0 else None


def sha256_of(text: str) -> str | None:
    """The SHA-256 among the digests of a ResourceSync `hash`.

    >>> sha256_of("md5:00 sha-256:" + "aB" * 32) == "ab" * 32
    True
    """
    found = _SHA256.search(text[:1000])
    return found[1].lower() if found else None


PROTOCOL: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
RESOURCE_SYNC: Final = frozenset({"http://www.openarchives.org/rs/terms/"})

_UPWARDS = frozenset({"up", "index", "resourcesync"})
"""Relations of a ResourceSync document to others of its kind."""


def own_spaces(root: Element) -> frozenset[str]:
    """The namespaces of a sitemap's own words: whatever its root has, for several are in use."""
    return frozenset({root.space, PROTOCOL, ""})


def read_entry(root: Element, entry: Element, gathered: Gathered) -> None:
    """Read a child of the root."""
    spaces = own_spaces(root)
    if entry.space in spaces and entry.name in ("url", "sitemap"):
        _read_url(entry, spaces, gathered)
    elif entry.space in RESOURCE_SYNC and entry.name == "ln":
        _read_link(entry, _UPWARDS, gathered)


def _read_url(entry: Element, spaces: frozenset[str], gathered: Gathered) -> None:
    loc = entry.child("loc", spaces)
    url = gathered.address(loc.text if loc else "", loc.line if loc else entry.line)
    if url is None:
        return
    metadata = entry.child("md", RESOURCE_SYNC)
    about = metadata.attributes if metadata else {}
    if entry.name == "sitemap" or "capability" in about:
        gathered.sitemap(url)
    elif about.get("change") == "deleted":
        gathered.count()  # the hint is enough to look again at what is known
    else:
        gathered.page(url)
    gathered.hint(_hint(url, entry, spaces, about, gathered))
    for child in entry.children:
        if child.space in RESOURCE_SYNC and child.name == "ln":
            _read_link(child, frozenset({"describedby"}), gathered)


def _hint(
    url: str, entry: Element, spaces: frozenset[str], about: dict[str, str], gathered: Gathered
) -> Hint:
    said = {child.name: child for child in entry.children if child.text and child.space in spaces}
    return Hint(
        url=url,
        lastmod_ms=gathered.sensible("date", time_ms, said["lastmod"])
        if "lastmod" in said
        else time_ms(about.get("datetime", "")),
        changefreq=gathered.sensible("changefreq", change_frequency, said.get("changefreq")),
        priority=gathered.sensible("priority", share, said.get("priority")),
        sha256=sha256_of(about.get("hash", "")),
    )


def _read_link(link: Element, relations: frozenset[str], gathered: Gathered) -> None:
    if link.attributes.get("rel") not in relations or "href" not in link.attributes:
        return
    url = gathered.address(link.attributes["href"].strip(), link.line)
    if url is not None:
        (gathered.sitemap if relations is _UPWARDS else gathered.page)(url)


_ENTRIES = frozenset({"item", "entry"})
_DATES = ("updated", "modified", "pubdate", "date", "published", "issued")
"""The first that is there counts: when it changed comes before when it appeared."""

_NO_CONTENT = frozenset({"self", "edit", "edit-media", "hub", "search", "replies"})
"""Relations that lead to the feed itself, to its machinery, or to talk."""


def read_feed_entry(root: Element, entry: Element, gathered: Gathered) -> None:
    """Read a child of the feed, or of the channel."""
    base = _based(entry, _based(root, None, gathered), gathered)
    if entry.name == "link":
        _take(entry, base, gathered)
    elif entry.name in _ENTRIES:
        _read_item(entry, base, gathered)


def _read_item(entry: Element, base: str | None, gathered: Gathered) -> None:
    dates = {child.name: child for child in reversed(entry.children) if child.name in _DATES and child.text}
    date = next((dates[name] for name in _DATES if name in dates), None)
    changed = gathered.sensible("date", time_ms, date)
    found = False
    for child in entry.children:
        if child.name in ("link", "enclosure", "content"):
            url = _take(child, _based(child, base, gathered), gathered)
            found = found or url is not None
            if url and child.name == "link":
                gathered.hint(Hint(url=url, lastmod_ms=changed))
    if not found:
        _take_permanent_name(entry, base, changed, gathered)


def _take(link: Element, base: str | None, gathered: Gathered) -> str | None:
    attribute, text = {"enclosure": ("url", ""), "content": ("src", "")}.get(link.name, ("href", link.text))
    reference = link.attributes.get(attribute, text).strip()
    if not reference or link.attributes.get("rel", "alternate").lower() in _NO_CONTENT:
        return None
    url = gathered.address(reference, link.line, base)
    if url is not None:
        gathered.page(url)
    return url


def _take_permanent_name(entry: Element, base: str | None, changed: int | None, gathered: Gathered) -> None:
    """RSS has items without a link whose `guid` is one."""
    name = next((child for child in entry.children if child.name == "guid"), None)
    if name is None or name.attributes.get("ispermalink") == "false":
        return
    url = gathered.address(name.text, name.line, base)
    if url is not None:
        gathered.page(url)
        gathered.hint(Hint(url=url, lastmod_ms=changed))


def _based(element: Element, base: str | None, gathered: Gathered) -> str | None:
    """Return the base of references in an element, by its `xml:base`."""
    own = element.attributes.get("base", "").strip()
    return gathered.address(own, element.line, base) or base if own else base


_FIELDS: Final = {
    "linkeddataprefix": "prefix",
    "datadumplocation": "dump",
    "datadump": "dump",
    "datafragmentdump": "fragment",
    "datafragmentdumplocation": "fragment",
    "sparqlendpointlocation": "endpoint",
    "sparqlendpoint": "endpoint",
    "sparqlgraphname": "graph name",
    "dataseturi": "datasetURI",
    "datasetlabel": "datasetLabel",
    "sampleuri": "sample",
}
_PLAIN_FIELDS: Final = frozenset({"changefreq", "lastmod"})
_SINGLE: Final = frozenset({"datasetURI", "datasetLabel", "changefreq", "lastmod"})
_PRIORITY = re.compile(r"[+]?\d{1,9}", re.ASCII)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")

Fields = dict[str, list[Element]]


class DatasetReader:
    """Reads the datasets of one sitemap, whose URIs must differ."""

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered
        self._uris: set[str] = set()

    def read(self, root: Element, entry: Element) -> None:
        """Read a child of the root, if it is a dataset."""
        if entry.name != "dataset":
            return
        if entry.space not in NAMESPACES:
            self._gathered.problem(
                f"dataset in the namespace {entry.space[:200]!r}, read as one of a Semantic Sitemap",
                entry.line,
            )
        fields = self._fields(entry, NAMESPACES | {entry.space}, own_spaces(root))
        dataset = self._dataset(fields)
        self._gathered.dataset(dataset)
        uri = dataset.uri or ""
        if uri.startswith(("http://", "https://")) and not covers(dataset, uri):
            self._gathered.page(fetch_url(uri))  # its description

    def _fields(self, entry: Element, semantic: frozenset[str], plain: frozenset[str]) -> Fields:
        fields: Fields = {}
        for child in entry.children:
            field = self._field(child, semantic, plain)
            if field is None or not child.text:
                continue
            if field in _SINGLE and field in fields:
                self._gathered.problem(f"dataset with more than one {field}: the first counts", child.line)
                continue
            fields.setdefault(field, []).append(child)
        return fields

    def _field(self, child: Element, semantic: frozenset[str], plain: frozenset[str]) -> str | None:
        if child.name in _PLAIN_FIELDS:
            if child.space in plain:
                return child.name
            if child.space in semantic:
                self._gathered.problem(f"{child.name} is a word of the plain sitemap, but read", child.line)
                return child.name
        return _FIELDS.get(child.name) if child.space in semantic else None

    def _dataset(self, fields: Fields) -> SemanticDataset:
        label = _first(fields, "datasetLabel")
        fragments = tuple(self._locations(fields.get("fragment", ())))
        if len(fragments) == 1:
            self._gathered.problem(
                "dump of a single fragment, taken for all of it", fields["fragment"][0].line
            )
        return SemanticDataset(
            uri=self._uri(_first(fields, "datasetURI")),
            label=" ".join(label.text.split()) if label else None,
            prefixes=tuple(
                Prefix(iri=iri, slicing=_slicing(element))
                for element in fields.get("prefix", ())
                if (iri := self._iri(element))
            ),
            dumps=tuple(self._locations(fields.get("dump", ()))),
            fragments=fragments,
            endpoints=tuple(self._locations(fields.get("endpoint", ()))),
            graph_names=tuple(filter(None, map(self._iri, fields.get("graph name", ())))),
            samples=tuple(filter(None, map(self._iri, fields.get("sample", ())))),
            changefreq=self._gathered.sensible("changefreq", change_frequency, _first(fields, "changefreq")),
            lastmod_ms=self._gathered.sensible("date", time_ms, _first(fields, "lastmod")),
        )

    def _uri(self, element: Element | None) -> str | None:
        uri = self._iri(element) if element else None
        if element is None or uri is None:
            return None
        if uri in self._uris:
            self._gathered.problem(
                f"datasetURI {uri[:200]} of two datasets: it names the first", element.line
            )
            return None
        self._uris.add(uri)
        return uri

    def _locations(self, elements: Iterable[Element]) -> Iterator[Location]:
        for element in elements:
            url = self._gathered.address(element.text, element.line)
            if url is not None:
                self._gathered.count()
                yield Location(url=url, priority=self._priority(element), slicing=_slicing(element))

    def _priority(self, element: Element) -> int | None:
        text = element.attributes.get("priority")
        if text is None:
            return None
        if _PRIORITY.fullmatch(text.strip()):
            return int(text)
        self._gathered.problem(
            f"priority {text[:100]!r} is not a whole number from 0: read as 1", element.line
        )
        return 1

    def _iri(self, element: Element) -> str | None:
        """An IRI of RDF, which stays as it is, unless it is relative."""
        url = self._gathered.address(element.text, element.line)
        return element.text if url and _ABSOLUTE.fullmatch(element.text) else url


def _slicing(element: Element) -> str | None:
    return element.attributes.get("slicing", "").strip()[:100].lower() or None


def _first(fields: Fields, name: str) -> Element | None:
    return next(iter(fields.get(name, ())), None)


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
