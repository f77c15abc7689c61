"""Retention rules: which versions of a resource are kept. Pure.

A rule is `all`, `last:N`, `days:D` or `thin`; several with commas between keep what one of them keeps.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from tamias.model.errors import ConfigError
from tamias.model.url import host

DAY_MS = 86_400_000
_PART = re.compile(r"all|thin|(?:last|days):[1-9][0-9]{0,8}")


class DatedVersion(msgspec.Struct, frozen=True):
    """A version as a retention rule sees it."""

    number: int
    captured_at: int
    byte_size: int


class RetentionRule(msgspec.Struct, frozen=True):
    """A rule, as it was written."""

    text: str

    def drops(self, versions: Sequence[DatedVersion], now: int) -> list[DatedVersion]:
        """The versions, oldest first, that it does not keep. The last one is always kept."""
        parts = self.text.split(",")
        return [
            each
            for place, each in enumerate(versions[:-1])
            if not any(_keeps(part, versions, place, now) for part in parts)
        ]


def parse_rule(text: str, setting: str = "archive.keep") -> RetentionRule:
    """Raises `ConfigError`, which names the setting.

    >>> parse_rule("last:3, thin")
    RetentionRule(text='last:3,thin')
    """
    plain = text.replace(" ", "")
    if not all(_PART.fullmatch(part) for part in plain.split(",")):
        raise ConfigError(f"{setting}: '{text[:100]}' is not a rule; write all, last:N, days:D or thin")
    return RetentionRule(plain)


class RetentionRules:
    """The retention rules: one for all, and others for hosts and portals."""

    def __init__(self, usual: str, others: Sequence[str]) -> None:
        """Parse rules; `others` are `HOST=RULE` or `PORTAL-URL=RULE`. Raises `ConfigError`."""
        self._usual = parse_rule(usual)
        self._others: dict[str, RetentionRule] = {}
        for each in others:
            name, equals, rule = each.rpartition("=")
            if not equals or not name:
                raise ConfigError(f"archive.keep_for: '{each[:100]}' is not HOST=RULE or PORTAL=RULE")
            self._others[name.strip()] = parse_rule(rule, "archive.keep_for")

    @property
    def keeps_everything(self) -> bool:
        """Return whether no rule removes anything."""
        return all(each.text == "all" for each in (self._usual, *self._others.values()))

    def rule_for(self, url: str, portals: Sequence[str]) -> RetentionRule:
        """Return the rule of its host, else of a portal that names it, else the one for all."""
        found = (self._others.get(name) for name in (host(url), *portals))
        return next((rule for rule in found if rule is not None), self._usual)


def _keeps(part: str, versions: Sequence[DatedVersion], place: int, now: int) -> bool:
    version = versions[place]
    if part == "all":
        return True
    if part == "thin":
        month = _month(version.captured_at)
        return month == _month(now) or month != _month(versions[place + 1].captured_at)
    word, _, number = part.partition(":")
    if word == "last":
        return place >= len(versions) - int(number)
    # It was the current one until the next came.
    return versions[place + 1].captured_at > now - int(number) * DAY_MS


def _month(moment: int) -> tuple[int, int]:
    then = datetime.fromtimestamp(moment / 1000, UTC)
    return then.year, then.month
