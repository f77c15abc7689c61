"""Requests to hosts that may not answer: when, for how long, and what follows if nobody answers."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any

import msgspec

from tamias.crawl.request.network import Network
from tamias.crawl.store.held_lease import HeldLease
from tamias.model.capture import Capture, Outcome, Unreached
from tamias.model.lease import Unreachable
from tamias.model.url import authority
from tamias.permit.delay import ReachPolicy, failed_again
from tamias.settings import Settings

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
    """What a worker knows of who can be reached. One for each worker."""

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
        """One request; repeated when our own network was away meanwhile. Raises `NotNow`."""
        place = authority(url)
        while True:
            capture = await self._contact(place, held, fetch, url)
            held.asked()
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
        """What the URL's place waits for, if it is too early to try again."""
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
    """Why the URLs of a place fail for good."""
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
