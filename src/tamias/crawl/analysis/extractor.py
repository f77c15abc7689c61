"""Open, analyse, write: one fetched body becomes quads in a segment and links for the frontier."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

import msgspec
from pyoxigraph import NamedNode, Quad, RdfFormat

from tamias.analyse.links.discovery import discovery_links, kinds_in
from tamias.content.containers.codecs import BUFFER, CODECS, HEAD
from tamias.content.containers.documents import ARCHIVES, documents, start_of, whole
from tamias.content.formats import syntax_of
from tamias.content.quad_lines import QuadLines, rdf_links
from tamias.content.sniff import found_type, signed_type
from tamias.crawl.analysis.analysers import (
    HARMLESS_BYTES,
    Analysers,
    ContextCache,
    LinkFollowing,
    in_linked_context,
    open_limits,
    quick_lines,
)
from tamias.model.capture import Body, Capture, Extent
from tamias.model.dataset import Dataset
from tamias.model.document import (
    Document,
    DocumentBudget,
    LimitExceeded,
    NotAtOnce,
    Overblown,
    TextPosition,
)
from tamias.model.finding import Datasets, Finding, Links, Problem, Quads
from tamias.model.kind import SITEMAP
from tamias.model.site import Hint, Hints, Metas, SemanticDataset, SemanticDatasets, Signal
from tamias.plugins import load_all
from tamias.protocols import DocumentSink
from tamias.seeds.well_known import stands_there
from tamias.settings import Settings
from tamias.sinks.segments.naming import Graphs, Naming, own_lines

SMALL_BODY = 256 * 1024
PACKED_TYPES = frozenset({*CODECS, *ARCHIVES})
MOST_PROBLEMS = 20
MOST_RENAMED = 1000
STORED_BYTES = 16 << 20
"""N-Quads of a large document between two positions that are stored."""
MOST_DATASETS = 1000
MOST_HINTS = 50_000
PAGES = frozenset({"text/html", "application/xhtml+xml"})
_DATASET = frozenset(NamedNode(f"{scheme}://schema.org/Dataset") for scheme in ("http", "https"))
_ONLY_LABELLED = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
"""Syntaxes in which every blank node has a label."""
_TYPE_BY_KIND: dict[tuple[str, str | None], str] = {("text/plain", SITEMAP): "text/x-sitemap"}
"""What content alone cannot tell."""

TakeLinks = Callable[[Sequence[str], str, str | None], None]
"""Called with references, what they are relative to and what kind they are of, as they are found."""

NewDocument = Callable[[], AbstractContextManager[DocumentSink]]
"""Opens a place for one document's quads."""


class Extraction(msgspec.Struct, kw_only=True):
    """The results of reading one body."""

    media_type: str | None = None
    quads: int = 0
    links: int = 0
    cut: int = 0
    """What kept links out that were put while it was read: bits of `tamias.model.cut`."""
    bytes: int | None = None
    """Of all answers of a harvest; None where the capture's body tells."""
    wanted: list[str] = msgspec.field(default_factory=list)
    """Addresses of contexts that were not at hand; with them, reading again would give more."""
    semantic: list[SemanticDataset] = msgspec.field(default_factory=list)
    """Datasets that a sitemap offers as a whole."""
    datasets: list[Dataset] = msgspec.field(default_factory=list)
    """What a page or a catalogue describes."""
    metas: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """What the page itself says about its use."""
    signals: tuple[Signal, ...] = ()
    """What the site says about the use of it, all in all."""
    hints: list[Hint] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)
    read: bool = False
    """Whether the body, or the harvest, was read to its end."""
    damaged: bool = False
    """Whether the body is damaged or ends too early, so that content is missing."""
    limit: str | None = None
    """The limit that cut the reading short; then no statement of it is kept."""
    overblown: bool = False
    """Whether the body became so much that it is taken for a bomb."""
    saving_ms: int | None = None
    """From the end of the response until all of it was analysed and written."""
    extent: Extent | None = None
    renamed_graphs: tuple[tuple[str, str], ...] = ()


class ReadingState(msgspec.Struct, kw_only=True):
    """The position reached in a large body, and what was found before it."""

    found: Extraction
    part: int
    """Documents and problems of the body that were passed."""
    position: TextPosition | None = None
    """Where to go on in the next document."""
    numbered: int = 0
    """Its blank nodes without a label before that."""


class StoredReading(Protocol):
    """Stores how far a body was read, so that reading goes on there after a death."""

    @property
    def start(self) -> ReadingState | None:
        """Return the state that was stored last; None if reading starts from the beginning."""
        ...

    def save(self, reading: ReadingState) -> None:
        """Store it, with all that was written before."""
        ...


