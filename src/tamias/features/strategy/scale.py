"""Scores of any size on the frontier's scale from 0 to 1, in the order that a strategy gives them.

The scale of a strategy is a power of two, at least 1, that no score was above so far. When one is, the scale
grows and known URLs are scored again.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from tamias.database.connect import Cursor
from tamias.features.strategy.scores import SQL, Scores
from tamias.model.item import CLASSES, priority_class

CLUSTER = 0.9
"""The share of scores in one class from which on a strategy hardly tells hosts apart."""
FEWEST = 10
"""The fewest scores from which this can be said."""


def scale_for(scores: Iterable[float | None]) -> float:
    """Return the smallest scale with room for scores.

    >>> scale_for([0.5, None]), scale_for([6.0, 5.0, 3.0]), scale_for([8.0])
    (1.0, 8.0, 8.0)
    """
    highest = max((score for score in scores if score is not None), default=0.0)
    return 1.0 if highest <= 1.0 else 2.0 ** math.ceil(math.log2(highest))


def scale_of(cursor: Cursor, number: int) -> float:
    """Return the scale of a strategy."""
    row = cursor.execute(SQL["scale_of"].text, {"number": number}).fetchone()
    return 1.0 if row is None else float(row[0])


def widen(cursor: Cursor, number: int, scale: float) -> bool:
    """Widen the scale if needed, mark known URLs for rescoring, and return whether this was done."""
    if scale <= scale_of(cursor, number):
        return False
    row = cursor.execute(SQL["widen"].text, {"number": number, "scale": scale}).fetchone()
    if row is not None:
        cursor.execute(SQL["start_rescoring"].text, {"crawl": row[0]})
    return True


def scale_scores(said: Sequence[Scores], scale: float) -> list[Scores]:
    """Return the scores divided by the scale, so that they are between 0 and 1."""
    if scale == 1.0:
        return list(said)
    return [
        each if each.score is None else msgspec.structs.replace(each, score=each.score / scale)
        for each in said
    ]


def cluster(scores: Sequence[float | None]) -> str | None:
    """Return a note about scores that hardly differ, if they do not."""
    known = [score for score in scores if score is not None]
    if len(known) < FEWEST:
        return None
    scale = scale_for(known)
    classes = Counter(priority_class(score / scale) for score in known)
    ((fullest, count),) = classes.most_common(1)
    if count < CLUSTER * len(known):
        return None
    low, high = fullest * scale / CLASSES, (fullest + 1) * scale / CLASSES
    return (
        f"{count:,} of {len(known):,} scores lie between {low:g} and {high:g}, one class of {CLASSES}: "
        f"hosts are hardly distinguished; spread the scores over 0 to {scale:g}"
    )
