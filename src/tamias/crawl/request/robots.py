"""Asks robots.txt before a URL is fetched: from memory, from the store, or from the host itself.

A verb without a frontier has a gate of its own: nobody else asks, so queues need no lease, only turns.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from tamias.crawl.plan.admit import Admission, first
from tamias.crawl.plan.fetch_options import address_of
from tamias.crawl.request.gate import Gate, given_up_words, leads_out
from tamias.crawl.store.held_lease import HeldLease, NotNow
from tamias.crawl.store.visit import WorkerStore
from tamias.model.capture import Body, Capture, Outcome, Request, Stop, Unreached
from tamias.model.cut import PRIVATE
from tamias.model.cut import ROBOTS as BY_ROBOTS
from tamias.model.item import WATCH, Item
from tamias.model.kind import ROBOTS, kind_key
from tamias.model.lease import Lease, Task
from tamias.model.url import authority, host
from tamias.permit.addresses import forbidden, is_address
from tamias.permit.availability import (
    LONGEST_CACHED,
    MOST_REDIRECTS,
    HostAccess,
    KnownRobots,
    expires_after,
    meaning,
    robots_address,
    rules_of,
)
from tamias.permit.delay import host_delay_ms
from tamias.permit.robots import MOST_BYTES, RobotsVerdict, Rules
from tamias.protocols import Follow
from tamias.settings import Settings

_FIRST_WAIT_MS = 500
_LONGEST_WAIT_MS = 30_000
_DAY_MS = LONGEST_CACHED * 1000
TOO_MANY = Rules(blanket=RobotsVerdict(True, meaning(302).reason))
"""What more redirects than are followed lead to."""


class RobotsRedirects:
    """Finds the rules at the end of redirects from queue to queue."""

    def __init__(self, store: WorkerStore, admission: Admission) -> None:
        self._store = store
        self._admission = admission
        self._waits: dict[str, int] = {}

    async def rules(self, known: KnownRobots, held: HeldLease) -> KnownRobots:
        """The rules that `known` leads to. Raises `NotNow` until somebody has asked for them."""
        rules = known.rules
        for _ in range(MOST_REDIRECTS):
            if rules.leads_to is None:
                return msgspec.structs.replace(known, rules=rules)
            rules = await self._rules_at(rules.leads_to, held)
        return msgspec.structs.replace(known, rules=rules if rules.leads_to is None else TOO_MANY)

    async def _rules_at(self, address: str, held: HeldLease) -> Rules:
        reason = self._admission.blocked(address, ROBOTS)
        if reason is not None:
            return Rules(
                blanket=RobotsVerdict(False, f"it redirects to {address}, which is not wanted: {reason}")
            )
        key, since = kind_key(address, ROBOTS), self._store.now() // _DAY_MS * _DAY_MS
        packed = (await self._store.read_contexts([key], since)).get(key)
        if packed is not None:
            self._waits.pop(address, None)
            return msgspec.msgpack.decode(packed, type=Rules)
        await self._store.put([self._item(address, held)])
        held.blocked_until = self._store.now() + self._wait(address)
        raise NotNow

    def _item(self, address: str, held: HeldLease) -> Item:
        """Return an item with the date in its key, so that the file is requested again each day."""
        item = first(self._admission, address, ROBOTS, held.tasks[0])
        return msgspec.structs.replace(item, key=f"{item.key} {self._store.now() // _DAY_MS}")

    def _wait(self, address: str) -> int:
        if len(self._waits) > _REMEMBERED:
            self._waits.clear()
        wait = self._waits.get(address, _FIRST_WAIT_MS)
        self._waits[address] = min(2 * wait, _LONGEST_WAIT_MS)
        return wait


_REMEMBERED = 10_000
_REFUSAL_SECONDS = 60
_OUR_WORD = (Outcome.REFUSED, Outcome.SKIPPED)


class RobotsDelayed(Exception):
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
        self._keepers = [each for each in store.hooks if each.keeps_responses]
        self._known: dict[str, KnownRobots] = {}
        self._out_of_reach: set[str] = set()

    async def refusal(self, url: str, held: HeldLease) -> str | None:
        """Return the line of robots.txt that forbids the URL, or None; set the host's delay.

        Raises `RobotsDelayed` while robots.txt is unavailable, and `NotNow` while the rules are elsewhere
        and have not been asked for.
        """
        if not self._settings.permit.robots or not url.startswith(("http://", "https://")):
            # RFC 9309 is about the Web; an FTP server has no such file.
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
        """The sitemaps that robots.txt names; None where it closes the place. Raises `RobotsDelayed`."""
        rules = await self._rules(url, held)
        closed = rules.blanket is not None and not rules.blanket.allowed
        return None if closed else rules.sitemaps

    def out_of_reach(self, url: str) -> bool:
        """Tell if our own guard forbids the address, so that robots.txt could not be requested."""
        return authority(url) in self._out_of_reach

    async def visit(self, url: str, held: HeldLease) -> tuple[Capture, Rules]:
        """A file to which the robots.txt of another queue redirects, asked for in its own queue."""
        capture = await self._ask(url, held)
        return capture, rules_in(capture)

    def signals(self, url: str) -> tuple[tuple[str, str], ...]:
        """Return the usage signals of robots.txt for a URL, if the file is in memory."""
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
            raise RobotsDelayed(capture)
        closed = meaning(_status(capture)).access is HostAccess.NONE
        if closed and (capture.retry or capture.unreached is not None):
            raise RobotsDelayed(self._unreachable(capture, held))
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
        request = robots_request(address)
        capture = await self._gate.request(request, held, few_hops(), ROBOTS)
        for hook in self._keepers:
            held.written += await asyncio.to_thread(hook.keep_response, capture, request)
        return capture

    def _unreachable(self, capture: Capture, held: HeldLease) -> Capture:
        """The attempt that nobody answered, or with an error of the server's: nothing may be fetched yet."""
        capture = msgspec.structs.replace(
            capture, retry=True, unreached=capture.unreached or Unreached.UNKNOWN
        )
        self._gate.reach.note(capture.url, held, capture)
        return capture