class Wanting(Exception):
    """A document wants contexts that nobody has tried to get yet. What was read of it is not kept."""

    def __init__(self, addresses: list[str]) -> None:
        super().__init__(", ".join(addresses))
        self.addresses = addresses


class _DocumentOnDemand:
    """Opens a place for a document's quads with the first of them: most pages have none."""

    def __init__(self, new_document: NewDocument, stored: StoredReading | None) -> None:
        self._new_document = new_document
        self._stored = stored
        self._context: AbstractContextManager[DocumentSink] | None = None
        self.extent: Extent | None = None
        """The place of the document; None if nothing was written since reading began or went on."""
        self._written = 0
        """Bytes since the last position that was stored."""

    def __enter__(self) -> Self:
        return self

    def write(self, chunk: bytes) -> None:
        if self._context is None:
            context = self._new_document()
            self._target = context.__enter__()
            self._context = context
        self._target.write(chunk)
        self._written += len(chunk)

    @property
    def is_due(self) -> bool:
        """Tell if it is time to store the reading position."""
        return self._stored is not None and self._written >= STORED_BYTES

    def save(self, reading: ReadingState) -> None:
        """Store it."""
        if self._stored is not None:
            self._stored.save(reading)
        self._written = 0

    def __exit__(self, *raised: Any) -> bool | None:
        if self._context is None:
            return None
        if raised[0] is None:
            self.extent = self._target.extent  # before another document follows
        return self._context.__exit__(*raised)


