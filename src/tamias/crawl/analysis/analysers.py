"""The analysers of a crawl, made from its settings, the JSON-LD contexts that a worker has at hand, and
links on their way to the frontier, as far as their site lets them be followed.

A small RDF document that is what it is declared to be is parsed strictly (`quick_lines`): that proves it,
nothing is guessed. Everything else (faults, headers that say more, other types) goes through `content` and
`analyse`.
"""

import re
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pyoxigraph import RdfFormat, parse

from tamias.analyse.jsonld.contexts import Contexts
from tamias.analyse.links.discovery import json_ld_context
from tamias.analyse.markup.page import extractors
from tamias.content.containers.limits import OpenLimits
from tamias.content.formats import (
    FORMATS,
    JSON_LD,
    NQUADS,
    NTRIPLES,
    RDF_XML,
    TRIG,
    TURTLE,
    bare_type,
    load_analyser,
    syntax_of,
)
from tamias.content.quad_lines import QuadLines
from tamias.content.sniff import claimed_types, found_charset
from tamias.model.capture import Capture
from tamias.model.document import Document, DocumentBudget
from tamias.model.errors import UrlError
from tamias.model.finding import Links, Problem
from tamias.model.site import Metas
from tamias.model.url import resolve
from tamias.model.usage import verdict
from tamias.permit.signals import SIGNAL_HEADERS, signals_of
from tamias.plugins import load, load_all
from tamias.protocols import Analyser, PageRules
from tamias.settings import AnalyseSettings, Settings

if TYPE_CHECKING:
    from tamias.crawl.analysis.extractor import Extraction, TakeLinks

QUICK_BYTES = 32 * 1024
HARMLESS_BYTES = 4 * 1024
"""A document of so few becomes a megabyte at the most."""
MOST_TRIPLE_TERMS = 100
_SYNTAXES = {kind: syntax_of(kind) for kind in (NTRIPLES, NQUADS, TURTLE, TRIG, RDF_XML)}
_BY_LINE = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
_WITH_GRAPHS = (RdfFormat.N_QUADS, RdfFormat.TRIG)
_SAYS_MORE = frozenset({"link", *SIGNAL_HEADERS})
_MARKS = (b"\xef", b"\xfe", b"\xff")
_XML_START = re.compile(rb"\s*(?:<\?xml[^>]*\?>\s*)?<(?:[\w.-]+:)?RDF[\s>]")


def quick_lines(
    capture: Capture, data: bytes | None, limits: AnalyseSettings, budget: DocumentBudget | None
) -> tuple[str, list[QuadLines]] | None:
    """The media type and the statements; None when the document has to go the long way.

    No budget is needed for a document of `HARMLESS_BYTES`. Raises as `DocumentBudget.check` does.
    """
    if data is None or not 0 < len(data) <= QUICK_BYTES or data[:1] in _MARKS or not capture.hops:
        return None
    url, declared = capture.final_url, capture.declared_type
    media_type = next(iter(claimed_types(declared, url.partition("#")[0].partition("?")[0])), "")
    syntax = _SYNTAXES.get(media_type)
    if syntax is None or not _SAYS_MORE.isdisjoint([name.lower() for name, _ in capture.hops[-1].headers]):
        return None
    if not _is_harmless(data, syntax, declared, limits):
        return None
    try:
        return media_type, _lines(data, syntax, url, budget)
    except (SyntaxError, ValueError):  # a fault, or the address is not an IRI
        return None


def _lines(data: bytes, syntax: RdfFormat, url: str, budget: DocumentBudget | None) -> list[QuadLines]:
    from tamias.analyse.rdf.statements import written
    from tamias.analyse.rdf.turtle import plain_lines

    has_graphs = syntax in _WITH_GRAPHS
    if syntax not in _BY_LINE:
        return written(parse(data, format=syntax, base_iri=url), budget, has_graphs=has_graphs)
    plain = plain_lines(data, has_graphs=has_graphs)
    if sum(len(lines.nquads) for lines in plain) == len(data):
        return plain
    return written(parse(data, format=syntax), None, has_graphs=has_graphs)


def _is_harmless(data: bytes, syntax: RdfFormat, declared: str | None, limits: AnalyseSettings) -> bool:
    """Tell if the data cannot nest too deep and holds nothing that the parser would silently skip."""
    if syntax in _BY_LINE:
        return data.count(b"<<") <= MOST_TRIPLE_TERMS
    if syntax != RdfFormat.RDF_XML:
        return data.count(b"[") + data.count(b"(") + data.count(b"{") <= limits.turtle_depth
    from tamias.analyse.xml.nodes import has_forbidden, has_unheeded

    return (
        b"<!" not in data
        and data.count(b"<") - data.count(b"</") <= limits.xml_depth
        and _XML_START.match(data) is not None
        and data.rstrip().endswith(b"RDF>")
        and found_charset(data[:256], declared, RDF_XML) in (None, "utf-8")
        and b"Literal" not in data
        and not has_unheeded(data)
        and not has_forbidden(data)
    )


class LinkFollowing:
    """Counts links and hands them on, as long as the site does not say that they are not to be followed."""

    def __init__(
        self,
        headers: Sequence[tuple[str, str]],
        found: "Extraction",
        take_links: "TakeLinks",
        budget: DocumentBudget,
    ) -> None:
        self.budget = budget
        self._headers = headers
        self._found = found
        self._take_links = take_links
        self._forbidden = bool(headers) and verdict(signals_of(headers, (), ())).nofollow

    def hear(self, finding: Links | Metas) -> None:
        """The page names links, or speaks of its use; this holds for what comes after."""
        if isinstance(finding, Links):
            self.take(finding.references, finding.base, finding.kind)
            return
        self._found.metas += finding.pairs
        self._forbidden = verdict(signals_of(self._headers, self._found.metas, ())).nofollow

    def take(self, references: Sequence[str], base: str, kind: str | None = None) -> None:
        """Hands links on."""
        if references and not self._forbidden:
            self.budget.spend(len(references) * len(base))  # each becomes at least as long
            self._found.links += len(references)
            self._take_links(references, base, kind)


