"""One rule against one kind of publisher, at exactly the budget: what is left goes to who is due next."""

from typing import Final

import msgspec
import numpy as np

from benchmarks.schedule.publishers import TICKS_A_DAY, PublishedPages
from benchmarks.schedule.rules import TICK_MS, Contestant

_MEASURED_FROM: Final = 1 / 3
"""The first third is for learning."""


class FreshnessScore(msgspec.Struct, frozen=True):
    """How a rule did, after the time for learning."""

    freshness: float
    """The share of the time, over all pages, in which the last visit had the newest version."""
    caught: float
    """The share of all versions that a visit saw."""
    visits: float
    """For each page and day."""


def simulate(pages: PublishedPages, contestant: Contestant, visits_per_day: float) -> FreshnessScore:
    """Ticks through all days: in each the pages change, then the most overdue are visited."""
    ticks, number = pages.changes.shape
    first = int(ticks // TICKS_A_DAY * _MEASURED_FROM) * TICKS_A_DAY
    due = np.zeros(number)
    stale = np.ones(number, dtype=bool)
    fresh = caught = visits = done = 0.0
    for tick in range(ticks):
        if tick % TICKS_A_DAY == 0:
            contestant.new_day()
        now_ms = (tick + 1) * TICK_MS
        measured = tick >= first
        if measured:
            fresh += float(pages.fresh_until[tick][~stale].sum())
        stale |= pages.changes[tick] > 0
        chosen = _most_overdue(due, int((tick + 1) * visits_per_day / TICKS_A_DAY - done))
        done += len(chosen)
        for page in chosen.tolist():
            due[page] = contestant.visited(page, now_ms, bool(stale[page]))
        if measured:
            caught += int(stale[chosen].sum())
            visits += len(chosen)
        stale[chosen] = False
    measured_ticks = (ticks - first) * number
    changes = int(pages.changes[first:].sum())
    return FreshnessScore(fresh / measured_ticks, caught / changes, visits / measured_ticks * TICKS_A_DAY)


def _most_overdue(due: np.ndarray, number: int) -> np.ndarray:
    return np.argpartition(due, number - 1)[:number] if number else np.empty(0, dtype=np.int64)
