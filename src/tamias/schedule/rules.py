"""The operator's choices: the rule for the next visit, what is worth more visits, and intervals. Pure."""

import re
from collections.abc import Collection, Sequence
from typing import Final, Literal

import msgspec

from tamias.model.errors import ConfigError, UsageError

SEED_MINIMUM_MS: Final = 21_600_000
SEED_MAXIMUM_MS: Final = 5_256_000_000
_TEXT: Final = re.compile(r"(value|seed)|fixed:([0-9]{1,9})")


class VisitRule(msgspec.Struct, frozen=True):
    """The rule that chooses the next visit."""

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


_RULE: Final = re.compile(r"(?:(tag|portal|quality)=(\S+)|(score))\s+([0-9]+(?:\.[0-9]+)?)")
_EVEN_SCORE: Final = 0.5


class ImportanceRule(msgspec.Struct, frozen=True):
    """A rule that makes some resources more or less important by a factor."""

    by: str
    name: str
    factor: float


class ImportanceRules(msgspec.Struct, frozen=True):
    """The set of importance rules; their factors are multiplied."""

    rules: tuple[ImportanceRule, ...] = ()

    def of_url(self, tags: Collection[str], score: float) -> float:
        """Return what a URL of a crawl counts, by its tags and by the score that a strategy gave it.

        >>> parse_importance(["tag=person 3", "score 2"]).of_url(["person"], 1.0)
        6.0
        """
        importance = 1.0
        for rule in self.rules:
            if rule.by == "tag" and rule.name in tags:
                importance *= rule.factor
            elif rule.by == "score":
                importance *= float(rule.factor ** ((min(max(score, 0.0), 1.0) - _EVEN_SCORE) / _EVEN_SCORE))
        return importance

    def named(self, by: str) -> dict[str, float]:
        """The factors of portals, or of quality measures, by name."""
        return {rule.name: rule.factor for rule in self.rules if rule.by == by}


def parse_importance(texts: Sequence[str]) -> ImportanceRules:
    """The rules as the settings write them: 'tag=NAME 2', 'portal=URL 2', 'quality=METRIC 2', 'score 2'."""
    return ImportanceRules(tuple(_rule(text) for text in texts))


def _rule(text: str) -> ImportanceRule:
    found = _RULE.fullmatch(text.strip())
    if found is None or not float(found[4]):
        raise ConfigError(
            f"schedule.importance: '{text}' is none of tag=NAME FACTOR, portal=URL FACTOR,"
            " quality=METRIC FACTOR, score FACTOR, with a factor above 0"
        )
    return ImportanceRule(found[1] or found[3], found[2] or "", float(found[4]))


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(r"([0-9]{1,9})([smhdw])")
LEAST_SECONDS = 60
MOST_SECONDS = 10 * 366 * 86400


def span_in(text: str) -> int | None:
    """Return the seconds of a text such as 90m; None for any other text."""
    found = _SPAN.fullmatch(text.strip().lower())
    return int(found[1]) * _UNITS[found[2]] if found else None


def seconds_of(text: str) -> int:
    """Parse an interval between a minute and ten years. Raises `UsageError`.

    >>> seconds_of("90m"), seconds_of("1d")
    (5400, 86400)
    """
    seconds = span_in(text) or 0
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise UsageError(f"'{text}' is not an interval: write 90m, 12h, 1d or 2w, at least 1m")
    return seconds


def span_of(seconds: float) -> str:
    """The same in its largest whole unit.

    >>> span_of(86400), span_of(5400), span_of(14 * 86400)
    ('1d', '90m', '2w')
    """
    unit = next(name for name in "wdhms" if seconds % _UNITS[name] == 0 or name == "s")
    return f"{seconds / _UNITS[unit]:.0f}{unit}"
