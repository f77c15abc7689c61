"""The contestants: each says after a visit when it wants to come again. Ours go through `next_visit`."""

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.schedule.publishers import TICKS_A_DAY
from tamias.schedule.budget import intervals, threshold
from tamias.schedule.history import DAY_MS, VisitHistory
from tamias.schedule.rules import VisitRule
from tamias.schedule.value import VisitTerms
from tamias.schedule.visit import VisitPolicy, next_visit

TICK_MS: Final = DAY_MS // TICKS_A_DAY
_NUTCH_MINIMUM_MS: Final = 60_000
_NUTCH_MAXIMUM_MS: Final = 365 * DAY_MS


class Contestant(Protocol):
    """A rule at work on all pages."""

    def new_day(self) -> None:
        """Called once a day, for what is worked out for all pages together."""

    def visited(self, page: int, now_ms: int, changed: bool) -> float:
        """When the page is due again, in milliseconds."""


class Scheduled:
    """Any rule of ours, by way of what the crawler calls."""

    def __init__(self, pages: int, budget: float, rule: VisitRule, knob: float = 0.0) -> None:
        self._policy = VisitPolicy(rule=rule, terms=_terms(knob))
        self._budget = budget
        self._histories = [VisitHistory()] * pages
        self._rates = np.full(pages, self._policy.prior.rate)
        self._even = np.ones(pages)
        self._threshold = 0.0

    def new_day(self) -> None:
        if self._policy.rule.name == "value":
            self._threshold = threshold(self._rates, self._even, self._budget, self._policy.terms)

    def visited(self, page: int, now_ms: int, changed: bool) -> float:
        after = next_visit(
            self._histories[page],
            "changed" if changed else "unchanged",
            now_ms,
            threshold=self._threshold,
            policy=self._policy,
        )
        self._histories[page] = after.history
        self._rates[page] = after.rate
        return after.due_ms


class Nutch:
    """Apache Nutch's adaptive schedule: a fifth sooner after a change, two fifths later without one."""

    def __init__(self, pages: int, first_days: float) -> None:
        self._intervals: NDArray[np.float64] = np.full(pages, first_days * DAY_MS)

    def new_day(self) -> None:
        pass

    def visited(self, page: int, now_ms: int, changed: bool) -> float:
        wished = self._intervals[page] * (0.8 if changed else 1.4)
        self._intervals[page] = min(max(wished, _NUTCH_MINIMUM_MS), _NUTCH_MAXIMUM_MS)
        return float(now_ms + self._intervals[page])


class Oracle:
    """Knows every rate from the first day; what it does with that is what the value rule does."""

    def __init__(self, rates: NDArray[np.float64], budget: float) -> None:
        even, terms = np.ones(len(rates)), _terms(0.0)
        level = threshold(rates, even, budget, terms)
        self._intervals = intervals(rates, even, level, terms) * DAY_MS

    def new_day(self) -> None:
        pass

    def visited(self, page: int, now_ms: int, changed: bool) -> float:
        return float(now_ms + self._intervals[page])


def _terms(knob: float) -> VisitTerms:
    """Nobody comes more often than the simulation ticks."""
    return VisitTerms(knob=knob, minimum=1 / TICKS_A_DAY)
