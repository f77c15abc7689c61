"""The options of a run of `tamias crawl`: those that were given, over those of the runs before."""

from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec

from tamias.cli.console.options import CommonOptions
from tamias.model.errors import UsageError
from tamias.model.item import Seed
from tamias.settings import Settings

if TYPE_CHECKING:
    from tamias.database.connect import Database

KEPT = (
    *(
        "crawl__preset",
        "crawl__depth",
        "crawl__requisites",
        "crawl__continuous",
        "crawl__budget",
        "crawl__new_share",
    ),
    *("fetch__delay", "fetch__contact", "fetch__resolve", "filters__", "permit__"),
)
"""Flags that are the crawl's own: they hold for later runs until others are given; the rest is this run's."""


class RunPolicy(msgspec.Struct, frozen=True):
    """What holds for a run."""

    settings: Settings
    near: tuple[str, ...]
    """The seeds that the crawl must stay near to."""
    before: dict[str, Any]
    """The options of the run before (`tamias.crawl.plan.widening`)."""


def run_policy(
    place: CommonOptions,
    database: "Database",
    flags: dict[str, object],
    seeds: list[Seed],
    crawl: int,
    *,
    keep: bool,
    write: bool = True,
) -> RunPolicy:
    """What holds for the crawl from now on. Flags named with seeds replace those of the runs before."""
    from tamias.crawl.plan.policy import read_policy, widened, write_policy
    from tamias.crawl.plan.widening import options_of

    given = {key: value for key, value in flags.items() if value is not None}
    scope = place.settings(**given).settings.filters.scope
    with closing(database.session()) as session:
        policy = read_policy(session, crawl)
        before = policy.options or options_of(place.settings(**policy.flags).settings)
        kept = {key: value for key, value in given.items() if key.startswith(KEPT)}
        if not seeds and not keep:
            kept = {**policy.flags, **kept}
        policy = widened(policy, kept, [seed.address for seed in seeds] if scope != "any" else ())
        if write:
            write_policy(session, policy, crawl)
    settings = place.settings(**{**policy.flags, **given}).settings
    if settings.filters.scope != "any" and not policy.seeds:
        raise UsageError(f"--scope {settings.filters.scope} needs seeds: name at least one")
    return RunPolicy(settings, policy.seeds, before)
