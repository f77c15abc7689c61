"""Applies the retention rules: versions that no rule keeps get a tombstone."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from itertools import compress, starmap
from pathlib import Path
from typing import Any

import msgspec

from tamias.archive.tombstones import order
from tamias.database.connect import Session
from tamias.features.forgetting.retention_rules import DatedVersion, RetentionRules
from tamias.features.forgetting.rows import SQL
from tamias.features.forgetting.warc_captures import captured_urls, drop_captures, dropped_bodies
from tamias.model.errors import TamiasError
from tamias.settings import Settings

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
    """The same for what is in WARC files only, and for captures of versions that are not kept."""
    after = ""
    while not rules.keeps_everything and (page := captured_urls(session, after, AT_ONCE)):
        for each in page:
            dropped = each.drops(rules.rule_for(each.url, each.portals), session.now())
            applied.captures += dropped.captures
            applied.capture_bytes += dropped.bytes
            if not dry_run and (bodies := [*dropped.sha256, *dropped_bodies(session, each.url)]):
                drop_captures(session, each.url, bodies)
        after = page[-1].url
