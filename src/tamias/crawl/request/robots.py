"""Asks robots.txt before a URL is fetched: from memory, from the store, or from the host itself."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from tamias.crawl.request.gate import Gate, leads_out
from tamias.crawl.request.robots_redirects import RobotsRedirects
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.worker_store import WorkerStore
from tamias.model.capture import Body, Capture, Outcome, Request, Stop, Unreached
from tamias.model.kind import ROBOTS
from tamias.model.url import authority, host
from tamias.permit.availability import (
    MOST_REDIRECTS,
    HostAccess,
    expires_after,
    meaning,
    robots_address,
    rules_of,
)
from tamias.permit.delay import host_delay_ms
from tamias.permit.robots import MOST_BYTES, RobotsVerdict, Rules
from tamias.permit.store import KnownRobots
from tamias.settings import Settings

_REMEMBERED = 10_000
_REFUSAL_SECONDS = 60
_OUR_WORD = (Outcome.REFUSED, Outcome.SKIPPED)


class AskedToWait(Exception):
    """robots.txt is not to be had now: the host wants a pause, or cannot be reached."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture.reason)
        self.capture = capture


class RobotsCache:
    """Gives the rules of authorities, fetching robots.txt at most once a day for all workers."""

    def __init__(
        self, settings: Settings, gate: Gate, store: WorkerStore, redirects: RobotsRedirects
    ) -> None:
        self._settings = settings
        self._gate = gate
        self._redirects = redirects
        self._store = store
        self._known: dict[str, KnownRobots] = {}
        self._out_of_reach: set[str] = set()

    async def refusal(self, url: str, held: HeldLease) -> str | None:
        """Why robots.txt forbids the URL, with the line that does; None allows it. Sets the host's delay.

        Raises `AskedToWait` when robots.txt is not to be had now, and `NotNow` while the rules are elsewhere
        and have not been asked for.
        """
        if not self._settings.permit.robots or not _has_robots(url):
            held.delay_ms = self._delay_ms(None)
            return None
        rules = await self._rules(url, held)
        held.delay_ms = self._delay_ms(rules.crawl_delay)
        refusal = forbidden_by(rules, url)
        if refusal is not None and host(url) in self._settings.permit.granted:
            held.granted = f"{refusal}, set aside by permit.granted"
            return None
        return refusal

    async def sitemaps(self, url: str, held: HeldLease) -> tuple[str, ...] | None:
        """The sitemaps that robots.txt names; None where it closes the place. Raises `AskedToWait`."""
        rules = await self._rules(url, held)
        closed = rules.blanket is not None and not rules.blanket.allowed
        return None if closed else rules.sitemaps

    def out_of_reach(self, url: str) -> bool:
        """Whether our own guard forbids the address, so that robots.txt could not be asked for."""
        return authority(url) in self._out_of_reach

    async def visit(self, url: str, held: HeldLease) -> tuple[Capture, Rules]:
        """A file to which the robots.txt of another queue redirects, asked for in its own queue."""
        capture = await self._gate.request(robots_request(url), held, few_hops(), ROBOTS)
        return capture, rules_in(capture)

    def signals(self, url: str) -> tuple[tuple[str, str], ...]:
        """What robots.txt says about the use of what is served; only from memory."""
        known = self._known.get(authority(url))
        return known.rules.usage(url) if known is not None else ()

    def _delay_ms(self, crawl_delay: float | None) -> int:
        return host_delay_ms(self._settings.fetch.delay, crawl_delay, self._settings.permit.robots)

    async def _rules(self, url: str, held: HeldLease) -> Rules:
        place = authority(url)
        known = self._known.get(place)
        if known is None or known.expires_at <= self._store.now():
            known = await self._store.read_robots(held.lease, place)
            known = known or await self._fetch(url, place, held)
            known = await self._redirects.rules(known, held)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
                self._out_of_reach.clear()
            self._known[place] = known
        return known.rules

    async def _fetch(self, url: str, place: str, held: HeldLease) -> KnownRobots:
        self._out_of_reach.discard(place)
        capture = await self._ask(robots_address(url), held)
        if capture.retry_after_ms is not None:
            raise AskedToWait(capture)
        closed = meaning(_status(capture)).access is HostAccess.NONE
        if closed and (capture.retry or capture.unreached is not None):
            raise AskedToWait(self._unreachable(capture, held))
        self._gate.reach.note(capture.url, held, capture)
        rules = rules_in(capture)
        if capture.outcome in _OUR_WORD:
            # Our own guard or filters forbid the address: that is not the host's word, and is not kept.
            if capture.outcome is Outcome.REFUSED:
                self._out_of_reach.add(place)
            return KnownRobots(rules, self._store.now() + _REFUSAL_SECONDS * 1000)
        header = capture.hops[-1].header("cache-control") if capture.hops else None
        status = _status(capture)
        seconds = expires_after(status, header)
        return await self._store.write_robots(held.lease, place, rules, status, seconds)

    async def _ask(self, address: str, held: HeldLease) -> Capture:
        """Once: if it cannot be reached, that is tried again later, not in this slot."""
        return await self._gate.request(robots_request(address), held, few_hops(), ROBOTS)

    def _unreachable(self, capture: Capture, held: HeldLease) -> Capture:
        """The attempt that nobody answered, or with an error of the server's: nothing may be fetched yet."""
        capture = msgspec.structs.replace(
            capture, retry=True, unreached=capture.unreached or Unreached.UNKNOWN
        )
        self._gate.reach.note(capture.url, held, capture)
        return capture


def _has_robots(url: str) -> bool:
    """RFC 9309 is about the Web; an FTP server has no such file."""
    return url.startswith(("http://", "https://"))


def robots_request(address: str) -> Request:
    """How robots.txt is asked for."""
    return Request(url=address, accept="text/plain, */*;q=0.5")


def few_hops() -> Callable[[str], Awaitable[Stop | None]]:
    """Follows as many redirects as RFC 9309 wants, as far as the gate lets them."""
    left = MOST_REDIRECTS

    async def follow(_target: str) -> Stop | None:
        nonlocal left
        left -= 1
        return None if left >= 0 else Stop(Outcome.OK, "too many redirects")

    return follow


def rules_in(capture: Capture) -> Rules:
    """What an attempt to get robots.txt establishes, or where it leads; the body is used up."""
    if capture.outcome in _OUR_WORD:
        return Rules(blanket=RobotsVerdict(False, capture.reason))
    target = leads_out(capture)
    if target is not None and len(capture.hops) <= MOST_REDIRECTS:
        return Rules(blanket=RobotsVerdict(False, capture.reason), leads_to=target)
    return rules_of(_status(capture), _read(capture.body), why=capture.reason)


def forbidden_by(rules: Rules, url: str) -> str | None:
    """Why the rules forbid a URL, with the line that does."""
    verdict = rules.verdict(url)
    return None if verdict.allowed else f"robots.txt: {verdict.rule}"


def _status(capture: Capture) -> int | None:
    """The status that counts; None when no complete answer came."""
    cut_short = capture.outcome is Outcome.FAILED and (capture.status or 0) < 300
    return None if cut_short else capture.status


def _read(body: Body | None) -> bytes:
    """As much as is parsed, and one byte more, by which it is known to be cut."""
    if body is None:
        return b""
    if body.path is None:
        return (body.data or b"")[: MOST_BYTES + 1]
    path = Path(body.path)
    with path.open("rb") as file:
        start = file.read(MOST_BYTES + 1)
    path.unlink(missing_ok=True)
    return start
