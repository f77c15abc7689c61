"""Where to cut an order of keys into spans that fit an answer, learned from answers that did not fit."""

from collections.abc import Iterable
from math import ceil

_FULL = 0.85
_SPARSE = 0.35


class Cuts:
    """Ends of spans to be asked for. A poor choice costs a request; it can lose nothing."""

    def __init__(self) -> None:
        self._ends: list[str] = []

    def split(self, keys: Iterable[str], upto: str | None, room: int, total: int | None) -> str:
        """The end of a smaller span, after one `upto` some key that held more than the `keys` that came.

        `total` is about how many there are, where that is known; else two spans are made of one.
        """
        sample = sorted(set(keys))
        pieces = max(2, ceil(total / (_FULL * room))) if total and upto is None else 2
        stride = max(1, len(sample) // pieces)
        ends = sample[stride - 1 : -1 : stride] or sample[:1]
        beyond = [] if upto is None else self._ends if upto == ends[-1] else [upto, *self._ends]
        self._ends = [*ends, *beyond]
        return self._ends.pop(0)

    def after(self, found: int, room: int) -> str | None:
        """The end of the span after one that held `found` keys; None leaves it open."""
        if found < _SPARSE * room and len(self._ends) > 1:
            del self._ends[0]
        return self._ends.pop(0) if self._ends else None
