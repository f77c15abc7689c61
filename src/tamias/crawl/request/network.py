"""Is it me? Tells an outage of our own network from hosts that are down, and lets visits wait for its end."""

import asyncio
import logging
import random
import time
from collections.abc import Callable

from tamias.crawl.store.held_lease import HeldLease, NotNow

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
    """What this worker can reach. For one event loop."""

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
        """Whether most hosts that answered a minute ago have stopped answering."""
        return self._lost_at is not None

    @property
    def words(self) -> str | None:
        """Why workers wait."""
        if not self.is_lost:
            return None
        return (
            f"no network? {len(self._lost)} hosts that answered a minute ago do not; trying one now and then"
        )

    def answered_lately(self, place: str) -> bool:
        """Whether the place answered us within the last minute."""
        return self._clock() - self._answered.get(place, float("-inf")) < RECENT_SECONDS

    def answered(self, place: str) -> None:
        """Somebody answered, so there is a network."""
        if len(self._answered) >= _REMEMBERED:
            self._answered.clear()
        self._answered[place] = self._clock()
        self._lost.pop(place, None)
        if self.is_lost:
            _log.warning("the network is back")
            self._end()

    async def holds(self, place: str) -> bool:
        """Whether a request in vain is our own network's fault; looks around for a moment if that may be."""
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
        """While there is no network only a host now and then is leased, as one more probe."""
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
        """Until something changes, or so long."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return
