"""Harvests a portal in a process of its own: `python -m ….harvest URL` prints what it took."""

import asyncio
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from benchmarks.measuring.proc import pss
from tamias.fetch.http import HttpFetcher
from tamias.fetch.options import HttpOptions
from tamias.harvesters.portals.ckan import CkanHarvester
from tamias.model.capture import Capture, Request, Stop
from tamias.model.finding import Datasets, Finding, Harvest, Links, Problem, Quads


class HarvestFigures(msgspec.Struct, kw_only=True):
    """What one harvest brought and took."""

    datasets: int = 0
    quads: int = 0
    links: int = 0
    problems: int = 0
    steps: int = 0
    requests: int = 0
    complete: bool = False
    reason: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_rss: int = 0
    peak_pss: int = 0
    """Looked at after each step, when all that it holds is in memory."""


class PlainClient:
    """Asks without delay and without robots.txt: the portal is ours."""

    def __init__(self, fetcher: HttpFetcher) -> None:
        self._fetcher = fetcher
        self._spooled: str | None = None
        self.requests = 0

    async def ask(self, request: Request) -> Capture:
        self.requests += 1
        self._forget()
        capture = await self._fetcher.fetch(request, _anywhere)
        self._spooled = capture.body.path if capture.body else None
        return capture

    def _forget(self) -> None:
        if self._spooled is not None:
            Path(self._spooled).unlink(missing_ok=True)

    def body(self, capture: Capture, most: int) -> bytes:
        if capture.body is None or capture.body.path is None:
            return (capture.body.data or b"")[:most] if capture.body else b""
        with Path(capture.body.path).open("rb") as file:
            return file.read(most)

    def read(self, capture: Capture) -> Iterator[Finding]:
        """No analyser is at hand: the API speaks JSON."""
        return iter(())

    async def records_held(self) -> int:
        """What is found is counted and let go of."""
        return 0


async def _anywhere(_target: str) -> Stop | None:
    return None


async def harvested(url: str, spool: str) -> HarvestFigures:
    """Harvests to the end; what is found is counted and let go of."""
    fetcher = HttpFetcher(
        HttpOptions(user_agent="tamias/bench", spool_dir=spool),
        forbidden=lambda _address: None,
        now=lambda: time.time_ns() // 1_000_000,
        retry_after=lambda _value, _now: None,
    )
    client, figures = PlainClient(fetcher), HarvestFigures()
    started, cpu = time.perf_counter(), time.process_time()
    async for step in CkanHarvester().harvest(Harvest(url=url, kind="ckan"), client):
        for finding in step.findings:
            _count(finding, figures)
        figures.steps += 1
        figures.peak_pss = max(figures.peak_pss, pss(os.getpid()))
        if step.end:
            figures.complete, figures.reason = step.end.complete, step.end.reason
    figures.seconds, figures.cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    figures.requests = client.requests
    figures.peak_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    await fetcher.close()
    return figures


def _count(finding: Finding, figures: HarvestFigures) -> None:
    if isinstance(finding, Quads):
        figures.quads += len(finding.quads)
    elif isinstance(finding, Datasets):
        figures.datasets += len(finding.datasets)
    elif isinstance(finding, Links):
        figures.links += len(finding.references)
    elif isinstance(finding, Problem):
        figures.problems += 1


def main() -> None:
    """Harvests the portal that the command line names, and writes the figures as JSON."""
    with TemporaryDirectory(prefix="tamias-bench-") as spool:
        figures = asyncio.run(harvested(sys.argv[1], spool))
    sys.stdout.buffer.write(msgspec.json.encode(figures))


if __name__ == "__main__":
    main()
