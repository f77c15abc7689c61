"""The simulation: every rule at the same budget against both kinds of publishers, then the targets."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from benchmarks.measuring.targets import BenchmarkTarget, report_targets
from benchmarks.schedule.publishers import HABITS, Habit, PublishedPages, draw_pages
from benchmarks.schedule.rules import Contestant, Nutch, Oracle, Scheduled
from benchmarks.schedule.simulation import FreshnessScore, simulate
from tamias.schedule.rules import VisitRule
from tamias.schedule.value import TERMS

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
