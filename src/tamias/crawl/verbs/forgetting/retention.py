"""Applies the retention rules: versions that no rule keeps get a tombstone."""

import msgspec

from tamias.archive.forgetting.rules import KeptVersion, RetentionRules
from tamias.archive.forgetting.tombstones import SQL, order
from tamias.database.connect import Session
from tamias.settings import Settings

AT_ONCE = 500
BY_WHOM = "rules"


class AppliedRules(msgspec.Struct, kw_only=True):
    """What the rules do not keep."""

    resources: int = 0
    versions: int = 0
    bytes: int = 0
    """Of the bodies."""


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
            in_snapshots = {
                number for number, is_frozen in zip(numbers, frozen or (), strict=True) if is_frozen
            }
            rule = rules.rule_for(url, portals)
            dropped = rule.drops([KeptVersion(*row) for row in rows], session.now())
            dropped = [each for each in dropped if each.number not in in_snapshots]
            applied.resources += bool(dropped)
            applied.versions += len(dropped)
            applied.bytes += sum(each.byte_size for each in dropped)
            if dropped and not dry_run:
                targets = [(resource, url, each.number) for each in dropped]
                order(session, targets, f"retention rule: keep {rule.text}", BY_WHOM, by_rule=True)
        after = page[-1][0]
    return applied
