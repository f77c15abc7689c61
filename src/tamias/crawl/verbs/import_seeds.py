"""Seeds in files of other crawlers: `warc:FILE`, `cdx:FILE`, `urlfrontier:FILE`, or by the file's name."""

import re
from collections.abc import Sequence
from pathlib import Path

from tamias.model.item import Seed
from tamias.plugins import load, parts

SeedFile = tuple[str, str]
"""The name of a `seeds` part, and what it is to read."""

_OWN = ("address", "list")
_USUAL = {
    "warc": re.compile(r"\.warc(\.gz)?$"),
    "cdx": re.compile(r"(\.cdxj?(\.gz)?|(^|/)cdx-[0-9]+\.gz)$"),
    "urlfrontier": re.compile(r"\.(jsonl|ndjson)(\.gz)?$"),
}


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