class Extractor:
    """Reads bodies with the installed analysers. May be used by two threads with two writers."""

    def __init__(self, settings: Settings, contexts: ContextCache | None = None) -> None:
        """`contexts` gives the JSON-LD contexts that are at hand."""
        self._contexts = contexts
        self._limits = open_limits(settings)
        self._follow = {
            position: position in settings.analyse.follow
            for position in ("subjects", "predicates", "objects", "datatypes")
        }
        self._schemes = settings.filters.schemes
        self._graphs = Graphs(settings.sinks.graphs)
        self._analyse = settings.analyse
        self._analysers = Analysers(settings, contexts)

    def load_everything(self) -> None:
        """Loads at once what documents may ask for, for a process that cannot open files later."""
        self._analysers.load_everything()

    def extract(
        self,
        capture: Capture,
        body: Body,
        new_document: NewDocument,
        take_links: TakeLinks,
        kind: str | None = None,
        stored: StoredReading | None = None,
        most_bytes: int | None = None,
        *,
        at_once: bool = False,
    ) -> Extraction:
        """Reads a body to its end, a limit, or a fault; never raises for what stands in it.

        With `stored` it goes on where that says; `most_bytes` may be unpacked of it, else what settings say.
        Raises `Wanting` when contexts are wanted that are not at hand, and `NotAtOnce` when a document that
        all others wait for takes too long: then nothing of it was written.
        """
        start = stored.start if stored else None
        found = start.found if start else Extraction()
        if most_bytes is not None:
            self._limits = msgspec.structs.replace(self._limits, max_bytes=most_bytes)
        budget = None
        if kind is not None or body.data is None or len(body.data) > HARMLESS_BYTES:
            budget = DocumentBudget(body.size, self._analyse.growth, at_once=at_once)
        try:
            # A kind says more than a type: a sitemap may be plain text.
            quick = quick_lines(capture, body.data, self._analyse, budget) if kind is None else None
            if quick is not None:
                return self._quick(capture, body, *quick, new_document, take_links, budget)
            budget = budget or DocumentBudget(body.size, self._analyse.growth, at_once=at_once)
            with _DocumentOnDemand(new_document, stored) as target:
                following = LinkFollowing(_headers(capture), found, take_links, budget)
                self._read(capture, body, start or ReadingState(found=found, part=0), target, following, kind)
                untried = self._contexts.to_fetch(found.wanted) if self._contexts else []
                if untried:
                    raise Wanting(untried)
        except LimitExceeded as limit:
            return _stopped(found, limit)
        found.read = True
        found.extent = target.extent if found.quads else None
        return found

    def _quick(
        self,
        capture: Capture,
        body: Body,
        media_type: str,
        statements: list[QuadLines],
        new_document: NewDocument,
        take_links: TakeLinks,
        budget: DocumentBudget | None,
    ) -> Extraction:
        """Write the statements of a strict parse and follow their links, like any other statements."""
        found = Extraction(media_type=media_type, quads=sum(map(len, statements)), read=True)
        if not found.quads:
            return found
        url = capture.final_url
        numbered = None if syntax_of(media_type) in _ONLY_LABELLED else 0
        naming: Naming | None = None
        with new_document() as target:
            for lines in statements:
                text = own_lines(lines, url, budget)
                if text is None:
                    naming = naming or Naming(url, body.sha256, graphs=self._graphs, numbered=numbered)
                    text = naming.nquads(lines, budget)
                # Its headers have no signals, so all links are followed: see `quick_lines`.
                for references, base, kind in self._keep(lines, text, target, budget, url):
                    if budget is not None:
                        budget.spend(len(references) * len(base))
                    found.links += len(references)
                    take_links(references, base, kind)
            found.extent = target.extent
        if naming is not None:
            _note_names(found, naming)
        return found

    def _keep(
        self,
        quads: Sequence[Quad],
        text: bytes,
        target: DocumentSink | _DocumentOnDemand,
        budget: DocumentBudget | None,
        url: str,
    ) -> list[tuple[Sequence[str], str, str | None]]:
        """Write statements as `text`; return their links, each with what it is relative to and its kind."""
        if budget is not None:
            budget.spend(len(text))
        target.write(text)
        plain, kinds = self.links_of(quads), kinds_in(quads, url)
        if not kinds:
            return [(plain, url, None)] if plain else []
        # What stands at an endpoint's own address is requested by the copy of the endpoint.
        endpoints = {address for links in kinds if links.kind == "sparql" for address in links.references}
        own = [link for link in plain if link not in endpoints]
        return [(own, url, None), *((links.references, links.base, links.kind) for links in kinds)]

    def _read(
        self,
        capture: Capture,
        body: Body,
        start: ReadingState,
        target: _DocumentOnDemand,
        following: LinkFollowing,
        kind: str | None,
    ) -> None:
        found = start.found
        for links in discovery_links(_headers(capture), capture.final_url):
            following.take(links.references, links.base, links.kind)
        for number, part in _after(start, self._documents(capture, body, following.budget)):
            if isinstance(part, Problem):
                _note(found, part)
                continue
            found.media_type = found.media_type or part.media_type
            naming: Naming | None = None  # most pages have no quads to be named
            for finding in self._findings(part, kind):
                if isinstance(finding, Quads):
                    numbered = start.numbered if part.position else 0
                    naming = naming or self._naming(capture.final_url, body.sha256, part, numbered)
                    found.quads += len(finding.quads)
                    budget, url = following.budget, capture.final_url
                    text = naming.nquads(finding.quads, budget)
                    for references, base, of_kind in self._keep(finding.quads, text, target, budget, url):
                        following.take(references, base, of_kind)
                    if part.media_type in PAGES:
                        _take_datasets(found, finding.quads, capture.final_url)
                elif isinstance(finding, Links | Metas):
                    following.hear(finding)
                elif isinstance(finding, TextPosition):
                    _pass(finding, number, found, naming, target)
                else:
                    _take(found, finding)
            if naming is not None:
                _note_names(found, naming)
            if target.is_due:
                target.save(ReadingState(found=found, part=number + 1))

    def _documents(
        self, capture: Capture, body: Body, budget: DocumentBudget
    ) -> Iterator[Document | Problem]:
        parts = documents(
            body,
            url=capture.final_url,
            declared_type=capture.declared_type,
            limits=self._limits,
            budget=budget,
        )
        return in_linked_context(parts, capture)

    def _naming(self, url: str, sha256: str, part: Document, numbered: int) -> Naming:
        return Naming(
            url,
            sha256,
            member=part.member,
            graph=part.graph,
            graphs=self._graphs,
            numbered=None if syntax_of(part.media_type) in _ONLY_LABELLED else numbered,
        )

    def _findings(self, document: Document, kind: str | None = None) -> Iterator[Finding]:
        media_type = _TYPE_BY_KIND.get((document.media_type, kind), document.media_type)
        analyser = self._analysers.get(media_type)
        return analyser.analyse(document) if analyser else iter(())

    def findings(self, capture: Capture) -> Iterator[Finding]:
        """Yield what a capture holds; a limit that was exceeded becomes a problem."""
        body = capture.body
        if body is None:
            return
        budget = DocumentBudget(body.size, self._analyse.growth)
        try:
            for part in self._documents(capture, body, budget):
                for finding in [part] if isinstance(part, Problem) else self._findings(part):
                    if isinstance(finding, Quads):
                        budget.spend(_size(finding.quads))
                    yield finding
        except LimitExceeded as limit:
            yield Problem(str(limit))

    def stands_there(self, capture: Capture) -> bool:
        """Tell if the response from a well-known address is of the kind expected there."""
        if capture.body is None:
            return False
        head = whole(capture.body, most=capture.body.size) or b""
        return stands_there(capture.url, self.found_type(capture), head)

    def found_type(self, capture: Capture) -> str | None:
        """Return the media type of the body itself, before it is unpacked."""
        if capture.body is None:
            return None
        head = start_of(capture.body, HEAD)
        return found_type(head, capture.declared_type, capture.final_url)

    def harvest_naming(self, url: str, trusted: bool) -> Naming:
        """The names of what a harvest brings: blank nodes mean the same throughout."""
        return Naming(url, "", graphs=Graphs.ALL if trusted else self._graphs)

    def links_of(self, quads: Sequence[Quad]) -> list[str]:
        """The IRIs that are followed."""
        return sorted(rdf_links(quads, schemes=self._schemes, **self._follow))


