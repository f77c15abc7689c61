"""How fresh pages are under each rule of visiting, beside an oracle that knows how often each changes."""

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring.targets import BenchmarkTarget, report_targets
from tamias.schedule.budget import intervals, threshold
from tamias.schedule.history import DAY_MS, VisitHistory
from tamias.schedule.rules import VisitRule
from tamias.schedule.value import TERMS, VisitTerms
from tamias.schedule.visit import VisitPolicy, next_visit

TICKS_A_DAY: Final = 4
Habit = Literal["poisson", "periodic"]
HABITS: Final[tuple[Habit, ...]] = ("poisson", "periodic")

# The mix was chosen by its round robin: at a visit in four days freshness 0.90, at one in ten 0.84.
_STATIC: Final = 0.45
_STATIC_DAYS: Final = 2000.0
_MEDIAN_DAYS: Final = 20.0
_SPREAD: Final = 1.5
_JITTER: Final = 0.1


class PublishedPages(msgspec.Struct, frozen=True):
    """What happens to each page (column) in each tick (row)."""

    rates: NDArray[np.float64]
    """Changes a day, as only the oracle knows them."""
    changes: NDArray[np.int32]
    """How many there are in the tick."""
    fresh_until: NDArray[np.float32]
    """The share of the tick before the first change; 1 where there is none."""


def draw_pages(habit: Habit, pages: int, days: int, seed: int) -> PublishedPages:
    """Nearly half of the pages hardly ever change; the others have rates over several orders of magnitude."""
    random = np.random.default_rng(seed)
    rates = np.exp(_SPREAD * random.standard_normal(pages)) / _MEDIAN_DAYS
    rates[random.random(pages) < _STATIC] = 1 / _STATIC_DAYS
    ticks = days * TICKS_A_DAY
    changes = np.zeros((ticks, pages), dtype=np.int32)
    fresh_until = np.ones((ticks, pages), dtype=np.float32)
    for page, rate in enumerate(rates):
        times = _times(habit, rate, days, random) * TICKS_A_DAY
        tick = times.astype(np.int64)
        np.add.at(changes[:, page], tick, 1)
        np.minimum.at(fresh_until[:, page], tick, (times - tick).astype(np.float32))
    return PublishedPages(rates, changes, fresh_until)


def _times(habit: Habit, rate: float, days: int, random: np.random.Generator) -> NDArray[np.float64]:
    """When one page changes, in days."""
    if habit == "poisson":
        return random.random(random.poisson(rate * days)) * days
    period = 1 / rate
    number = int(days * rate * 1.5) + 10
    gaps = period * np.maximum(1 + _JITTER * random.standard_normal(number), 0.1)
    times = period * (random.random() - 1) + np.cumsum(gaps)
    return times[(times >= 0) & (times < days)]


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


Out = Callable[[str], None]

VISITS: Final = 0.25
"""For each page and day."""
FRESHNESS: Final = 0.01
CAUGHT: Final = 0.02
SEED: Final = "seed"
OURS: Final = f"value, knob {TERMS.knob:g}"
ORACLE: Final = "oracle"


class RuleFigures(msgspec.Struct, frozen=True):
    """How a rule did with one kind of publisher."""

    habit: str
    rule: str
    score: FreshnessScore


def run(pages: int, days: int, seed: int, out: Out = print) -> dict[str, Any]:
    """Lets each rule loose on each kind of publisher; returns what it printed, as figures."""
    out(f"{pages} pages, {days} days, measured after the first third; {VISITS} visits for each page and day")
    out(f"{'publishers':<12}{'rule':<18}{'freshness':>10}{'versions caught':>17}{'visits':>8}")
    measured: list[RuleFigures] = []
    for habit in HABITS:
        drawn = draw_pages(habit, pages, days, seed)
        for rule, contestant in _contestants(drawn):
            score = simulate(drawn, contestant, VISITS * pages)
            measured.append(RuleFigures(habit, rule, score))
            out(f"{habit:<12}{rule:<18}{score.freshness:>10.3f}{score.caught:>17.3f}{score.visits:>8.3f}")
    targets = [target for habit in HABITS for target in _targets(habit, measured)]
    return {
        "pages": pages,
        "days": days,
        "seed": seed,
        "figures": [
            {"publishers": each.habit, "rule": each.rule, **msgspec.to_builtins(each.score)}
            for each in measured
        ],
        **report_targets(targets, out),
    }


def _contestants(drawn: PublishedPages) -> Iterator[tuple[str, Contestant]]:
    pages = len(drawn.rates)
    budget = VISITS * pages
    yield "fixed", Scheduled(pages, budget, VisitRule("fixed", int(86_400 / VISITS)))
    yield SEED, Scheduled(pages, budget, VisitRule("seed"))
    yield "Nutch", Nutch(pages, 1 / VISITS)
    for knob in sorted({0.0, 0.5, 1.0, TERMS.knob}):
        yield f"value, knob {knob:g}", Scheduled(pages, budget, VisitRule("value"), knob)
    yield ORACLE, Oracle(drawn.rates, budget)


def _targets(habit: Habit, measured: list[RuleFigures]) -> Iterator[BenchmarkTarget]:
    scores = {each.rule: each.score for each in measured if each.habit == habit}
    behind = scores[ORACLE].freshness - scores[OURS].freshness
    yield BenchmarkTarget(
        f"{habit}: freshness within {FRESHNESS} of the oracle's", f"{-behind:+.4f}", behind <= FRESHNESS
    )
    missed = scores[SEED].caught - scores[OURS].caught
    yield BenchmarkTarget(
        f"{habit}: versions caught within {CAUGHT} of the seed's rule", f"{-missed:+.4f}", missed <= CAUGHT
    )
