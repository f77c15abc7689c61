"""The place and the options of a run of `tamias crawl`: those that are named, over those of the crawl."""

from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tamias.model.errors import UsageError
from tamias.model.item import Seed
from tamias.settings import Resolved, Settings, resolve

if TYPE_CHECKING:
    from tamias.crawl.plan.policy import CrawlPolicy
    from tamias.database.connect import Database


class RunPlace(msgspec.Struct, frozen=True):
    """The place of the data of a run, and the file of its settings."""

    data: Path
    db: str | None
    config: Path | None

    def settings(self, **flags: Any) -> Resolved:
        """The settings in force; `fetch__delay=1.0` stands for the flag of `fetch.delay`."""
        return resolve(self.config, flags={key.replace("__", "."): value for key, value in flags.items()})


class RunPolicy(msgspec.Struct, frozen=True):
    """The rules of a run."""

    settings: Settings
    policy: "CrawlPolicy"
    """The row of the crawl from now on."""
    changes: list[str] = []
    """The options that are others than before, for users."""


def run_policy(
    place: RunPlace, database: "Database", flags: dict[str, Any], seeds: list[Seed], crawl: int
) -> RunPolicy:
    """Return what is to hold for the crawl from now on. Nothing is written: the caller checks the rest."""
    from tamias.crawl.plan.policy import RUN, read_policy

    with closing(database.session()) as session:
        known = read_policy(session, crawl)
    return changed_policy(known, place.settings, flags, seeds, ends=RUN)


def changed_policy(
    known: "CrawlPolicy",
    settings_of: Callable[..., Resolved],
    flags: dict[str, Any],
    seeds: list[Seed],
    *,
    ends: Collection[str] = (),
) -> RunPolicy:
    """Return the policy of a crawl with other flags: an option that is not named stays as it is.

    Flags come first, then the flags of earlier runs, then what `settings_of` finds in file and environment,
    then what the crawl had, but for settings that end with a run.
    """
    from tamias.crawl.plan.policy import MACHINE, RUN, CrawlPolicy, options_of, overlay

    given = {key: value for key, value in flags.items() if value is not None}
    passing = MACHINE | RUN  # what is of this run alone
    lasting = known.flags | {
        key: value
        for key, value in given.items()
        if passing.isdisjoint((key.partition("__")[0], key.replace("__", ".")))
    }
    resolved = settings_of(**{**lasting, **given})
    inherited = {
        key: value
        for key, value in known.values().items()
        if resolved.origins.get(key) == "default" and key not in ends
    }
    settings = overlay(resolved.settings, inherited)
    settings = overlay(settings, _whole_paths(settings))
    options = options_of(settings)
    near = [seed.address for seed in seeds] if settings.filters.scope != "any" else []
    policy = CrawlPolicy(
        flags={key: value for key, value in lasting.items() if value != -1},
        seeds=tuple(dict.fromkeys([*known.seeds, *near])),
        options=options,
        before=known.before or known.values(),
        in_service=known.in_service,
    )
    if settings.filters.scope != "any" and not policy.seeds:
        raise UsageError(f"--scope {settings.filters.scope} needs seeds: name at least one")
    return RunPolicy(settings, policy, _changes(known.values(), options))


def _whole_paths(settings: Settings) -> dict[str, Any]:
    """Return settings that name files, with whole paths: a later run or the service may start elsewhere."""
    return {
        "filters.blocklists": tuple(map(_whole_list, settings.filters.blocklists)),
        "analyse.rules": tuple(str(Path(each).absolute()) for each in settings.analyse.rules),
    }


def _whole_list(text: str) -> str:
    name, equals, place = text.rpartition("=")
    return text if "://" in text else f"{name}{equals}{Path(place).expanduser().absolute()}"


def _changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    from tamias.crawl.plan.policy import RUN

    if before:
        before = {"crawl.sinks": "not stored by an earlier version", **before}
    shown = [(key, _shown(before[key]), _shown(after[key])) for key in after.keys() & before.keys() - RUN]
    return [f"{key} {old} → {new}" for key, old, new in sorted(shown) if old != new]


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()
