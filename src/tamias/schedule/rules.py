"""The rules that can be chosen: by value, the rule of the Open Dataset Archive, or a fixed interval."""

import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from tamias.model.errors import ConfigError

SEED_MINIMUM_MS: Final = 21_600_000
SEED_MAXIMUM_MS: Final = 5_256_000_000
_TEXT: Final = re.compile(r"(value|seed)|fixed:([0-9]{1,9})")


class VisitRule(msgspec.Struct, frozen=True):
    """How the next visit is chosen."""

    name: Literal["value", "seed", "fixed"] = "value"
    seconds: int = 0
    """Between two visits, where that is fixed."""


def parse_rule(text: str) -> VisitRule:
    """The rule as the settings write it.

    >>> parse_rule("fixed:86400")
    VisitRule(name='fixed', seconds=86400)
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ConfigError(f"schedule.rule: '{text}' is none of value, seed, fixed:SECONDS")
    if found[2] is not None:
        return VisitRule("fixed", int(found[2]))
    return VisitRule("seed" if found[1] == "seed" else "value")


def seed_interval_ms(recent: Sequence[tuple[int, bool]]) -> float:
    """The rule of the Open Dataset Archive: the mean time between changes, half of it after a change.

    Its own limits hold: 6 hours and 60.8 days. Before the second visit it is the shortest.

    >>> hours = [(50, True), (46, False), (62, False), (38, True), (50, False)]
    >>> seed_interval_ms([(each * 3_600_000, changed) for each, changed in hours]) / 3_600_000
    123.0
    """
    if not recent:
        return SEED_MINIMUM_MS
    spans: list[int] = []
    for interval_ms, changed in recent:
        if changed or not spans:
            spans.append(interval_ms)
        else:
            spans[-1] += interval_ms
    mean = sum(spans) / len(spans)
    return min(max(mean / 2 if recent[-1][1] else mean, SEED_MINIMUM_MS), SEED_MAXIMUM_MS)
