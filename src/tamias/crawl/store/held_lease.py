"""A held lease: one request at a time to its host, never before its delay is over."""

import asyncio
import time

import msgspec

from tamias.model.lease import Lease, Unreachable
from tamias.permit.traps import packed_alike, unpacked_alike

SAFE_PART = 0.9
"""Of a lease: what remains is for clocks that run differently."""


LONGEST_TURN = 10.0
"""Seconds. Who has to wait longer for a host gives it back meanwhile."""


class NotNow(Exception):
    """The host may not be asked any more in this lease; what was under way did not happen."""


class HeldLease:
    """A lease in the hands of this worker: paced, and given up in time."""

    def __init__(self, lease: Lease, begun_at: float, seconds: float, patience: float = LONGEST_TURN) -> None:
        """`begun_at`: the monotonic time before the frontier was asked, so the deadline errs safely."""
        self.lease = lease
        self.tasks = lease.tasks
        self.patience = patience
        self.delay_ms = lease.delay_ms
        self.blocked_until: int | None = None
        self.granted: str | None = None
        """A rule of robots.txt that the operator's permission sets aside for the request under way."""
        self.visits = 0
        """First visits to URLs of the host in this lease, and requests of harvests."""
        self.earned = 0.0
        """What these have earned the host: see `tamias.permit.traps`."""
        self.alike = unpacked_alike(lease.alike)
        """Pages of the host that are alike but for numbers."""
        self.alike_changed = False
        self.touched = False
        """A request was sent to the host in this lease."""
        self.written: list[msgspec.Struct] = []
        """Where hooks have stored responses that no visit is about, such as robots.txt."""
        self.answered = False
        """Whether the host answered in this lease."""
        self.unreachable = {place.authority: place for place in lease.unreachable}
        """What of the host could not be reached, by authority."""
        self.news: dict[str, Unreachable | None] = {}
        """What of that changed in this lease; None for a place that answered."""
        self.awaits_commit = False
        """Whether the rest of the lease waits for a commit: a sitemap's dataset may cover it."""
        self.lost = False
        """Whether somebody else may have the host by now: what was done since does not count."""
        self.task: asyncio.Task[None] | None = None
        self._deadline = begun_at + seconds * SAFE_PART
        self._requested_at = float("-inf")

    @property
    def alike_news(self) -> bytes | None:
        """Return the changed counts of similar pages to store with the host; None if unchanged."""
        return packed_alike(self.alike) if self.alike_changed else None

    def reached(self, place: str) -> None:
        """The place answered."""
        if self.unreachable.pop(place, None) is not None:
            self.news[place] = None

    def unreached(self, state: Unreachable) -> None:
        """The place could not be reached, or is to be tried at another time."""
        self.unreachable[state.authority] = self.news[state.authority] = state

    @property
    def over(self) -> bool:
        """Tell if the lease has expired."""
        return time.monotonic() >= self._deadline

    def renewed(self, lease: Lease, begun_at: float, seconds: float) -> None:
        """The lease goes on; one that came back as it was could not be renewed yet, and ends when it ends."""
        if lease.ends_at > self.lease.ends_at:
            self.lease = lease
            self._deadline = begun_at + seconds * SAFE_PART

    def give_up(self) -> None:
        """Stops at once what is done on the host."""
        self.lost = True
        if self.task is not None:
            self.task.cancel()

    @property
    def wait(self) -> float:
        """Seconds until the host may be asked again; the delay runs from the end of the last request."""
        return self._requested_at + self.delay_ms / 1000 - time.monotonic()

    @property
    def must_wait(self) -> bool:
        """Tell if the next turn is so far off that the host is to be given back meanwhile."""
        return self.wait > self.patience

    async def turn(self) -> None:
        """Waits until the host may be asked; `NotNow` if that takes too long or the lease ends before."""
        if self.must_wait:
            raise NotNow
        while (wait := self.wait) > 0:  # noqa: ASYNC110 - a timer may be early
            await asyncio.sleep(wait)
        if self.over:
            raise NotNow

    def note_request(self) -> None:
        """A request to the host just ended."""
        self.touched = True
        self._requested_at = time.monotonic()
