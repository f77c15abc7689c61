"""What changed in a version, in a sentence for feeds. Small versions only, and only for a short time."""

import time
from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

from tamias.archive.blobs import BlobDamaged, BlobMissing
from tamias.archive.versions.resources import read_resources, read_versions
from tamias.model.resource import Resource, Version
from tamias.serve.pages.datasets.difference import compared, turns
from tamias.serve.pages.datasets.version import COMPARED_AT_ONCE
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.replay.usage import usages
from tamias.serve.service import Service

MOST_COMPARED: Final = 20
"""For one page of a feed; what is older says only that it changed."""
_SECONDS: Final = 2.0
_MOST_KEPT: Final = 10_000
_kept: WeakKeyDictionary[Service, dict[str, str]] = WeakKeyDictionary()


async def sentences(service: Service, versions: Sequence[str]) -> dict[str, str]:
    """What changed in some versions, by their ids, as far as it can be said soon."""
    known = _kept.setdefault(service, {})
    if len(known) > _MOST_KEPT:
        known.clear()
    wanted = [each for each in versions if each not in known][:MOST_COMPARED]
    if wanted:
        async with turns:
            known.update(await service.pool.run(lambda db: _compared(db, wanted)))
    return {each: known[each] for each in versions if known.get(each)}


def _compared(db: ServiceSession, wanted: Sequence[str]) -> dict[str, str]:
    """Empty where nothing will ever be said: it is not asked for again, and others get their turn."""
    pairs, until = _pairs(db, wanted), time.monotonic() + _SECONDS
    found = {each: "" for each in wanted if each not in pairs}
    for each, pair in pairs.items():
        if time.monotonic() > until:
            break
        if (said := _sentence(db, *pair)) is not None:
            found[each] = said
    return found


def _pairs(db: ServiceSession, wanted: Sequence[str]) -> dict[str, tuple[Resource, Version, Version]]:
    """What is to be compared, if it is small and may be shown. Three statements, however many there are."""
    names = list({each.partition("_")[0] for each in wanted})
    resources = {each.id: each for each in read_resources(db.session, names)}
    versions = {each.id: each for found in read_versions(db.session, names).values() for each in found}
    pairs = {}
    for each in wanted:
        name, _, number = each.partition("_")
        old, new = versions.get(f"{name}_{int(number) - 1}"), versions.get(each)
        if old and new and name in resources and max(old.byte_size, new.byte_size) <= COMPARED_AT_ONCE:
            pairs[each] = resources[name], old, new
    said = usages(db, [version.capture for _, *both in pairs.values() for version in both])
    return {
        each: (resource, old, new)
        for each, (resource, old, new) in pairs.items()
        if not (said[old.capture].noarchive or said[new.capture].noarchive)
    }


def _sentence(db: ServiceSession, resource: Resource, old: Version, new: Version) -> str | None:
    from tamias.archive.diffs import in_words

    try:
        return in_words(compared(db, resource, old, new))
    except (BlobMissing, BlobDamaged):
        return None
