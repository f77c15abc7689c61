"""The change rate of a resource: the likeliest rate of a Poisson process seen at irregular visits.

A Gamma prior keeps the rate sensible while little was seen: never zero, never infinite.
"""

from math import exp, expm1, log
from typing import Final

import msgspec

from tamias.schedule.history import VisitHistory


class Prior(msgspec.Struct, frozen=True):
    """The assumption about a resource before anything was seen: so many changes in so many days."""

    shape: float = 0.35
    days: float = 7.0

    @property
    def rate(self) -> float:
        """Change a day."""
        return self.shape / self.days


PRIOR: Final = Prior()


def estimate(history: VisitHistory, prior: Prior = PRIOR) -> float:
    """Change a day: the mode over log λ, by Newton's method in log λ.

    Every unchanged day counts against the rate; a changed interval t counts λt / (e^λt - 1) for it.
    A prior that others' word gives (`expected_days`) takes the place of the general one.
    """
    if history.expected_days:
        prior = Prior(prior.shape, prior.shape * history.expected_days)
    quiet = prior.days + history.unchanged_days
    if not history.changed:
        return prior.shape / quiet
    return _root(prior.shape, quiet, history.changed)


def _root(shape: float, quiet: float, changed: tuple[tuple[float, float], ...]) -> float:
    """Return where shape - quiet λ + Σ count λt / (e^λt - 1) falls through zero.

    The first guess takes 1 - λt/2 for each term, which is too little, so it lies at or below the root.
    """
    count = sum(many for _, many in changed)
    time = sum(days * many for days, many in changed)
    low = log((shape + count) / (quiet + time / 2))
    high = log((shape + count) / quiet)
    guess = low
    for _ in range(20):
        height, slope = _height(shape, quiet, changed, exp(guess))
        low, high = (guess, high) if height > 0 else (low, guess)
        step = guess - height / slope
        # Newton may leave the bracket where the curve bends; halving it never does.
        following = step if low <= step <= high else (low + high) / 2
        if abs(following - guess) < 1e-9:
            return exp(following)
        guess = following
    return exp(guess)


def _height(
    shape: float, quiet: float, changed: tuple[tuple[float, float], ...], rate: float
) -> tuple[float, float]:
    """The sum, and its slope in log λ."""
    height = shape - quiet * rate
    slope = -quiet * rate
    for days, many in changed:
        x = rate * days
        # Beyond it e^x overflows, and the term is zero anyway.
        if x > 700.0:
            continue
        over = expm1(x)
        term = many * x / over
        height += term
        slope += term * (1.0 - x * (over + 1.0) / over)
    return height, slope
