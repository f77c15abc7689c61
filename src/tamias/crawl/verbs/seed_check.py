"""The check of seeds: those that can be crawled, and what is wrong with the others."""

import difflib
from collections.abc import Sequence

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.model.errors import UrlError, UsageError
from tamias.model.item import Seed
from tamias.model.kind import SITEMAP
from tamias.model.url import fetch_url
from tamias.settings import Settings

MOST_SHOWN = 20
"""Skipped seeds that are named."""


class SkippedSeeds(msgspec.Struct):
    """Seeds of lists that cannot be crawled: how many, and the first of them."""

    count: int = 0
    shown: list[str] = []

    def add(self, seed: Seed, reason: str) -> None:
        """Count one."""
        self.count += 1
        if len(self.shown) < MOST_SHOWN:
            self.shown.append(f"{seed.line}: {reason}")

    def sentences(self) -> list[str]:
        """Return what is printed, a line each."""
        if not self.count:
            return []
        more = [f"and {self.count - MOST_SHOWN:,} more"] if self.count > MOST_SHOWN else []
        seeds = "1 seed was" if self.count == 1 else f"{self.count:,} seeds were"
        return [f"{seeds} skipped:", *(f"  {each}" for each in [*self.shown, *more])]


def usable_seeds(settings: Settings, seeds: Sequence[Seed], skipped: SkippedSeeds) -> list[Seed]:
    """Return the seeds that can be crawled; others of a list are added to `skipped`.

    Raise `UsageError` if none is left, or for one that was named by itself.
    """
    admission = Admission(settings, [seed.address for seed in seeds if seed.problem is None])
    usable = []
    for seed in seeds:
        problem = seed_problem(seed, admission)
        if problem is None:
            usable.append(seed)
        elif seed.line is None:
            raise UsageError(problem)
        else:
            skipped.add(seed, problem)
    if seeds and not usable:
        raise UsageError("no seed can be crawled:\n" + "\n".join(skipped.sentences()))
    return usable


def seed_problem(seed: Seed, admission: Admission) -> str | None:
    """Return why a seed cannot be crawled, if so."""
    if seed.problem is not None:
        return seed.problem
    try:
        url = fetch_url(seed.address)
    except UrlError as error:
        return str(error)
    if (refusal := admission.refusal(url, 0)) is not None:
        kind, _, rest = url.partition(":")
        if not rest.startswith("//") and _unknown_kind(kind) is None:
            return f"{url} has no address: write {kind}:https://{rest}/"
        return f"the seed {url} is excluded: {refusal}"
    return None if seed.kind in (None, SITEMAP) else _unknown_kind(seed.kind)


def _unknown_kind(kind: str | None) -> str | None:
    """Return what to say of a kind of source that no harvester reads."""
    from tamias.crawl.visit.stages import harvesters  # takes long to load

    known = {*harvesters(), SITEMAP}
    if kind in known:
        return None
    close = difflib.get_close_matches(str(kind), known, n=1)
    hint = f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(sorted(known))}."
    return f"Unknown source type '{kind}'. {hint}"
