"""The pages of the simulation: how often each changes, and when it does."""

from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

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
