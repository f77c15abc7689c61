"""The value of a visit to one resource, and when it is high enough.

The knob says to whom: 0 keeps the newest version fresh, 1 catches every version.
"""

from math import log1p, sqrt
from typing import Final

import msgspec

_SMALL: Final = 1e-4


class VisitTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The aim of the archive's visits, and the shortest and longest time between two, in days."""

    knob: float = 0.3
    minimum: float = 1 / 24
    maximum: float = 180.0


TERMS: Final = VisitTerms()
VISITS_A_CHANGE: Final = 2.0
"""The fewest for each change that is to be expected, without a budget."""


class Thresholds(msgspec.Struct, frozen=True):
    """The threshold of the archive, and those of the hosts that are held to their share."""

    common: float = 0.0
    hosts: dict[str, float] = {}
    share: float = 0.0
    """Visits a day that one host may have."""

    def of(self, host: str) -> float:
        """The threshold for the resources of a host."""
        return self.hosts.get(host, self.common)


def due_after(rate: float, importance: float, threshold: float, terms: VisitTerms = TERMS) -> float:
    """Days until a visit is worth the threshold, V = (w/λ) (1 - (1 + λt) e^-λt) with w = importance · λ^knob.

    What never gets there has its turn after the longest time.

    >>> round(due_after(1.0, 1.0, 0.593994150290162), 9), due_after(50.0, 1.0, 0.5)
    (2.0, 180.0)
    """
    worth = importance * float(rate**terms.knob)
    if threshold * rate >= worth:
        return terms.maximum
    return min(max(_age(-log1p(-threshold * rate / worth)) / rate, terms.minimum), terms.maximum)


def _age(height: float) -> float:
    """The x with x - ln(1 + x) = height, which is where 1 - (1 + x) e^-x is 1 - e^-height.

    The first guess is a bound of Lambert's W that is close everywhere; three Newton steps do the rest.
    """
    x = sqrt(2 * height) + height * (2 / 3)
    if x < _SMALL:
        return x
    for _ in range(3):
        x -= (x - log1p(x) - height) * (1 + x) / x
    return x
