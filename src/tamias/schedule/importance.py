"""What is worth more visits, by the operator's rules for tags, portals, quality measures and scores. Pure."""

import re
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from tamias.model.errors import ConfigError

_RULE: Final = re.compile(r"(?:(tag|portal|quality)=(\S+)|(score))\s+([0-9]+(?:\.[0-9]+)?)")
_EVEN_SCORE: Final = 0.5


class ImportanceRule(msgspec.Struct, frozen=True):
    """What counts more, or less, and by which factor."""

    by: str
    name: str
    factor: float


class ImportanceRules(msgspec.Struct, frozen=True):
    """All of them; their factors are multiplied."""

    rules: tuple[ImportanceRule, ...] = ()

    def of_url(self, tags: Collection[str], score: float) -> float:
        """What a URL of a crawl counts, by its tags and by the score that a strategy gave it.

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