def robots_request(address: str) -> Request:
    """Return the request for robots.txt."""
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
    """Return the rules from a request for robots.txt, or its redirect; the body is used up."""
    if capture.outcome in _OUR_WORD:
        return Rules(blanket=RobotsVerdict(False, capture.reason))
    target = leads_out(capture)
    if target is not None and len(capture.hops) <= MOST_REDIRECTS:
        return Rules(blanket=RobotsVerdict(False, capture.reason), leads_to=target)
    return rules_of(_status(capture), _read(capture.body), why=capture.reason)


def forbidden_by(rules: Rules, url: str) -> str | None:
    """Return the line of the rules that forbids a URL; None if it is allowed."""
    verdict = rules.verdict(url)
    return None if verdict.allowed else f"robots.txt: {verdict.rule}"


def _status(capture: Capture) -> int | None:
    """The status that counts; None when no complete answer came."""
    cut_short = capture.outcome is Outcome.FAILED and (capture.status or 0) < 300
    return None if cut_short else capture.status


def _read(body: Body | None) -> bytes:
    """Return as much as is parsed and one byte more, which shows that the body is longer."""
    if body is None:
        return b""
    if body.path is None:
        return (body.data or b"")[: MOST_BYTES + 1]
    path = Path(body.path)
    with path.open("rb") as file:
        start = file.read(MOST_BYTES + 1)
    path.unlink(missing_ok=True)
    return start


def postponed(url: str, wait: RobotsDelayed) -> Capture:
    """Return the capture of a URL that was not requested because robots.txt has to wait."""
    return msgspec.structs.replace(
        wait.capture, url=url, hops=(), reason=f"robots.txt: {wait.capture.reason}"
    )


class PoliteFetcher:
    """Asks in queues that are held. Never raises for what a server does; `NotNow` when the host must wait."""

    def __init__(self, gate: Gate, robots: RobotsCache, admission: Admission) -> None:
        self.gate = gate
        self.robots = robots
        self.reach = gate.reach
        self._admission = admission

    async def fetch(self, request: Request, task: Task, held: HeldLease) -> Capture:
        """Make one attempt for a task whose host is held."""
        # A visit has asked for its own URL before anything else, and the gate asks again.
        if request.url != task.url and (refused := self.gate.refusal(request.url, held)) is not None:
            return refused
        if (state := self.reach.waiting(request.url, held)) is not None:
            early = self.gate.unasked(request.url, Outcome.FAILED, given_up_words(state))
            return msgspec.structs.replace(early, retry=not state.given_up)
        try:
            refusal = await self.robots.refusal(request.url, held)
        except RobotsDelayed as wait:
            return postponed(request.url, wait)
        if refusal is not None:
            cut = self._forbidden_by(request.url)
            reason = refusal.removeprefix("robots.txt: ") if cut == PRIVATE else refusal
            return self.gate.unasked(request.url, Outcome.REFUSED, reason, cut)
        capture = await self.gate.request(
            request,
            held,
            lambda target: self._follow(target, held),
            unwanted=lambda target: self._unwanted(target, task),
        )
        self.reach.note(request.url, held, capture)
        return capture

    def _forbidden_by(self, url: str) -> int:
        """Return the cut for a refusal: a private address if we could not request robots.txt."""
        return PRIVATE if self.robots.out_of_reach(url) else BY_ROBOTS

    def _unwanted(self, target: str, task: Task) -> Stop | None:
        refused_by = self._admission.refused_by(target, task.depth, scoped=task.crawl != WATCH)
        if refused_by is None:
            return None
        refusal, cut = refused_by
        return Stop(Outcome.SKIPPED, f"redirects to {target}, which is not wanted: {refusal}", cut)

    async def _follow(self, target: str, held: HeldLease) -> Stop | None:
        """A redirect within the queue is followed if robots.txt allows it."""
        try:
            refusal = await self.robots.refusal(target, held)
        except RobotsDelayed as wait:
            if wait.capture.retry_after_ms is None:
                return Stop(Outcome.OK, f"redirects to {target}, which is visited when it can be reached")
            held.blocked_until = wait.capture.ended_at + wait.capture.retry_after_ms
            return Stop(Outcome.FAILED, f"redirects to {target}; robots.txt there: {wait}")
        if refusal is None:
            return None
        reason = f"redirects to {target}, refused by {refusal}"
        return Stop(Outcome.REFUSED, reason, self._forbidden_by(target))


