"""The threshold that spends the budget: one number for all resources, found for all at once.

A host whose resources would take more than its share gets a threshold of its own.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tamias.schedule.visit import TERMS, VISITS_A_CHANGE, Thresholds, VisitTerms

Floats = NDArray[np.float64]

_SMALL: Final = 1e-4
_NEAR: Final = 1e-4
_FAINT: Final = 1e-9
_GRAIN: Final = 128
"""What differs by less than a factor of e^(1/128) is taken as one: a million resources are a few thousand."""


def values(rates: Floats, weights: Floats, age_days: float) -> Floats:
    """Return what a visit to each is worth so many days after the last: (w/λ) (1 - (1 + λt) e^-λt)."""
    x = rates * age_days
    near = x * x * (0.5 - x / 3)
    worth: Floats = weights / rates * np.where(x < _SMALL, near, -np.expm1(-x) - x * np.exp(-x))
    return worth


def intervals(rates: Floats, importances: Floats, threshold: float, terms: VisitTerms = TERMS) -> Floats:
    """`due_after` for many resources at once, in days."""
    weights = importances * rates**terms.knob
    never = threshold * rates >= weights
    height = -np.log1p(-np.where(never, 0.0, threshold * rates / np.where(never, 1.0, weights)))
    x = np.sqrt(2 * height) + height * (2 / 3)
    steep = x >= _SMALL
    for _ in range(3):
        x = np.where(steep, x - (x - np.log1p(x) - height) * (1 + x) / np.where(steep, x, 1.0), x)
    return np.where(never, terms.maximum, np.clip(x / rates, terms.minimum, terms.maximum))


def threshold(rates: Floats, importances: Floats, budget_per_day: float, terms: VisitTerms = TERMS) -> float:
    """The threshold at which all visits together are the budget, by bisection.

    A budget that the longest intervals overdraw, or the shortest leave over, gives the threshold of those.
    Without resources it is 0: whatever comes is visited as often as it may be.
    """
    if not len(rates):
        return 0.0
    rates, importances, counts = _gathered(rates, importances)
    low, high = _bracket(rates, importances, terms)
    for _ in range(100):
        if high / low < 1 + _NEAR:
            break
        # The geometric mean, as thresholds span many orders of magnitude; of roots, so that it does not
        # underflow.
        middle = sqrt(low) * sqrt(high)
        spent = float(np.sum(counts / intervals(rates, importances, middle, terms)))
        low, high = (middle, high) if spent > budget_per_day else (low, middle)
    return high


def thresholds(
    rates: Floats,
    importances: Floats,
    hosts: Sequence[str],
    budget_per_day: float,
    *,
    host_share: float,
    terms: VisitTerms = TERMS,
) -> Thresholds:
    """The common threshold, and those of the hosts that would take more than their share of the budget.

    Where there are few hosts the share is at least an even one. What a held host leaves is for the others.
    """
    names, host = np.unique(np.asarray(hosts, dtype=str), return_inverse=True)
    allowed = budget_per_day * max(host_share, 1 / max(len(names), 1))
    held = _held(rates, importances, host, len(names), budget_per_day, allowed, terms)
    free = ~held[host]
    left = budget_per_day - allowed * int(held.sum())
    own = {
        str(names[each]): threshold(rates[host == each], importances[host == each], allowed, terms)
        for each in np.flatnonzero(held)
    }
    return Thresholds(threshold(rates[free], importances[free], left, terms), own, allowed)


def attentive_thresholds(
    rates: Floats,
    importances: Floats,
    hosts: Sequence[str],
    visits_per_day: float,
    *,
    host_visits: float,
    terms: VisitTerms = TERMS,
) -> Thresholds:
    """The threshold without a budget, and those of the hosts that would get more visits a day than one may.

    Each resource gets at least two visits for each change that is to be expected.
    """
    common = threshold(rates, importances, visits_per_day, terms)
    wanted = np.minimum(VISITS_A_CHANGE * rates, 1 / terms.minimum)
    visits = np.maximum(1 / intervals(rates, importances, common, terms), wanted)
    names, host = np.unique(np.asarray(hosts, dtype=str), return_inverse=True)
    own = {
        str(names[each]): threshold(rates[host == each], importances[host == each], host_visits, terms)
        for each in np.flatnonzero(np.bincount(host, visits) > host_visits)
    }
    return Thresholds(common, own, host_visits)


def _held(
    rates: Floats,
    importances: Floats,
    host: NDArray[np.intp],
    hosts: int,
    budget: float,
    allowed: float,
    terms: VisitTerms,
) -> NDArray[np.bool_]:
    """Find the hosts to hold: those that take too much, repeated until what they leave makes no more.

    Never all of them: somebody may take what is left.
    """
    held = np.zeros(hosts, dtype=bool)
    while True:
        free = ~held[host]
        level = threshold(rates[free], importances[free], budget - allowed * int(held.sum()), terms)
        visits = 1 / intervals(rates[free], importances[free], level, terms)
        greedy = np.bincount(host[free], visits, minlength=hosts) > allowed * (1 + 10 * _NEAR)
        if not greedy.any() or (held | greedy).all():
            return held
        held |= greedy


def _gathered(rates: Floats, importances: Floats) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Resources that are nearly alike as one, with their number."""
    importances = np.maximum(importances, _FAINT)
    alike = np.rint(np.log(rates) * _GRAIN).astype(np.int64) << 32
    alike += np.rint(np.log(importances) * _GRAIN).astype(np.int64) + (1 << 31)
    _, place, counts = np.unique(alike, return_inverse=True, return_counts=True)
    return np.bincount(place, rates) / counts, np.bincount(place, importances) / counts, counts


def _bracket(rates: Floats, importances: Floats, terms: VisitTerms) -> tuple[float, float]:
    """A threshold at which every interval is the shortest, and one at which every interval is the longest."""
    weights = importances * rates**terms.knob
    return float(values(rates, weights, terms.minimum).min()), float(
        values(rates, weights, terms.maximum).max()
    )
