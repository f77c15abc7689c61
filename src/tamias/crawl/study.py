"""Open, analyse, write: one fetched body becomes quads in a segment and links for the frontier."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
from pyoxigraph import Quad

from tamias.analyse.links import rdf_links
from tamias.crawl.analysers import analysers, open_limits
from tamias.model.capture import Body, Capture
from tamias.model.document import Document, LimitExceeded
from tamias.model.finding import Links, Problem, Quads
from tamias.model.record import Extent
from tamias.open.codecs import CODECS
from tamias.open.documents import ARCHIVES, documents
from tamias.open.signatures import signed_type
from tamias.open.streams import HEAD
from tamias.settings import Settings
from tamias.sinks.naming import Graphs, Naming
from tamias.sinks.segments import DocumentWriter

SMALL_BODY = 256 * 1024
PACKED_TYPES = frozenset({*CODECS, *ARCHIVES})
MOST_PROBLEMS = 20
MOST_RENAMED = 1000

TakeLinks = Callable[[Sequence[str], str], None]
"""Called with references and what they are relative to, as they are found."""

NewDocument = Callable[[], AbstractContextManager[DocumentWriter]]
"""Opens a place for one document's quads."""


class Found(msgspec.Struct, kw_only=True):
    """What a body held."""

    media_type: str | None = None
    quads: int = 0
    links: int = 0
    problems: list[str] = msgspec.field(default_factory=list)
    limit: str | None = None
    """The limit that cut the reading short; what was read before it counts."""
    extent: Extent | None = None
    renamed_graphs: tuple[tuple[str, str], ...] = ()


class Study:
    """Reads bodies with the installed analysers. May be used by two threads with two writers."""

    def __init__(self, settings: Settings) -> None:
        self._limits = open_limits(settings)
        self._follow = {
            position: position in settings.analyse.follow
            for position in ("subjects", "predicates", "objects")
        }
        self._graphs = Graphs(settings.sinks.graphs)
        self._analysers = analysers(settings)

    def study(self, capture: Capture, body: Body, new_document: NewDocument, take_links: TakeLinks) -> Found:
        """Reads a body to its end, a limit, or a fault; never raises for what stands in it."""
        found = Found()
        with new_document() as target:
            try:
                self._read(capture, body, found, target, take_links)
            except LimitExceeded as limit:
                found.limit = str(limit)
        found.extent = target.extent if found.quads else None
        return found

    def _read(
        self,
        capture: Capture,
        body: Body,
        found: Found,
        target: DocumentWriter,
        take_links: TakeLinks,
    ) -> None:
        for part in documents(body, url=capture.final_url, told_type=capture.told_type, limits=self._limits):
            if isinstance(part, Problem):
                _note(found, part)
                continue
            found.media_type = found.media_type or part.media_type
            naming: Naming | None = None  # most pages have no quads to be named
            for finding in self._findings(part):
                if isinstance(finding, Quads):
                    naming = naming or self._naming(capture.final_url, body.sha256, part)
                    found.quads += len(finding.quads)
                    target.write(naming.nquads(finding.quads))
                    self._take_rdf_links(finding.quads, capture.final_url, found, take_links)
                elif isinstance(finding, Links):
                    found.links += len(finding.references)
                    take_links(finding.references, finding.base)
                else:
                    _note(found, finding)
            if naming is not None:
                _note_names(found, naming)

    def _naming(self, url: str, sha256: str, part: Document) -> Naming:
        return Naming(url, sha256, member=part.member, graph=part.graph, graphs=self._graphs)

    def _findings(self, document: Document) -> Iterator[Quads | Links | Problem]:
        analyser = self._analysers.get(document.media_type)
        return analyser.analyse(document) if analyser else iter(())

    def _take_rdf_links(self, quads: list[Quad], base: str, found: Found, take_links: TakeLinks) -> None:
        links = sorted(rdf_links(quads, **self._follow))
        found.links += len(links)
        take_links(links, base)


def is_small(body: Body) -> bool:
    """Whether a body is read so quickly that everybody else can wait; one that unpacks may be of any size."""
    data = body.data
    return data is not None and len(data) <= SMALL_BODY and signed_type(data[:HEAD], ()) not in PACKED_TYPES


def discard(body: Body | None) -> None:
    """The body is not needed any more."""
    if body is not None and body.path is not None:
        Path(body.path).unlink(missing_ok=True)


def _note_names(found: Found, naming: Naming) -> None:
    found.renamed_graphs += tuple(naming.renamed.items())[: MOST_RENAMED - len(found.renamed_graphs)]
    found.quads -= naming.left_out
    if naming.left_out:
        _note(found, Problem(f"{naming.left_out} statements left out: N-Quads cannot say them"))


def _note(found: Found, problem: Problem) -> None:
    if len(found.problems) < MOST_PROBLEMS:
        found.problems.append(
            problem.what if problem.line is None else f"line {problem.line}: {problem.what}"
        )
