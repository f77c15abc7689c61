"""Applies the retention rules: versions that no rule keeps get a tombstone."""

import asyncio
import re
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import compress, starmap
from pathlib import Path
from typing import Any

import msgspec

from tamias.archive.tombstones import order
from tamias.database.columns import Digests
from tamias.database.connect import Session
from tamias.features.forgetting.rows import SQL
from tamias.model.errors import ConfigError, TamiasError
from tamias.model.url import host
from tamias.settings import Settings

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


AT_ONCE = 500
ROUND_SECONDS = 600.0
BY_WHOM = "rules"


class AppliedRules(msgspec.Struct, kw_only=True):
    """The amount that the rules do not keep."""

    resources: int = 0
    versions: int = 0
    bytes: int = 0
    """Of the bodies."""
    captures: int = 0
    """In WARC files."""
    capture_bytes: int = 0
    """Of their records."""


class CapturedUrl(msgspec.Struct, frozen=True):
    """A URL that WARC files have, with its captures, oldest first."""

    url: str
    portals: list[str]
    captured_at: list[int]
    sha256: list[str]
    length: list[int]
    stays: list[bool]
    """Whether each has to stay, whatever a rule says."""

    def drops(self, rule: RetentionRule, now: int, applied: AppliedRules) -> list[str]:
        """Return the bodies that a rule does not keep, and count their captures.

        One that a kept state has stays.
        """
        states = list(self._states())
        gone = {each.number for each in rule.drops(states, now)}
        held = {self.sha256[each.number] for each in states if each.number not in gone}
        held |= {sha256 for sha256, stays in zip(self.sha256, self.stays, strict=True) if stays}
        digests = dict.fromkeys(self.sha256[number] for number in gone if self.sha256[number] not in held)
        lengths = [
            length for sha256, length in zip(self.sha256, self.length, strict=True) if sha256 in digests
        ]
        applied.captures += len(lengths)
        applied.capture_bytes += sum(lengths)
        return list(digests)

    def _states(self) -> Iterator[DatedVersion]:
        for place, (at, sha256) in enumerate(zip(self.captured_at, self.sha256, strict=True)):
            if not place or self.sha256[place - 1] != sha256:
                yield DatedVersion(place, at, self.length[place])


def apply_rules(session: Session, settings: Settings, *, dry_run: bool) -> AppliedRules:
    """Puts tombstones, unless it is a trial; `Forgetter` removes the bytes. Raises `ConfigError`."""
    rules = RetentionRules(settings.archive.keep, settings.archive.keep_for)
    applied, after = AppliedRules(), ""
    while not rules.keeps_everything:
        page = session.fetch_all(SQL["versions_for_rules"], {"after": after, "limit": AT_ONCE})
        if not page:
            break
        for resource, url, _, portals, numbers, times, sizes, frozen in page:
            rows = zip(numbers, times or (), sizes or (), strict=True)
            in_snapshots = set(compress(numbers, frozen or ()))
            rule = rules.rule_for(url, portals)
            dropped = rule.drops(list(starmap(DatedVersion, rows)), session.now())
            dropped = [each for each in dropped if each.number not in in_snapshots]
            applied.resources += bool(dropped)
            applied.versions += len(dropped)
            applied.bytes += sum(each.byte_size for each in dropped)
            if dropped and not dry_run:
                targets = [(resource, url, each.number) for each in dropped]
                order(session, targets, f"retention rule: keep {rule.text}", BY_WHOM, by_rule=True)
        after = page[-1][0]
    _apply_to_warcs(session, rules, applied, dry_run=dry_run)
    return applied


def apply_rules_often(pool: Any, _data: Path, settings: Settings) -> Coroutine[None, None, None]:
    """Apply the rules again and again, beside the service. Raises `ConfigError` for a wrong rule."""
    RetentionRules(settings.archive.keep, settings.archive.keep_for)
    return _apply_often(pool, settings)


async def _apply_often(pool: Any, settings: Settings) -> None:
    while True:
        with suppress(TamiasError, OSError):
            await pool.run(lambda db: apply_rules(db.session, settings, dry_run=False))
        await asyncio.sleep(ROUND_SECONDS)


def _apply_to_warcs(session: Session, rules: RetentionRules, applied: AppliedRules, *, dry_run: bool) -> None:
    """The same for what is in WARC files only, and for captures of versions that are not kept.

    What a rule looks at is a state of the URL: captures with the same body, one after another.
    """
    after = {"after": "", "limit": AT_ONCE}
    while not rules.keeps_everything and (page := session.fetch_all(SQL["captures_for_rules"], after)):
        for row in page:
            each = CapturedUrl(row[0], row[1], *(column or [] for column in row[2:]))
            bodies = each.drops(rules.rule_for(each.url, each.portals), session.now(), applied)
            if not dry_run:
                left = session.fetch_all(SQL["dropped_bodies"], {"url": each.url})
                bodies += [sha256 for (sha256,) in left]
            if bodies and not dry_run:
                session.execute(SQL["drop_captures"], {"url": each.url, "sha256": Digests(bodies)})
        after["after"] = page[-1][0]
