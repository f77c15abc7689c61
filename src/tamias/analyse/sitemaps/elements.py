"""Cuts XML into the entries of its root, each with its direct children, and keeps nothing else.

Names are resolved here and not by expat, which gives up at a prefix that nobody declared. What entries say
is gathered into batches and counted against the limits, with what is wrong.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar
from xml.parsers import expat

import msgspec

from tamias.analyse.chunks import MIB, RefusedError
from tamias.model.errors import UrlError
from tamias.model.finding import Finding, Links, Problem
from tamias.model.kind import SITEMAP
from tamias.model.site import Hint, Hints, SemanticDataset, SemanticDatasets, sitemap_folder
from tamias.model.url import fetch_url, resolve
from tamias.settings import AnalyseSettings

MAX_TOKEN = MIB
"""A tag or comment of more bytes than this is not waited for: expat begins it anew with every chunk."""

MAX_TEXT = 8192
"""Characters kept of the text of one element."""

MAX_CHILDREN = 20_000
"""Elements kept of one entry, such as the parts of a dump."""

MAX_NAMESPACES = 100
"""Prefixes declared by one element; each scope has its own table."""


_RSS_ENTRIES = 3
"""The depth of entries in RSS, which has a channel around them."""


class Element(msgspec.Struct):
    """An element as far as sitemaps need it."""

    space: str
    """The namespace; of an undeclared prefix the prefix itself, with its colon."""
    name: str
    """The local name in lower case, for sitemaps in the wild have all spellings."""
    line: int
    attributes: dict[str, str] = {}
    """By local name, in lower case."""
    text: str = ""
    """Without the white space around it; empty where there are elements in it."""
    children: list["Element"] = []

    def child(self, name: str, spaces: frozenset[str]) -> "Element | None":
        """The first child of a name."""
        return next((each for each in self.children if each.name == name and each.space in spaces), None)


Take = Callable[[Element, Element], None]
"""Called with the root, which has no children, and with each entry when it is complete."""


class Elements:
    """Reads XML in UTF-8. Every call may raise `RefusedError` or `expat.ExpatError`."""

    def __init__(self, take: Take, max_depth: int) -> None:
        self._take = take
        self._max_depth = max_depth
        self._depth = 0
        self._entry_depth = 2
        self._root: Element | None = None
        self._entry: Element | None = None
        self._open: Element | None = None
        self._text: list[str] = []
        self._size = 0
        self._spaces: list[tuple[int, dict[str, str]]] = [(0, {"xml": "xml:"})]
        self._fed = 0
        self._parser = self._new_parser()

    @property
    def line(self) -> int:
        """Return the line of the parser."""
        return self._parser.CurrentLineNumber

    def feed(self, chunk: bytes) -> None:
        self._parser.Parse(chunk, False)
        self._fed += len(chunk)
        if self._fed - self._parser.CurrentByteIndex > MAX_TOKEN:
            raise RefusedError(f"XML tag or comment of more than {MAX_TOKEN} bytes, the rest was not read")

    def end(self) -> None:
        self._parser.Parse(b"", True)

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        # As if there were a DTD that is not read: feeds use the entities of HTML without declaring them.
        parser.UseForeignDTD(True)
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = _refuse_entity
        parser.AttlistDeclHandler = _refuse_attributes
        return parser

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > self._max_depth:
            raise RefusedError(f"XML nested more than {self._max_depth} deep (limit analyse.xml_depth)")
        below = self._depth - self._entry_depth
        if below > 1:
            self._open = None
            return
        if attributes:
            self._declare(attributes)
        element = self._element(tag, attributes)
        if self._root is None:
            self._root = element
            self._entry_depth = _RSS_ENTRIES if element.name == "rss" else 2
        elif below == 0:
            self._entry = element
        elif below == 1 and self._entry is not None:
            self._add_child(self._entry, element)
        self._open, self._text, self._size = element, [], 0

    def _end(self, tag: str) -> None:
        below = self._depth - self._entry_depth
        if below <= 1:
            if self._open is not None:
                self._open.text = "".join(self._text).strip()
                self._open = None
            if below == 0 and self._root is not None and self._entry is not None:
                self._take(self._root, self._entry)
                self._entry = None
            if self._spaces[-1][0] == self._depth:
                self._spaces.pop()
        self._depth -= 1

    def _characters(self, text: str) -> None:
        if self._open is not None and self._size < MAX_TEXT:
            self._text.append(text[: MAX_TEXT - self._size])
            self._size += len(text)

    def _element(self, tag: str, attributes: dict[str, str]) -> Element:
        prefix, _, name = tag.rpartition(":")
        space = self._spaces[-1][1].get(prefix, prefix + ":" if prefix else "")
        line = self._parser.CurrentLineNumber
        if not attributes:
            return Element(space, name.lower(), line)
        return Element(space, name.lower(), line, _by_local_name(attributes))

    def _declare(self, attributes: dict[str, str]) -> None:
        declared = {
            key[6:]: value for key, value in attributes.items() if key == "xmlns" or key.startswith("xmlns:")
        }
        if len(declared) > MAX_NAMESPACES:
            raise RefusedError(f"element with more than {MAX_NAMESPACES} namespaces, the rest was not read")
        if declared:
            self._spaces.append((self._depth, {**self._spaces[-1][1], **declared}))

    def _add_child(self, entry: Element, child: Element) -> None:
        if len(entry.children) == MAX_CHILDREN:
            raise RefusedError(f"entry of more than {MAX_CHILDREN} elements, the rest was not read")
        entry.children.append(child)


def _by_local_name(attributes: dict[str, str]) -> dict[str, str]:
    return {
        key.rpartition(":")[2].lower(): value
        for key, value in attributes.items()
        if not key.startswith("xmlns")
    }


def _refuse_entity(name: str, *_declaration: object) -> None:
    raise RefusedError(f"declares the XML entity {name[:100]!r}, which no sitemap needs: not read")


def _refuse_attributes(element: str, *_declaration: object) -> None:
    """Default values would come with every element, for nothing."""
    raise RefusedError(f"declares attributes of {element[:100]!r}, which no sitemap needs: not read")


BATCH = 1000
_SHOWN = 100

T = TypeVar("T")


class Gathered:
    """The content of a sitemap."""

    def __init__(self, url: str, limits: AnalyseSettings) -> None:
        self.url = url
        self._limits = limits
        self._folder = _folder(url)
        self._most_problems = limits.max_errors
        self._left = limits.sitemap_urls
        self._pages: list[str] = []
        self._sitemaps: list[str] = []
        self._hints: list[Hint] = []
        self._beyond: list[Hint] = []
        self._datasets: list[SemanticDataset] = []
        self._problems: list[Problem] = []
        self._problem_count = 0
        self._odd: dict[str, tuple[str, int, int]] = {}

    def address(self, reference: str, line: int, base: str | None = None) -> str | None:
        """The `fetch_url` of a reference; of one that is none, or too long, a problem is told."""
        if len(reference) > self._limits.sitemap_loc:
            self.problem(
                f"address of more than {self._limits.sitemap_loc} characters"
                " (limit analyse.sitemap_loc), left out",
                line,
            )
            return None
        try:
            if not reference:
                raise UrlError("an address is empty")
            return resolve(reference, base or self.url)
        except UrlError as error:
            self.problem(str(error), line)
            return None

    def count(self) -> None:
        """Counts an address. Raises `RefusedError` at the one too many."""
        if not self._left:
            limit = self._limits.sitemap_urls
            raise RefusedError(
                f"more than {limit} addresses (limit analyse.sitemap_urls): the rest is not read"
            )
        self._left -= 1

    def page(self, url: str) -> None:
        self.count()
        self._pages.append(url)

    def sitemap(self, url: str) -> None:
        self.count()
        self._sitemaps.append(url)

    def hint(self, hint: Hint) -> None:
        """Takes a hint, if it says anything."""
        if (hint.lastmod_ms, hint.changefreq, hint.priority, hint.sha256) != (None, None, None, None):
            (self._hints if hint.url.startswith(self._folder) else self._beyond).append(hint)

    def dataset(self, dataset: SemanticDataset) -> None:
        self.count()
        self._datasets.append(dataset)

    def problem(self, what: str, line: int | None = None) -> None:
        self._problem_count += 1
        if self._problem_count <= self._most_problems:
            self._problems.append(Problem(what, line))

    def sensible(self, field: str, read: Callable[[str], T | None], element: Element | None) -> T | None:
        """The value that is read from the text of an element; if there is none, that is noted.

        Files have the same fault throughout, so each field is told of once.
        """
        value = read(element.text) if element else None
        if element and value is None:
            first, at, count = self._odd.get(field, (element.text[:_SHOWN], element.line, 0))
            self._odd[field] = (first, at, count + 1)
        return value

    def batches(self) -> Iterator[Finding]:
        """Yield what there is, once it is enough for a batch."""
        hints = len(self._hints) + len(self._beyond)
        if max(len(self._pages) + len(self._sitemaps), hints) >= BATCH or self._datasets:
            yield from self._take()

    def rest(self) -> Iterator[Finding]:
        """Yield what is left at the end."""
        yield from self._take()
        for field, (text, line, count) in self._odd.items():
            more = f", and {count - 1} more like it" if count > 1 else ""
            yield Problem(f"{field} {text!r} is invalid and is left out{more}", line)
        if self._problem_count > self._most_problems:
            yield Problem(
                f"{self._problem_count - self._most_problems} more errors (limit analyse.max_errors)"
            )

    def _take(self) -> Iterator[Finding]:
        if self._pages:
            yield Links(self._pages, self.url)
        if self._sitemaps:
            yield Links(self._sitemaps, self.url, kind=SITEMAP)
        if self._hints or self._beyond:
            yield Hints(self._hints, self._beyond)
        if self._datasets:
            yield SemanticDatasets(self._datasets)
        yield from self._problems
        self._pages, self._sitemaps, self._hints, self._beyond = [], [], [], []
        self._datasets, self._problems = [], []


def _folder(url: str) -> str:
    try:
        return sitemap_folder(fetch_url(url))
    except UrlError:
        return sitemap_folder(url)
