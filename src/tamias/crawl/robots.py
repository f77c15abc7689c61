"""Asks robots.txt before a URL is fetched: from memory, from the database, or from the host itself."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from tamias.crawl.pace import Held
from tamias.model.capture import Body, Capture, Request, Stop
from tamias.model.outcome import Outcome
from tamias.model.url import authority
from tamias.permit.availability import (
    MOST_REDIRECTS,
    Access,
    expires_after,
    meaning,
    robots_address,
    rules_of,
)
from tamias.permit.delay import host_delay_ms
from tamias.permit.robots import MOST_BYTES, Rules, Verdict
from tamias.permit.store import Known, RobotsStore
from tamias.protocols import Fetcher
from tamias.settings import Settings

T = TypeVar("T")
InDatabase = Callable[..., Awaitable[T]]
_REMEMBERED = 10_000
_ATTEMPTS = 3


class RobotsDesk:
    """Gives the rules of authorities, fetching robots.txt at most once a day for all workers."""

    def __init__(
        self, settings: Settings, fetcher: Fetcher, store: RobotsStore, in_database: InDatabase[Known | None],
        now: Callable[[], int],
    ) -> None:  # fmt: skip
        self._settings = settings
        self._fetcher = fetcher
        self._store = store
        self._in_database = in_database
        self._now = now
        self._known: dict[str, Known] = {}

    async def refusal(self, url: str, held: Held) -> str | None:
        """Why robots.txt forbids the URL, with the line that does; None allows it. Sets the host's delay."""
        if not self._settings.permit.robots:
            held.delay_ms = host_delay_ms(self._settings.fetch.delay, None, obey_robots=False)
            return None
        rules = await self._rules(url, held)
        held.delay_ms = host_delay_ms(self._settings.fetch.delay, rules.crawl_delay, obey_robots=True)
        verdict = rules.verdict(url)
        return None if verdict.allowed else f"robots.txt: {verdict.rule}"

    async def _rules(self, url: str, held: Held) -> Rules:
        place = authority(url)
        known = self._known.get(place)
        if known is None or known.expires_at <= self._now():
            known = await self._in_database(self._store.read, held.lease.bucket, held.lease.qid, place)
            known = known or await self._fetch(url, place, held)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[place] = known
        return known.rules

    async def _fetch(self, url: str, place: str, held: Held) -> Known:
        capture = await self._ask(robots_address(url), held)
        if capture.outcome is Outcome.REFUSED:
            # Our own guard forbids the address: that is our word, not the host's, and is not kept.
            return Known(Rules(blanket=Verdict(False, capture.reason)), self._now() + 60_000)
        status = capture.status if capture.outcome is not Outcome.FAILED or capture.hops else None
        if capture.outcome is Outcome.FAILED and (status is None or status < 300):
            status = None
        rules = rules_of(status, _read(capture.body))
        header = capture.hops[-1].header("cache-control") if capture.hops else None
        seconds = expires_after(status, header)
        known = await self._in_database(
            self._store.write, held.lease.bucket, held.lease.qid, place, rules, status, seconds
        )
        assert known is not None
        return known

    async def _ask(self, address: str, held: Held) -> Capture:
        """Tries a few times: an unreachable robots.txt closes the whole host, so a hiccup should not."""
        wait = self._settings.crawl.retry_wait
        for attempt in range(_ATTEMPTS):
            await held.turn()
            capture = await self._fetcher.fetch(
                Request(url=address, accept="text/plain, */*;q=0.5"), _few_hops()
            )
            held.asked()
            unreachable = meaning(capture.status).access is Access.NONE
            if not (unreachable and capture.retry) or attempt == _ATTEMPTS - 1 or held.over:
                break
            await asyncio.sleep(wait * 2**attempt)
        return capture


def _few_hops() -> Callable[[str], Awaitable[Stop | None]]:
    left = MOST_REDIRECTS

    async def follow(_target: str) -> Stop | None:
        nonlocal left
        left -= 1
        return None if left >= 0 else Stop(Outcome.OK, "too many redirects")

    return follow


def _read(body: Body | None) -> bytes:
    if body is None:
        return b""
    if body.path is None:
        return (body.data or b"")[:MOST_BYTES]
    path = Path(body.path)
    with path.open("rb") as file:
        start = file.read(MOST_BYTES)
    path.unlink(missing_ok=True)
    return start
