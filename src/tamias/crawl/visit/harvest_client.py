"""What leads a harvester: each request asks robots.txt, waits for its turn, and stays in its queue."""

from collections.abc import Awaitable, Callable, Iterator
from hashlib import blake2b

import msgspec

from tamias.content.blank_labels import Labels
from tamias.crawl.analysing.extractor import Extractor, discard, start_of
from tamias.model.capture import Capture, Request
from tamias.model.finding import Finding, Quads

AskOnce = Callable[[Request], Awaitable[Capture]]
"""One request, with all that must be asked and waited for before it; never raises for what a server does."""
PauseFor = Callable[[int], Awaitable[bool]]
"""Waits as many milliseconds as a server asked for; false, at once, where that is too long to wait for."""
PAUSES = 5
"""Pauses for one request, one after another, before the harvest is given back and goes on later."""
TOO_MANY_REQUESTS = 429


class HarvestClient:
    """Carries out `protocols.PoliteClient` for one harvest."""

    def __init__(
        self,
        ask: AskOnce,
        pause: PauseFor,
        usual_pause: int,
        extractor: Extractor,
        hear: Callable[[Capture, Request], Awaitable[None]],
    ) -> None:
        """`hear` gets every capture, before anybody reads it.

        `usual_pause` (milliseconds) is for a server that wants fewer requests and does not say when.
        """
        self._ask = ask
        self._pause = pause
        self._usual_pause = usual_pause
        self._extractor = extractor
        self._hear = hear
        self.last: Capture | None = None
        self.count_held: Callable[[], Awaitable[int]] | None = None
        self._bytes = 0

    async def ask(self, request: Request) -> Capture:
        """Send a request. Wait for a pause that the server asks for, and send the request again."""
        capture = await self._ask_once(request)
        for _ in range(PAUSES):
            if capture.retry_after_ms is None or not await self._pause(capture.retry_after_ms):
                break
            capture = await self._ask_once(request)
        return capture

    async def _ask_once(self, request: Request) -> Capture:
        self.step_ends()
        capture = await self._ask(request)
        if capture.status == TOO_MANY_REQUESTS and capture.retry_after_ms is None:
            capture = msgspec.structs.replace(capture, retry_after_ms=self._usual_pause)
        self._bytes += capture.body.size if capture.body else 0
        self.last = capture
        await self._hear(capture, request)
        return capture

    def body(self, capture: Capture, most: int) -> bytes:
        return start_of(capture.body, most) if capture.body else b""

    def read(self, capture: Capture) -> Iterator[Finding]:
        labels = _labels(capture)
        for finding in self._extractor.findings(capture):
            if isinstance(finding, Quads):
                finding = Quads([labels.quad(quad) for quad in finding.quads])  # noqa: PLW2901
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


def _labels(capture: Capture) -> Labels:
    """The labels of one answer: no other answer uses them, and every run gives the same ones."""
    digest = capture.body.sha256 if capture.body else ""
    return Labels("p" + blake2b(f"{capture.final_url}\n{digest}".encode(), digest_size=8).hexdigest())
