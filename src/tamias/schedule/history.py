"""The history of visits to a resource, in a few hundred bytes however many there were.

Of visits that saw no change only the time between them counts; of the others each interval does.
"""

from typing import Final, Literal

import msgspec

DAY_MS: Final = 86_400_000
WINDOW: Final = 10
"""Observations that stay as they were; the seed's rule looks at so many."""
MEMORY: Final = 100
"""An observation counts 1/e after so many others, so a publisher who changes his ways is noticed."""
_KEEP: Final = 1 - 1 / MEMORY
_CENTROIDS: Final = 8

Seen = Literal["changed", "unchanged", "noise", "failed", "gone"]
"""What a visit saw. Noise: other bytes, the same content. Failed: nothing was learnt of the content."""


class VisitHistory(msgspec.Struct, frozen=True, array_like=True):
    """The history of visits, stored with the resource as MessagePack."""

    visited_at: int | None = None
    """Milliseconds UTC of the last visit that told whether the content changed."""
    fails: int = 0
    """Visits since then that told nothing."""
    unchanged_days: float = 0.0
    """Time between visits over which nothing changed; the old counts less."""
    changed: tuple[tuple[float, float], ...] = ()
    """Days between visits over which something changed, and how many such intervals this stands for."""
    recent: tuple[tuple[int, bool], ...] = ()
    """The last intervals in milliseconds, each with whether it saw a change; oldest first."""
    expected_days: float | None = None
    """How often it changes by the word of others; what is seen soon weighs more."""

    def seeing(self, seen: Seen, at_ms: int) -> "VisitHistory":
        """The history after one more visit.

        A failure is a censored observation: the interval goes on until a visit tells whether it changed.
        """
        if seen in {"failed", "gone"}:
            return msgspec.structs.replace(self, fails=self.fails + 1)
        history = self if self.visited_at is None else self.after(at_ms - self.visited_at, seen == "changed")
        return msgspec.structs.replace(history, visited_at=max(at_ms, self.visited_at or at_ms), fails=0)

    def after(self, interval_ms: int, changed: bool) -> "VisitHistory":
        """The history with one more observed interval. A clock that went back gives none."""
        if interval_ms <= 0:
            return self
        days = interval_ms / DAY_MS
        faded = [(each, count * _KEEP) for each, count in self.changed if count * _KEEP > 1e-3]
        return msgspec.structs.replace(
            self,
            unchanged_days=self.unchanged_days * _KEEP + (0.0 if changed else days),
            changed=_with(faded, days) if changed else tuple(faded),
            recent=(*self.recent[1 - WINDOW :], (interval_ms, changed)),
        )


def _with(centroids: list[tuple[float, float]], days: float) -> tuple[tuple[float, float], ...]:
    """Add an interval in order; if there are too many, merge the two nearest by ratio."""
    ordered = sorted([*centroids, (days, 1.0)])
    if len(ordered) > _CENTROIDS:
        at = min(range(_CENTROIDS), key=lambda i: ordered[i + 1][0] / ordered[i][0])
        (short, many), (long, more) = ordered[at : at + 2]
        ordered[at : at + 2] = [((short * many + long * more) / (many + more), many + more)]
    return tuple(ordered)


def pack(history: VisitHistory) -> bytes:
    """The history as it is kept."""
    return msgspec.msgpack.encode(history)


def unpack(packed: bytes | None) -> VisitHistory:
    """The history as it was kept; an empty one where there is none."""
    return msgspec.msgpack.decode(packed, type=VisitHistory) if packed else VisitHistory()