def _size(quads: Sequence[Quad]) -> int:
    return len(quads.nquads) if isinstance(quads, QuadLines) else sum(len(str(quad)) for quad in quads)


def _take_datasets(found: Extraction, quads: Sequence[Quad], url: str) -> None:
    if any(quad.object in _DATASET for quad in quads):
        for datasets_in in load_all("page_datasets").values():
            _take(found, Datasets(datasets_in(quads, url)))


def _stopped(found: Extraction, limit: LimitExceeded) -> Extraction:
    """Drop what was found before a limit; raise `NotAtOnce`, as the document is read once more after it."""
    if isinstance(limit, NotAtOnce):
        raise limit
    found.limit, found.overblown = str(limit), isinstance(limit, Overblown)
    found.quads, found.links, found.metas = 0, 0, []
    return found


def _headers(capture: Capture) -> tuple[tuple[str, str], ...]:
    return capture.hops[-1].headers if capture.hops else ()


def is_small(body: Body) -> bool:
    """Tell if a body is quick to read; a packed body never counts as small."""
    data = body.data
    return data is not None and len(data) <= SMALL_BODY and signed_type(data[:HEAD], ()) not in PACKED_TYPES


def _note_names(found: Extraction, naming: Naming) -> None:
    found.renamed_graphs += tuple(naming.renamed.items())[: MOST_RENAMED - len(found.renamed_graphs)]
    found.quads -= naming.left_out
    if naming.left_out:
        _note(found, Problem(f"{naming.left_out} statements left out: N-Quads cannot express them"))


_Part = Document | Problem


def _after(start: ReadingState, parts: Iterator[_Part]) -> Iterator[tuple[int, _Part]]:
    """The parts that were not read before, with their numbers; the first perhaps from its middle on."""
    for number, part in enumerate(parts):
        if number < start.part:
            while isinstance(part, Document) and part.stream.read(BUFFER):
                pass
        elif number == start.part and start.position is not None and isinstance(part, Document):
            yield number, msgspec.structs.replace(part, position=start.position)
        else:
            yield number, part


def _pass(
    position: TextPosition, part: int, found: Extraction, naming: Naming | None, target: _DocumentOnDemand
) -> None:
    """Let go of what is not needed behind a position, and store it if that is due."""
    if naming is None:
        return
    naming.pass_position()
    if target.is_due:
        so_far = msgspec.structs.replace(found, problems=[*found.problems])
        _note_names(so_far, naming)
        target.save(ReadingState(found=so_far, part=part, position=position, numbered=naming.numbered or 0))


def _take(found: Extraction, finding: Finding) -> None:
    """Add a finding that is neither written as quads nor followed as links."""
    if isinstance(finding, Problem):
        _note(found, finding)
    elif isinstance(finding, SemanticDatasets):
        found.semantic += finding.datasets[: MOST_DATASETS - len(found.semantic)]
    elif isinstance(finding, Datasets):
        found.datasets += finding.datasets[: MOST_DATASETS - len(found.datasets)]
    elif isinstance(finding, Hints):
        found.hints += finding.hints[: MOST_HINTS - len(found.hints)]


def _note(found: Extraction, problem: Problem) -> None:
    found.damaged |= problem.damage
    if problem.wants is not None:
        found.wanted.append(problem.wants)
    if len(found.problems) < MOST_PROBLEMS:
        found.problems.append(
            problem.what if problem.line is None else f"line {problem.line}: {problem.what}"
        )