_LATE = ("html.entities", "lxml.etree", "numpy", "tamias.analyse.rdf.turtle", "tamias.analyse.xml.nodes")
"""What the analysers load where a document needs it."""


class Analysers(Mapping[str, Analyser]):
    """The analyser of each media type that the table of formats or an installed part can read.

    Those of the table are loaded with the first document of their type: most crawls meet one or two of them.
    """

    def __init__(self, settings: Settings, contexts: Contexts | None = None) -> None:
        """`contexts` gives the JSON-LD contexts that are at hand."""
        self._offered: dict[str, Callable[[], Any]] = {
            "limits": lambda: settings.analyse,
            "rules": partial(list, rule_books(settings)),
            "contexts": lambda: contexts,
            "anchors": lambda: settings.strategy.links,
            "requisites": lambda: settings.crawl.requisites,
        }
        self._of_table = {name: row.analyser for name, row in FORMATS.items() if row.analyser}
        self._by_target: dict[str, Analyser] = {}
        self._made: dict[str, Analyser] = {}
        for part in load_all("analysers").values():
            analyser = self._make(part)
            self._made.update(dict.fromkeys(analyser.media_types, analyser))

    def __getitem__(self, media_type: str) -> Analyser:
        found = self._made.get(media_type)
        return self._load(media_type) if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._of_table | self._made)

    def __len__(self) -> int:
        return len(self._of_table | self._made)

    def load_everything(self) -> None:
        """Loads what documents may ask for later; for a process that will not be able to."""
        for module in (*_LATE, *extractors()):
            import_module(module)
        for media_type in self._of_table:
            self._load(media_type)

    def _load(self, media_type: str) -> Analyser:
        target = self._of_table[media_type]
        if target not in self._by_target:
            self._by_target[target] = self._make(load_analyser(media_type))
        return self._made.setdefault(media_type, self._by_target[target])

    def _make(self, part: Any) -> Analyser:
        """Gives a part what its constructor asks for by name: `limits`, `rules`, `contexts` and the like."""
        parameters = signature(part).parameters
        made: Analyser = part(**{name: make() for name, make in self._offered.items() if name in parameters})
        return made


def most_unpacked(settings: Settings, place: str) -> int:
    """Return how many bytes a body may unpack to: the setting, or else half of the free space on its disk."""
    return settings.open.max_unpacked or shutil.disk_usage(place).free // 2


def open_limits(settings: Settings) -> OpenLimits:
    """Return the limits for unpacking a body."""
    wanted = settings.open
    return OpenLimits(
        max_bytes=most_unpacked(settings, tempfile.gettempdir()),
        max_ratio=wanted.max_ratio,
        max_members=wanted.max_members,
        max_layers=wanted.max_layers,
        max_archives=wanted.max_archives,
    )


def rule_books(settings: Settings) -> list[PageRules]:
    """The scraping rules in force; raises `ConfigError` with file and line."""
    return [load("page_rules", "scraping")(Path(place)) for place in settings.analyse.rules]


_OWN_MEANING = frozenset({"application/rdf+json", "application/linkset+json"})


def in_linked_context(parts: Iterator[Document | Problem], capture: Capture) -> Iterator[Document | Problem]:
    """The parts of a body, plain JSON among them as JSON-LD where its answer names a context."""
    for part in parts:
        yield part if isinstance(part, Problem) else _in_context(part, capture)


def _in_context(document: Document, capture: Capture) -> Document:
    """The document as JSON-LD in the context that its answer names; the same where it names none."""
    found = document.media_type
    if found != "application/json" and (not found.endswith("+json") or found in _OWN_MEANING):
        return document
    if bare_type(capture.declared_type) == JSON_LD or document.member is not None or not capture.hops:
        return document
    target = json_ld_context(capture.hops[-1].headers)
    if target is None:
        return document
    try:
        context = resolve(target, capture.final_url)
    except UrlError:
        return document
    return msgspec.structs.replace(document, media_type=JSON_LD, context=context)


MAX_CONTEXT = 1 << 20
MAX_CONTEXTS = 256
ROUNDS = 10
"""How often a document may be analysed again because a context named another context."""
ACCEPT_CONTEXT = "application/ld+json, application/json;q=0.9, */*;q=0.1"


class ContextCache:
    """Answers from memory only; whoever analyses a document fetches what was wanted and analyses it again.

    An address that gave nothing is remembered too, so that nobody asks for it over and over.
    """

    def __init__(self, most: int = MAX_CONTEXTS) -> None:
        self._most = most
        self._known: OrderedDict[str, bytes | None] = OrderedDict()

    def __call__(self, address: str) -> bytes | None:
        """The context, if it is at hand. Safe to call from any thread."""
        return self._known.get(address)

    def to_fetch(self, wanted: Iterable[str]) -> list[str]:
        """Return the wanted Web addresses that nobody has tried yet."""
        addresses = dict.fromkeys(wanted)
        return [
            each for each in addresses if each.startswith(("http://", "https://")) and each not in self._known
        ]

    def put(self, address: str, data: bytes | None) -> None:
        """Keeps a context, or that there is none; one that is too large counts as none."""
        self._known[address] = data if data is not None and len(data) <= MAX_CONTEXT else None
        while len(self._known) > self._most:
            self._known.popitem(last=False)
