"""Seeds as they are named: read, told apart from files of other crawlers, and checked."""

import difflib
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tamias.crawl.plan.admit import Admission
from tamias.model.errors import UrlError, UsageError
from tamias.model.item import Seed
from tamias.model.kind import SITEMAP
from tamias.model.url import fetch_url
from tamias.plugins import load, parts
from tamias.settings import Settings

MOST_SHOWN = 20
"""Skipped seeds that are named."""


SeedFile = tuple[str, str]
"""The name of a `seeds` part, and what it is to read."""

_OWN = ("address", "list")
_USUAL = {
    "warc": re.compile(r"\.warc(\.gz)?$"),
    "cdx": re.compile(r"(\.cdxj?(\.gz)?|(^|/)cdx-[0-9]+\.gz)$"),
    "urlfrontier": re.compile(r"\.(jsonl|ndjson)(\.gz)?$"),
}


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


def split_seeds(
    seeds: Sequence[str], files: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], list[SeedFile]]:
    """Separate seeds and lists of seeds from files of other crawlers."""
    named = [(text, _by_prefix(text)) for text in seeds]
    usual = {text: (part, text) for part, name in _USUAL.items() for text in files if name.search(text)}
    listed = [(text, _by_prefix(text) or usual.get(text)) for text in files]
    return (
        tuple(text for text, found in named if found is None),
        tuple(text for text, found in listed if found is None),
        [found for _, found in [*named, *listed] if found is not None],
    )


def named_seeds(seeds: Sequence[str], files: Sequence[str]) -> list[Seed]:
    """Return the seeds that were named, one by one and in lists."""
    one, many = load("seeds", "address")(), load("seeds", "list")()
    found = [seed for text in seeds for seed in one.seeds(text)]
    return found + [seed for file in files for seed in many.seeds(str(Path(file)))]


def _by_prefix(text: str) -> SeedFile | None:
    """Find an installed part that is named before a colon; what goes on with // is an address."""
    part, colon, argument = text.partition(":")
    if not colon or argument.startswith("//") or "://" in argument:
        return None
    return (part, argument) if part in parts("seeds").keys() - set(_OWN) else None
