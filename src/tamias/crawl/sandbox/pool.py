"""A worker's sandboxes: documents wait for one in turn, and are stopped when they take too long."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

import msgspec

from tamias.crawl.analysis.analysers import ContextCache
from tamias.crawl.sandbox.sandbox import MakeRoom, Sandbox
from tamias.database.threads import run_uncancelled
from tamias.settings import Settings

QUANTUM = 2.0
"""Seconds of processor time before a document makes room for others that wait."""
QUICK_TRIES = 1
"""The first sandbox takes documents that were stopped less often than this."""
PACKED_FACTOR = 15
"""What a packed body is expected to unpack to."""
BYTES_PER_SECOND = 20_000_000
PATIENCE_PART = 0.5
"""Each second of waiting counts as much as this of another host's lower costs: nobody starves."""
_MOST_HOSTS = 10_000


class Turn(msgspec.Struct, eq=False):
    """A document that wants a sandbox."""

    host: str
    size: int
    packed: bool
    since: float = msgspec.field(default_factory=time.monotonic)
    tries: int = 0
    """How often it was stopped because others waited."""

    @property
    def quantum(self) -> float:
        """Seconds of processor time until it makes room."""
        return QUANTUM * float(2**self.tries)

    @property
    def unpacked(self) -> int:
        """Bytes that it is expected to unpack to."""
        return self.size * (PACKED_FACTOR if self.packed else 1)

    @property
    def expected(self) -> float:
        """Seconds that such a document takes as a rule."""
        return self.unpacked / BYTES_PER_SECOND


class Turns:
    """The queue for sandboxes, and the cost of each host's documents. `is_over` is for any thread."""

    def __init__(self, sandboxes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._sandboxes = sandboxes
        self._clock = clock
        self._waiting: list[Turn] = []
        self._spent: OrderedDict[str, float] = OrderedDict()

    def wait(self, turn: Turn) -> None:
        """Add a turn to the queue."""
        self._waiting.append(turn)

    def leave(self, turn: Turn) -> None:
        """Remove a turn from the queue, if it is there."""
        if turn in self._waiting:
            self._waiting.remove(turn)

    def next(self, sandbox: int) -> Turn | None:
        """Take the next turn for this sandbox from the queue."""
        able = [turn for turn in self._waiting if self._takes(sandbox, turn)]
        if not able:
            return None
        chosen = min(able, key=self._rank)
        self._waiting.remove(chosen)
        return chosen

    def is_over(self, turn: Turn, sandbox: int, seconds: float) -> bool:
        """Tell if a document that has run so long gives way to one that was stopped less often."""
        if seconds < turn.quantum:
            return False
        return any(
            other.tries <= turn.tries and self._takes(sandbox, other) for other in tuple(self._waiting)
        )

    def charge(self, host: str, seconds: float) -> None:
        """A document of the host has cost this."""
        self._spent[host] = self._spent.pop(host, 0.0) + seconds
        if len(self._spent) > _MOST_HOSTS:
            self._spent.popitem(last=False)

    def _takes(self, sandbox: int, turn: Turn) -> bool:
        return self._sandboxes == 1 or sandbox > 0 or turn.tries < QUICK_TRIES

    def _rank(self, turn: Turn) -> tuple[int, float]:
        waited = self._clock() - turn.since
        return turn.tries, self._spent.get(turn.host, 0.0) + turn.expected - PATIENCE_PART * waited


T = TypeVar("T")
Work = Callable[[Sandbox, threading.Event], T]
"""Reads one document, in a thread; the event tells it to give up."""


class SandboxPool:
    """Lends sandboxes to documents. For the event loop's thread."""

    def __init__(self, settings: Settings, contexts: ContextCache) -> None:
        count = settings.sandbox.processes
        self.takes_all = settings.sandbox.use == "always"
        """Whether every document is analysed in a sandbox."""
        self._turns = Turns(count)
        self._sandboxes = [Sandbox(settings, contexts) for _ in range(count)]
        self._free = set(range(count))
        self._called: dict[Turn, asyncio.Future[int]] = {}

    async def read(self, turn: Turn, work: Work[T]) -> T:
        """Does the work in a sandbox when its turn comes; more than once if others had to be let in."""
        while True:
            number = await self._wait(turn)
            sandbox, given_up = self._sandboxes[number], threading.Event()
            sandbox.lend(lambda seconds, number=number: self._turns.is_over(turn, number, seconds))  # type: ignore[misc]
            try:
                return await run_uncancelled(lambda: work(sandbox, given_up), given_up.set)  # noqa: B023
            except MakeRoom:
                turn.tries += 1
            finally:
                self._turns.charge(turn.host, sandbox.spent)
                self._free.add(number)
                self._call()

    async def _wait(self, turn: Turn) -> int:
        """The number of the sandbox that it gets."""
        called: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._called[turn] = called
        self._turns.wait(turn)
        self._call()
        try:
            return await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self._free.add(called.result())
                self._call()
            raise
        finally:
            self._called.pop(turn, None)
            self._turns.leave(turn)

    def _call(self) -> None:
        for number in sorted(self._free):
            turn = self._turns.next(number)
            if turn is not None:
                self._free.discard(number)
                self._called[turn].set_result(number)

    def close(self) -> None:
        """Ends the processes."""
        for sandbox in self._sandboxes:
            sandbox.close()