_KEEPS_METHOD = (307, 308)


class LoneClient:
    """A client that makes one polite request at a time and follows redirects across queues."""

    def __init__(self, settings: Settings, spool: Path, admission: Admission) -> None:
        self._settings = settings
        self._admission = admission
        self._gate = Gate(settings, spool, admission, lambda: time.time_ns() // 1_000_000)
        self._held: dict[str, HeldLease] = {}
        self._rules: dict[str, Rules] = {}
        self._address_of = address_of(settings)

    async def ask(self, request: Request) -> Capture:
        """Asks robots.txt, then the address. Never raises for what a server does."""
        refusal = await self.refusal(request.url)
        if refusal is not None:
            return self._gate.unasked(request.url, Outcome.REFUSED, refusal)
        return await self._request(request, self._follow, self._settings.fetch.max_redirects)

    async def refusal(self, url: str) -> str | None:
        """Return why the address may not be requested, with the line of robots.txt if that is why."""
        held = self._queue(url)
        if (refused := self._gate.refusal(url, held)) is not None:
            return refused.reason
        if not self._settings.permit.robots or not url.startswith(("http://", "https://")):
            return None
        place = authority(url)
        if place not in self._rules:
            request = robots_request(robots_address(url))
            found = rules_in(await self._request(request, few_hops(), MOST_REDIRECTS, ROBOTS))
            self._rules[place] = found if found.leads_to is None else TOO_MANY
        rules = self._rules[place]
        held.delay_ms = max(held.delay_ms, host_delay_ms(0, rules.crawl_delay, obey_robots=True))
        return forbidden_by(rules, url)

    def address_refusal(self, url: str) -> str | None:
        """Return why its address would not be connected to, without a request: for a dry run.

        Requests are guarded when they connect, whatever the name's address is by then.
        """
        name = host(url).strip("[]")
        address = self._address_of(url).strip("[]")
        if not is_address(address):
            return f"name does not resolve: {name}"
        return None if self._settings.permit.allow_private else forbidden(address)

    async def close(self) -> None:
        """Gives up what is under way."""
        await self._gate.close()

    async def _request(
        self, request: Request, follow: Follow, queues: int, kind: str | None = None
    ) -> Capture:
        """Make a request that may be redirected through at most `queues` further queues."""
        capture = await self._gate.request(request, self._queue(request.url), follow, kind)
        target = leads_out(capture)
        if target is None or queues <= 0 or await follow(target) is not None:
            return capture
        body = request.body if capture.status in _KEEPS_METHOD else None
        return await self._request(
            msgspec.structs.replace(request, url=target, body=body), follow, queues - 1, kind
        )

    async def _follow(self, target: str) -> Stop | None:
        refusal = await self.refusal(target)
        return None if refusal is None else Stop(Outcome.REFUSED, f"redirects to {target}: {refusal}")

    def _queue(self, url: str) -> HeldLease:
        name = self._admission.queue(url)
        if name not in self._held:
            delay = host_delay_ms(self._settings.fetch.delay, None, obey_robots=False)
            lease = Lease(host=name, qid=0, bucket=0, token=0, ends_at=0, delay_ms=delay, tasks=())
            self._held[name] = HeldLease(lease, time.monotonic(), float("inf"), patience=float("inf"))
        return self._held[name]
