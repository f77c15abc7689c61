"""What leads a harvester: each request asks robots.txt, waits for its turn, and stays in its queue."""

from collections.abc import Awaitable, Callable, Iterator
from hashlib import blake2b

from pyoxigraph import BlankNode, Quad

from tamias.crawl.analysing.extractor import Extractor, discard, start_of
from tamias.model.capture import Capture, Request
from tamias.model.finding import Finding, Quads

AskOnce = Callable[[Request], Awaitable[Capture]]
"""One request, with all that must be asked and waited for before it; never raises for what a server does."""


class HarvestClient:
    """Carries out `protocols.PoliteClient` for one harvest."""

    def __init__(
        self, ask: AskOnce, extractor: Extractor, hear: Callable[[Capture, Request], Awaitable[None]]
    ) -> None:
        """`hear` is told of every capture, before anybody reads it."""
        self._ask = ask
        self._extractor = extractor
        self._hear = hear
        self.last: Capture | None = None
        self.count_held: Callable[[], Awaitable[int]] | None = None
        self._bytes = 0

    async def ask(self, request: Request) -> Capture:
        self.step_ends()
        capture = await self._ask(request)
        self._bytes += capture.body.size if capture.body else 0
        self.last = capture
        await self._hear(capture, request)
        return capture

    def body(self, capture: Capture, most: int) -> bytes:
        return start_of(capture.body, most) if capture.body else b""

    def read(self, capture: Capture) -> Iterator[Finding]:
        labels = _Labels(capture)
        for finding in self._extractor.findings(capture):
            if isinstance(finding, Quads):
                finding = Quads([labels.stable(quad) for quad in finding.quads])  # noqa: PLW2901
            yield finding

    async def records_held(self) -> int:
        return await self.count_held() if self.count_held else 0

    def bytes_since(self) -> int:
        """Bytes of all bodies since this was last asked."""
        size, self._bytes = self._bytes, 0
        return size

    def step_ends(self) -> None:
        """What the last answer holds on disk is not needed any more."""
        if self.last is not None:
            discard(self.last.body)


class _Labels:
    """Blank nodes of one answer under names that no other answer uses, the same in every run."""

    def __init__(self, capture: Capture) -> None:
        digest = capture.body.sha256 if capture.body else ""
        self._prefix = "p" + blake2b(f"{capture.final_url}\n{digest}".encode(), digest_size=8).hexdigest()
        self._names: dict[BlankNode, BlankNode] = {}

    def stable(self, quad: Quad) -> Quad:
        terms = [self._stable(term) for term in (quad.subject, quad.object)]
        if terms == [quad.subject, quad.object]:
            return quad
        return Quad(terms[0], quad.predicate, terms[1], quad.graph_name)  # type: ignore[arg-type]

    def _stable(self, term: object) -> object:
        if not isinstance(term, BlankNode):
            return term
        return self._names.setdefault(term, BlankNode(f"{self._prefix}x{len(self._names)}"))
