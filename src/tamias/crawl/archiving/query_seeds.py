"""A user's query to a SPARQL endpoint as a source of addresses, asked politely without a database."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from tamias.crawl.archiving.watching import Wanted
from tamias.crawl.fetching import fetchers
from tamias.crawl.reading.study import Study
from tamias.crawl.visits.guide import PoliteGuide
from tamias.crawl.visits.robots import few_hops, forbidden_by, robots_request, rules_in
from tamias.doors.sparql.select import addresses
from tamias.model.capture import Capture, Request, Stop
from tamias.model.errors import TamiasError
from tamias.model.outcome import Outcome
from tamias.model.url import authority
from tamias.permit.availability import robots_address
from tamias.permit.delay import host_delay_ms
from tamias.permit.robots import Rules
from tamias.protocols import Fetcher
from tamias.settings import Settings


async def query_wanted(settings: Settings, endpoint: str, query: str) -> AsyncIterator[Wanted]:
    """What the query gives: an address, with title, format, source (or dataset) and portal if it has them.

    Raises `TamiasError` when the endpoint does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="tamias-") as spool:
        made = fetchers(settings, Path(spool), _now)
        try:
            asker = _Asker(settings, made)
            guide = PoliteGuide(asker.ask, Study(settings), _unheard)
            async for row in addresses(guide, endpoint, query):
                yield _wanted(row, endpoint)
        finally:
            for fetcher in set(made.values()):
                await fetcher.close()


def _wanted(row: dict[str, str], endpoint: str) -> Wanted:
    address = next(iter(row.values()))
    return Wanted(
        url=row.get("url") or row.get("uri") or address,
        title=row.get("title"),
        format=row.get("format"),
        source=row.get("source") or row.get("dataset") or endpoint,
        portal=row.get("portal"),
    )


class _Asker:
    """One request at a time, with the delay that robots.txt or the settings want between two."""

    def __init__(self, settings: Settings, made: dict[str, Fetcher]) -> None:
        self._settings = settings
        self._fetchers = made
        self._rules: dict[str, Rules] = {}
        self._asked_at = float("-inf")

    async def ask(self, request: Request) -> Capture:
        """Never raises for what a server does."""
        fetcher = self._fetchers.get(request.url.partition(":")[0])
        if fetcher is None:
            raise TamiasError(f"no fetcher for {request.url}")
        rules = await self._rules_of(request.url, fetcher)
        refusal = forbidden_by(rules, request.url) if self._settings.permit.robots else None
        if refusal is not None:
            now = _now()
            return Capture(
                url=request.url, started_at=now, ended_at=now, outcome=Outcome.REFUSED, reason=refusal
            )
        delay = host_delay_ms(self._settings.fetch.delay, rules.crawl_delay, self._settings.permit.robots)
        await asyncio.sleep(self._asked_at + delay / 1000 - time.monotonic())
        try:
            return await fetcher.fetch(request, _follow)
        finally:
            self._asked_at = time.monotonic()

    async def _rules_of(self, url: str, fetcher: Fetcher) -> Rules:
        place = authority(url)
        if place not in self._rules:
            asked = self._settings.permit.robots
            self._rules[place] = (
                rules_in(await fetcher.fetch(robots_request(robots_address(url)), few_hops()))
                if asked
                else Rules()
            )
        return self._rules[place]


async def _follow(_target: str) -> Stop | None:
    return None


async def _unheard(_capture: Capture, _request: Request) -> None:
    pass


def _now() -> int:
    return time.time_ns() // 1_000_000
