"""How many versions each rule of visiting catches and how fresh it is, beside an oracle that knows all rates.

Ours spends what it needs without a budget; the others get the same number of visits.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring.targets import BenchmarkTarget, report_targets
from tamias.schedule.budget import intervals, threshold
from tamias.schedule.rules import VisitRule
from tamias.schedule.visit import DAY_MS, VisitHistory, VisitPolicy, VisitTerms, next_visit
from tamias.settings import ScheduleSettings

TICKS_A_DAY: Final = 24
"""Nobody comes more often than once an hour (`schedule.min_interval`)."""


class PageMix(msgspec.Struct, frozen=True):
    """How a mix of publishers behaves."""

    static: float
    """The share of pages that change once in 2,000 days."""
    median_days: float
    """Between two changes of the others."""
    spread: float
    """Of the logarithm of their rates."""
    burst: int = 1
    """Changes that come together, an hour or two after one another."""


MIXES: Final = {
    "still": PageMix(static=0.45, median_days=20.0, spread=1.5),
    "lively": PageMix(static=0.1, median_days=2.0, spread=1.2),
    "bursty": PageMix(static=0.3, median_days=10.0, spread=1.2, burst=6),
}


class PublishedPages(msgspec.Struct, frozen=True):
    """What happens to each page (column) in each tick (row)."""

    rates: NDArray[np.float64]
    """Changes a day, as only the oracle knows them."""
    changes: NDArray[np.int32]
    """How many there are in the tick."""
    fresh_until: NDArray[np.float32]
    """The share of the tick before the first change; 1 where there is none."""


def draw_pages(mix: PageMix, pages: int, days: int, seed: int) -> PublishedPages:
    """Half of the pages change at random, half nearly regularly."""
    random = np.random.default_rng(seed)
    rates = np.exp(mix.spread * random.standard_normal(pages)) / mix.median_days
    rates[random.random(pages) < mix.static] = 1 / 2000.0
    ticks = days * TICKS_A_DAY
    changes = np.zeros((ticks, pages), dtype=np.int32)
    fresh_until = np.ones((ticks, pages), dtype=np.float32)
    for page, rate in enumerate(rates):
        times = _times(rate / mix.burst, days, random, is_regular=page % 2 == 0)
        if mix.burst > 1:
            gaps = random.random((len(times), mix.burst)) * 2 / 24
            times = (times[:, None] + np.cumsum(gaps, axis=1)).ravel()
            times = times[times < days]
        times = times * TICKS_A_DAY
        tick = times.astype(np.int64)
        np.add.at(changes[:, page], tick, 1)
        np.minimum.at(fresh_until[:, page], tick, (times - tick).astype(np.float32))
    return PublishedPages(rates, changes, fresh_until)


def _times(rate: float, days: int, random: np.random.Generator, *, is_regular: bool) -> NDArray[np.float64]:
    """When one page changes, in days."""
    if not is_regular:
        return random.random(random.poisson(rate * days)) * days
    period = 1 / rate
    number = int(days * rate * 1.5) + 10
    gaps = period * np.maximum(1 + 0.1 * random.standard_normal(number), 0.1)
    times = period * (random.random() - 1) + np.cumsum(gaps)
    return times[(times >= 0) & (times < days)]


TICK_MS: Final = DAY_MS // TICKS_A_DAY


class Contestant(Protocol):
    """A rule at work on all pages."""

    def new_day(self) -> None:
        """Called once a day, for what is worked out for all pages together."""

    def visited(self, page: int, now_ms: int, changed: bool) -> float:
        """When the page is due again, in milliseconds."""


class Scheduled:
    """Any rule of ours, by way of what the crawler calls."""

    def __init__(self, pages: int, rule: VisitRule) -> None:
        self._policy = VisitPolicy(rule=rule, terms=_TERMS)
        self._budget = ScheduleSettings().visits_each * pages
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


class Oracle:
    """Knows every rate from the first day; what it does with that is what the value rule does."""

    def __init__(self, rates: NDArray[np.float64], budget: float) -> None:
        even = np.ones(len(rates))
        level = threshold(rates, even, budget, _TERMS)
        self._intervals = intervals(rates, even, level, _TERMS) * DAY_MS

    def new_day(self) -> None:
        pass

    def visited(self, page: int, now_ms: int, changed: bool) -> float:
        return float(now_ms + self._intervals[page])


_TERMS: Final = VisitTerms(minimum=1 / TICKS_A_DAY)


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


def simulate(pages: PublishedPages, contestant: Contestant, most_a_day: float | None) -> FreshnessScore:
    """Tick through all days: in each the pages change, then what is due is visited, the most overdue first.

    With `most_a_day` exactly so many visits are made, whether they are due or not.
    """
    ticks, number = pages.changes.shape
    first = int(ticks // TICKS_A_DAY * _MEASURED_FROM) * TICKS_A_DAY
    due = np.zeros(number)
    stale, early = np.ones(number, dtype=bool), np.ones(number, dtype=bool)
    fresh = caught = visits = done = 0.0
    for tick in range(ticks):
        if tick % TICKS_A_DAY == 0:
            contestant.new_day()
        now_ms = (tick + 1) * TICK_MS
        measured = tick >= first
        fresh += measured * float(pages.fresh_until[tick][~stale].sum())
        stale |= pages.changes[tick] > 0
        early = early & (pages.changes[tick] == 0) if measured else stale  # made before it counts
        if most_a_day is None:
            chosen = np.flatnonzero(due <= now_ms)
        else:
            most = min(number, int((tick + 1) * most_a_day / TICKS_A_DAY - done))
            chosen = np.argpartition(due, most - 1)[:most] if most else np.empty(0, dtype=np.int64)
        done += len(chosen)
        for page in chosen.tolist():
            due[page] = contestant.visited(page, now_ms, bool(stale[page]))
        caught += measured * int((stale & ~early)[chosen].sum())
        visits += measured * len(chosen)
        stale[chosen] = False
    measured_ticks = (ticks - first) * number
    changes = int(pages.changes[first:].sum())
    return FreshnessScore(fresh / measured_ticks, caught / changes, visits / measured_ticks * TICKS_A_DAY)


Out = Callable[[str], None]

OURS: Final = "ours"
ROUND_ROBIN: Final = "round robin"
THESIS: Final = "thesis"
ORACLE: Final = "oracle"


def run(pages: int, days: int, seed: int, out: Out = print) -> dict[str, Any]:
    """Let each rule loose on each mix of publishers; return what it printed, as figures."""
    out(f"{pages} pages, {days} days, measured after the first third; all rules make as many visits as ours")
    out(f"{'mix':<8}{'rule':<14}{'versions caught':>16}{'freshness':>11}{'visits':>8}")
    figures = []
    targets: list[BenchmarkTarget] = []
    for mix, habits in MIXES.items():
        drawn = draw_pages(habits, pages, days, seed)
        scores = _scores(drawn)
        for rule, score in scores.items():
            figures.append({"mix": mix, "rule": rule, **msgspec.to_builtins(score)})
            out(f"{mix:<8}{rule:<14}{score.caught:>16.3f}{score.freshness:>11.3f}{score.visits:>8.3f}")
        targets += _targets(mix, scores)
    return {"pages": pages, "days": days, "seed": seed, "figures": figures, **report_targets(targets, out)}


def _scores(drawn: PublishedPages) -> dict[str, FreshnessScore]:
    pages = len(drawn.rates)
    ours = simulate(drawn, Scheduled(pages, VisitRule("value")), None)
    budget = ours.visits * pages
    every = VisitRule("fixed", max(1, int(86_400 / ours.visits)))
    return {
        OURS: ours,
        ROUND_ROBIN: simulate(drawn, Scheduled(pages, every), budget),
        THESIS: simulate(drawn, Scheduled(pages, VisitRule("seed")), budget),
        ORACLE: simulate(drawn, Oracle(drawn.rates, budget), budget),
    }


def _targets(mix: str, scores: dict[str, FreshnessScore]) -> Iterator[BenchmarkTarget]:
    ours = scores[OURS]
    for rule in (ROUND_ROBIN, THESIS):
        for name in ("caught", "freshness"):
            ahead = getattr(ours, name) - getattr(scores[rule], name)
            yield BenchmarkTarget(f"{mix}: {name} not below {rule}", f"{ahead:+.4f}", ahead >= 0)
