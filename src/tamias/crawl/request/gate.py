"""The gate: the only way to ask for an address that the Web told us.

Every request passes it, and every hop of a redirect, whatever it is for: a page, robots.txt, a sitemap, a
JSON-LD context, a well-known place, a harvester's question. It asks block lists and `exclude`, stays in the
queue that is held, waits for the queue's turn, and the fetchers behind it ask the address guard. It learns
which hosts can be reached, and whether the network of the worker itself is down.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.crawl.plan.fetch_options import address_of, http_options
from tamias.crawl.store.held_lease import HeldLease, NotNow
from tamias.model.capture import Capture, Outcome, Request, Stop, Unreached
from tamias.model.cut import FILTER
from tamias.model.kind import ROBOTS
from tamias.model.lease import ABANDONED, Unreachable
from tamias.model.url import authority
from tamias.permit.addresses import forbidden
from tamias.permit.delay import ReachPolicy, failed_again, retry_after_ms
from tamias.plugins import load_all
from tamias.protocols import Fetcher, Follow, RefuseResponse
from tamias.settings import Settings

RECENT_SECONDS = 60.0
LEAST_HOSTS = 3
"""Fewer hosts that stop answering may be a coincidence, or one server."""
GRACE_SECONDS = 3.0
"""A host that answered a moment ago and now does not: so long we look whether others do the same."""
FIRST_PROBE, LONGEST_PROBE = 1.0, 15.0
LEASE_SECONDS = 5.0
_REMEMBERED = 20_000
_log = logging.getLogger(__name__)


class Network:
    """The state of this worker's own network, for one event loop."""

    def __init__(self, max_wait: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`max_wait`: seconds after which an outage is taken for granted, and hosts are deferred."""
        self._max_wait = max_wait
        self._clock = clock
        self._answered: dict[str, float] = {}
        self._lost: dict[str, float] = {}
        self._lost_at: float | None = None
        self._changed = asyncio.Event()
        self._probe_at = self._lease_at = 0.0
        self._wait = FIRST_PROBE

    @property
    def is_lost(self) -> bool:
        """Tell if most hosts that answered a minute ago no longer do."""
        return self._lost_at is not None

    @property
    def words(self) -> str | None:
        """Return why workers wait."""
        if not self.is_lost:
            return None
        return (
            f"no network? {len(self._lost)} hosts that answered a minute ago do not; trying one now and then"
        )

    def answered_lately(self, place: str) -> bool:
        """Tell if the place answered within the last minute."""
        return self._clock() - self._answered.get(place, float("-inf")) < RECENT_SECONDS

    def answered(self, place: str) -> None:
        """Note that a place answered, which ends an outage."""
        if len(self._answered) >= _REMEMBERED:
            self._answered.clear()
        self._answered[place] = self._clock()
        self._lost.pop(place, None)
        if self.is_lost:
            _log.warning("the network is back")
            self._end()

    async def holds(self, place: str) -> bool:
        """Tell if a failed request is due to our own network; wait a moment if that is unclear."""
        if not self.is_lost and self.answered_lately(place):
            self._lost[place] = self._clock()
            self._judge()
            if not self.is_lost:
                await self._news(GRACE_SECONDS)
        return self.is_lost

    async def probe_turn(self, held: HeldLease) -> None:
        """Returns when the network is back, or when this host is to be tried whether it is.

        Raises `NotNow` when the lease ends meanwhile.
        """
        while self.is_lost:
            now = self._clock()
            if self._lost_at is not None and now - self._lost_at > self._max_wait:
                _log.warning(
                    "there was no network for %g s: what cannot be reached is deferred", self._max_wait
                )
                self._end()
            elif now >= self._probe_at:
                self._probe_at = now + self._wait * random.uniform(1, 1.25)
                self._wait = min(LONGEST_PROBE, 2 * self._wait)
                break
            else:
                await self._news(min(1.0, self._probe_at - now))
            if held.over:
                raise NotNow
        await held.turn()

    def may_lease(self) -> bool:
        """Tell if a host may be leased; during an outage only one now and then."""
        now = self._clock()
        if self.is_lost and now < self._lease_at:
            return False
        self._lease_at = now + LEASE_SECONDS
        return True

    def _judge(self) -> None:
        now = self._clock()
        self._lost = {place: at for place, at in self._lost.items() if now - at < RECENT_SECONDS}
        if len(self._lost) < LEAST_HOSTS:
            return
        first = min(self._lost.values())
        alive = sum(at > first for at in self._answered.values())
        if len(self._lost) > 2 * alive:
            self._lost_at, self._wait = now, FIRST_PROBE
            self._probe_at = now + self._wait
            self._lease_at = now + LEASE_SECONDS
            _log.warning("%s", self.words)
            self._tell()

    def _end(self) -> None:
        self._lost_at = None
        self._lost.clear()
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _news(self, seconds: float) -> None:
        """Wait until something changes, but at most `seconds`."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return


Fetch = Callable[[], Coroutine[Any, Any, Capture]]

FIRST_CONTACT = 1.5
"""Seconds for a host that never answered, while others wait for its slot; later it gets more time."""
MOSTLY_DEAD_CONTACT = 0.4
"""The same while most hosts that are new come to nothing."""
RETRY_PART = 4
"""Of the slots, at most a quarter is for hosts that could not be reached before."""
_LOOK_SECONDS = 0.25
_CONTACTS = 64
_MAY_BE_US = (Unreached.UNKNOWN, Unreached.SILENT)


class Reach:
    """The knowledge of one worker about which hosts can be reached."""

    def __init__(self, settings: Settings, now: Callable[[], int]) -> None:
        crawl = settings.crawl
        tries, hours = crawl.unreachable
        self._policy = ReachPolicy(
            retries=crawl.retries,
            retry_wait=int(crawl.retry_wait * 1000),
            max_wait=int(crawl.max_wait * 1000),
            least_tries=tries,
            least_time=int(hours * 3_600_000),
        )
        self._now = now
        self._began = now()
        self._most_retries = max(1, settings.fetch.concurrency // RETRY_PART)
        self._retries = 0
        self._lost_contacts: deque[bool] = deque(maxlen=_CONTACTS)
        self.network = Network(crawl.max_wait)
        self.is_full: Callable[[], bool] = lambda: False
        """Whether other hosts may be waiting for a slot; the worker knows."""

    async def ask(self, url: str, held: HeldLease, fetch: Fetch) -> Capture:
        """Make one request, repeated if our own network was down meanwhile. Raises `NotNow`."""
        place = authority(url)
        while True:
            capture = await self._contact(place, held, fetch, url)
            held.note_request()
            if capture.hops:
                held.answered = True
                self.network.answered(place)
            elif capture.unreached in _MAY_BE_US and await self.network.holds(place):
                await self.network.probe_turn(held)
                continue
            return capture

    def note(self, url: str, held: HeldLease, capture: Capture) -> None:
        """Keeps what an attempt says about the place: it answers, or it is to be tried again later."""
        place = authority(url)
        if capture.unreached is None:
            if capture.hops:
                held.reached(place)
            return
        if capture.unreached is Unreached.SILENT and self.network.answered_lately(place):
            return  # the place is well, only this URL is not
        held.unreached(
            failed_again(
                held.unreachable.get(place),
                place,
                capture.unreached,
                capture.reason,
                now=self._now(),
                run_began=self._began,
                policy=self._policy,
                chance=random.random(),
            )
        )

    def waiting(self, url: str, held: HeldLease) -> Unreachable | None:
        """Return the state of the URL's place if it is too early to try it again."""
        state = held.unreachable.get(authority(url)) if held.unreachable else None
        return state if state is not None and self._now() < state.next_at else None

    def retrying(self, url: str, held: HeldLease) -> AbstractContextManager[None]:
        """Places that were not reached before share a part of the slots; one too many waits longer."""
        state = held.unreachable.get(authority(url)) if held.unreachable else None
        return nullcontext() if state is None else self._sharing_slots(state, held)

    @contextmanager
    def _sharing_slots(self, state: Unreachable, held: HeldLease) -> Iterator[None]:
        if self._now() < state.next_at:
            yield
            return
        if self._retries >= self._most_retries:
            wait = max(1000, self._policy.retry_wait) * random.uniform(1, 4)
            held.unreached(msgspec.structs.replace(state, next_at=self._now() + int(wait)))
            yield
            return
        self._retries += 1
        try:
            yield
        finally:
            self._retries -= 1

    async def _contact(self, place: str, held: HeldLease, fetch: Fetch, url: str) -> Capture:
        if held.answered or place in held.unreachable or self.network.answered_lately(place):
            return await fetch()
        begun, started_at = time.monotonic(), self._now()
        task = asyncio.ensure_future(fetch())
        try:
            while not (await asyncio.wait({task}, timeout=_LOOK_SECONDS))[0]:
                if self.is_full() and time.monotonic() - begun >= self._first_contact:
                    self._lost_contacts.append(True)
                    reason = f"no answer within {time.monotonic() - begun:.1f} s at first contact"
                    return _unanswered(url, started_at, self._now(), reason)
        finally:
            task.cancel()
        capture = task.result()
        self._lost_contacts.append(not capture.hops)
        return capture

    @property
    def _first_contact(self) -> float:
        lost = sum(self._lost_contacts)
        return MOSTLY_DEAD_CONTACT if lost > _CONTACTS * 3 // 4 else FIRST_CONTACT


def given_up_words(state: Unreachable) -> str:
    """Return why the URLs of a place fail for good."""
    since = datetime.fromtimestamp(state.since / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    tries = "1 try" if state.tries == 1 else f"{state.tries} tries"
    return f"unreachable since {since} ({tries}): {state.reason}"


def _unanswered(url: str, started_at: int, ended_at: int, reason: str) -> Capture:
    return Capture(
        url=url,
        started_at=started_at,
        ended_at=ended_at,
        outcome=Outcome.FAILED,
        reason=reason,
        retry=True,
        unreached=Unreached.UNKNOWN,
    )


class Gate:
    """Sends requests in queues that are held. Never raises for what a server does; `NotNow` if early."""

    def __init__(self, settings: Settings, spool: Path, admission: Admission, now: Callable[[], int]) -> None:
        self._fetchers = _fetchers(settings, spool, now)
        self._admission = admission
        self._now = now
        self._refusals: list[RefuseResponse] = list(load_all("responses").values())
        self._address_of = address_of(settings) if settings.frontier.per_address else None
        self.reach = Reach(settings, now)
        """Who can be reached."""

    async def request(
        self,
        request: Request,
        held: HeldLease,
        follow: Follow,
        kind: str | None = None,
        unwanted: Callable[[str], Stop | None] = lambda _target: None,
    ) -> Capture:
        """Make one attempt; `unwanted` and `follow` decide which redirects are followed."""
        refused = self.refusal(request.url, held, kind)
        if refused is not None:
            return refused

        async def hop(target: str) -> Stop | None:
            held.note_request()
            stop = self._stop(target, kind) or unwanted(target) or self._outside(target, held)
            stop = stop or await follow(target)
            if stop is None and held.must_wait:
                stop = Stop(Outcome.OK, f"redirects to {target}, which is visited in its turn")
            if stop is None:
                await held.turn()
            return stop

        await held.turn()
        try:
            fetcher = self._fetchers[_scheme(request.url)]
            capture = await self.reach.ask(request.url, held, lambda: fetcher.fetch(request, hop))
            return capture if kind == ROBOTS else self._judge(capture)
        except asyncio.CancelledError:
            # The server may still be at work on it: the delay begins when it has ended.
            held.blocked_until = max(held.blocked_until or 0, self._now() + ABANDONED * held.delay_ms)
            raise
        finally:
            held.note_request()

    def _judge(self, capture: Capture) -> Capture:
        """Refuse a response that is no document, such as a challenge page; its body is kept as an error's."""
        reason = next(filter(None, (refuse(capture) for refuse in self._refusals)), None)
        if reason is None:
            return capture
        body = capture.body or capture.error_body
        if body is not None and body.path is not None:  # too large to be a page that asks for something
            Path(body.path).unlink(missing_ok=True)
            body = None
        return msgspec.structs.replace(
            capture, outcome=Outcome.REFUSED, reason=reason, body=None, error_body=body, retry=False
        )

    def refusal(self, url: str, held: HeldLease, kind: str | None = None) -> Capture | None:
        """The attempt on an address that may not be asked for in this queue, if so."""
        reason = self._admission.blocked(url, kind)
        if reason is not None:
            return self.unasked(url, Outcome.REFUSED, reason, FILTER)
        if _scheme(url) not in self._fetchers:
            return self.unasked(url, Outcome.SKIPPED, f"no fetcher for {_scheme(url)} addresses")
        if not self._is_held(url, held):
            queue = self._admission.queue(url)
            reason = f"{url} is of the queue {queue}, not of {held.lease.host}"
            return self.unasked(url, Outcome.SKIPPED, reason)
        return None

    def unasked(self, url: str, outcome: Outcome, reason: str, cut: int = 0) -> Capture:
        """An attempt that ended before any request."""
        now = self._now()
        return Capture(url=url, started_at=now, ended_at=now, outcome=outcome, reason=reason, cut=cut)

    async def close(self) -> None:
        """Gives up what is under way."""
        for fetcher in set(self._fetchers.values()):
            await fetcher.close()

    def _stop(self, target: str, kind: str | None) -> Stop | None:
        reason = self._admission.blocked(target, kind)
        if reason is None:
            return None
        return Stop(Outcome.SKIPPED, f"redirects to {target}, which is not wanted: {reason}", FILTER)

    def _outside(self, target: str, held: HeldLease) -> Stop | None:
        """A redirect that leads out of the queue is for another queue."""
        if self._is_held(target, held):
            return None
        return Stop(Outcome.OK, f"redirects to {target}, which is visited in its own queue")

    def _is_held(self, url: str, held: HeldLease) -> bool:
        """Clients of the frontier may have named the queue: then its own URLs say what it holds.

        Where addresses have a cap, the lease is for the address of its tasks.
        """
        where = self._address_of
        if where is not None and held.tasks and where(url) != where(held.tasks[0].url):
            return False
        queue = self._admission.queue(url)
        return queue == held.lease.host or any(
            queue == self._admission.queue(task.url) for task in held.tasks
        )


def leads_out(capture: Capture) -> str | None:
    """Return the target of a redirect that was not followed because it belongs to another queue."""
    if capture.outcome is not Outcome.OK or not capture.hops:
        return None
    return capture.hops[-1].location


def _fetchers(settings: Settings, spool: Path, now: Callable[[], int]) -> dict[str, Fetcher]:
    """A fetcher for each scheme that an installed part can fetch."""
    options = http_options(settings, spool)
    guard: Callable[[str], str | None] = (
        (lambda _address: None) if settings.permit.allow_private else forbidden
    )
    made = [
        part(options, forbidden=guard, now=now, retry_after=retry_after_ms)
        for part in load_all("fetchers").values()
    ]
    return {scheme: fetcher for fetcher in made for scheme in fetcher.schemes}


@lru_cache(maxsize=4096)
def _scheme(url: str) -> str:
    return url.partition(":")[0].lower()
