"""Whose document is read next in a worker's sandboxes: fair by host, small ones first, none for long.

A document gets a short quantum of processor time. What needs more while others wait is stopped and tried
again behind them with twice the time; the first sandbox takes only documents that need little. So a bomb
costs its neighbours one quantum, and a large dump is read to its end when its turn comes.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

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
    """Who waits for a sandbox, and what the documents of each host have cost. `is_over` is for any thread."""

    def __init__(self, sandboxes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._sandboxes = sandboxes
        self._clock = clock
        self._waiting: list[Turn] = []
        self._spent: OrderedDict[str, float] = OrderedDict()

    def wait(self, turn: Turn) -> None:
        """One more."""
        self._waiting.append(turn)

    def leave(self, turn: Turn) -> None:
        """It waits no more, if it did."""
        if turn in self._waiting:
            self._waiting.remove(turn)

    def next(self, sandbox: int) -> Turn | None:
        """Whose turn it is in this sandbox; taken from those who wait."""
        able = [turn for turn in self._waiting if self._takes(sandbox, turn)]
        if not able:
            return None
        chosen = min(able, key=self._rank)
        self._waiting.remove(chosen)
        return chosen

    def is_over(self, turn: Turn, sandbox: int, seconds: float) -> bool:
        """Whether a document that has run so long makes room for one that was stopped less often."""
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
