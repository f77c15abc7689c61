"""Resources and sources are put under archive watch, and stopped; the audit log notes who did it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamias.access import audited
from tamias.crawl.plan.admit import Admission, open_frontier, seed_items
from tamias.crawl.revisit.watches import Added, Wanted, Watcher
from tamias.crawl.verbs.seed_check import seed_problem
from tamias.model.errors import UsageError
from tamias.model.item import TRUSTED, WATCH, Seed
from tamias.schedule.rules import seconds_of
from tamias.settings import Settings

if TYPE_CHECKING:
    from tamias.database.connect import Session


class WatchPlan(msgspec.Struct, frozen=True):
    """Resources and sources to be put under watch."""

    resources: list[Wanted]
    sources: list[Seed]
    """Portals, endpoints and sitemaps: what they name is watched."""
    skipped: list[tuple[str, str]]
    """Lines of lists that cannot be watched, each with the reason."""


def plan_watch(
    settings: Settings,
    seeds: Sequence[Seed],
    sources: Sequence[Seed] = (),
    *,
    portal: bool = False,
    title: str | None = None,
    format_name: str | None = None,
    every: str | None = None,
    priority: float | None = None,
) -> WatchPlan:
    """Return what is to be watched; what filters say of resources is asked later. `sources` are not checked.

    Raises `UsageError` where there is nothing, or where a seed that was named by itself cannot be watched.
    """
    admission = Admission(settings, [seed.address for seed in seeds if seed.problem is None])
    every_ms = None if every is None else seconds_of(every) * 1000
    plan = WatchPlan([], [_source(seed) for seed in sources], [])
    for seed in seeds:
        problem = seed.problem if seed.kind is None else seed_problem(seed, admission)
        if problem is not None:
            if seed.line is None:
                raise UsageError(problem)
            plan.skipped.append((seed.line, problem))
        elif seed.kind is not None or portal:
            plan.sources.append(_source(seed))
        else:
            plan.resources.append(_wanted(seed, title, format_name, every_ms, priority))
    _check_plan(plan, is_timed=any((every, priority)))
    return plan


def _check_plan(plan: WatchPlan, *, is_timed: bool) -> None:
    if not (plan.resources or plan.sources or plan.skipped):
        raise UsageError("Nothing to watch. Name a URL, a --file, or --sparql with --query.")
    if plan.sources and is_timed:
        raise UsageError(
            "--every and --priority are for resources; for portals use 'tamias portals every URL INTERVAL'."
        )


def put_watched(session: "Session", data: Path, settings: Settings, plan: WatchPlan) -> Added:
    """Put what is planned under watch, due now."""
    frontier = open_frontier(session, settings)
    named = [each.url for each in plan.resources] + [each.address for each in plan.sources]
    with audited(session, data, "add", named) as ending:
        watcher = Watcher(session, frontier, Admission(settings, ()))
        added = watcher.add(plan.resources, by_user=True)
        added.refused += plan.skipped
        new = watcher.add_sources(seed_items(settings, plan.sources, WATCH))
        added.new += new
        added.known += len(plan.sources) - new
        if has_failed(added):
            ending.failure = "nothing could be watched"
    return added


def has_failed(added: Added) -> bool:
    """Return whether nothing of what was named is watched."""
    return bool(added.refused) and not added.new and not added.known


def stop_watched(session: "Session", data: Path, settings: Settings, urls: Sequence[str]) -> list[str]:
    """Stop watching resources, whose versions stay; return those that were not watched."""
    frontier = open_frontier(session, settings)
    with audited(session, data, "remove", urls) as ending:
        unknown = Watcher(session, frontier, Admission(settings, ())).stop(urls)
        if unknown:
            ending.failure = f"not watched: {', '.join(unknown)}"
    return unknown


def _source(seed: Seed) -> Seed:
    return Seed(address=seed.address, kind=seed.kind or "portal", tags=(TRUSTED,))


def _wanted(
    seed: Seed, title: str | None, format_name: str | None, every: int | None, priority: float | None
) -> Wanted:
    tags = dict(tag.partition("=")[::2] for tag in seed.tags if "=" in tag)
    return Wanted(
        url=seed.address,
        title=title or tags.get("title"),
        format=format_name or tags.get("format"),
        source=tags.get("source", ""),
        portal=tags.get("portal"),
        every=every,
        priority=priority,
    )
