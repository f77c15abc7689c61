"""How links are drawn: every newcomer ties itself to a few of those present, mostly popular ones. Pure."""

import random
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate


def newcomers(
    rng: random.Random, count: int, first: int, edges: int, degree: int
) -> Iterator[tuple[int, int]]:
    """For each number from `first` on: how many of the `edges` it brings, `degree / 2` on average.

    Where half the degree makes too few of them, later newcomers bring one more on average.
    """
    half, left = max(1, degree // 2), edges
    change = first + (half + 1) * (count - first) - edges
    for number in range(first, count):
        mean = half + (number >= change)
        most = max(1, left - (count - number - 1))
        brings = left if number == count - 1 else min(rng.randint(1, 2 * mean - 1), most)
        brings = max(1, min(brings, number))
        left -= brings
        yield number, brings


def popular(rng: random.Random, popularity: Sequence[int], among: Collection[int], count: int) -> list[int]:
    """Some of those present, each once, drawn by popularity; all of them if there are no more."""
    if len(among) <= count:
        return list(among)
    numbers = list(among)
    sums = list(accumulate(popularity[number] + 1 for number in numbers))
    chosen: dict[int, None] = {}
    while len(chosen) < count:
        chosen[rng.choices(numbers, cum_weights=sums)[0]] = None
    return list(chosen)
