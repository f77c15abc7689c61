"""A client for a server of one's own: it asks as fast as it is answered, and counts."""

from collections.abc import Iterator
from pathlib import Path

from tamias.content.containers.documents import documents
from tamias.crawl.analysing.analysers import Analysers, open_limits
from tamias.crawl.plan.admit import Admission
from tamias.crawl.request.lone import LoneClient
from tamias.model.capture import Capture, Request
from tamias.model.finding import Finding, Problem
from tamias.settings import FetchSettings, PermitSettings, Settings


class LoopbackClient:
    """Asks as fast as it is answered."""

    def __init__(self, spool: Path) -> None:
        permit = PermitSettings(allow_private=True, robots=False)
        settings = Settings(permit=permit, fetch=FetchSettings(delay=0.0))
        self._client = LoneClient(settings, spool, Admission(settings, []))
        self._limits = open_limits(settings)
        self._analysers = Analysers(settings)
        self._last: Capture | None = None
        self.requests = 0

    async def ask(self, request: Request) -> Capture:
        self._discard()
        self.requests += 1
        self._last = await self._client.ask(request)
        return self._last

    def body(self, capture: Capture, most: int) -> bytes:
        if capture.body is None:
            return b""
        if capture.body.path is None:
            return (capture.body.data or b"")[:most]
        with Path(capture.body.path).open("rb") as file:
            return file.read(most)

    def read(self, capture: Capture) -> Iterator[Finding]:
        if capture.body is None:
            return
        url, told = capture.final_url, capture.told_type
        for part in documents(capture.body, url=url, told_type=told, limits=self._limits):
            if not isinstance(part, Problem) and part.media_type in self._analysers:
                yield from self._analysers[part.media_type].analyse(part)

    async def records_held(self) -> int:
        """None: an endpoint has no records."""
        return 0

    async def close(self) -> None:
        """Lets go of connections and of the last answer."""
        self._discard()
        await self._client.close()

    def _discard(self) -> None:
        if self._last is not None and self._last.body is not None and self._last.body.path is not None:
            Path(self._last.body.path).unlink(missing_ok=True)
