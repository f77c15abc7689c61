"""What changed in a version, in a sentence for feeds. Small versions only, and only for a short time."""

import time
from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

from tamias.archive.blobs import BlobDamaged, BlobMissing
from tamias.archive.versions.resources import read_resources, read_versions
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
    return {each: known[each] for each in versions if each in known}


def _compared(db: ServiceSession, wanted: Sequence[str]) -> dict[str, str]:
    until, found = time.monotonic() + _SECONDS, {}
    for each in wanted:
        if time.monotonic() > until:
            break
        if (said := _sentence(db, *each.split("_"))) is not None:
            found[each] = said
    return found


def _sentence(db: ServiceSession, name: str, number: str) -> str | None:
    from tamias.archive.diffs import in_words

    versions = {each.number: each for each in read_versions(db.session, [name])[name]}
    pair = [versions[each] for each in (int(number) - 1, int(number)) if each in versions]
    if len(pair) < 2 or any(each.byte_size > COMPARED_AT_ONCE for each in pair):
        return None
    if any(each.noarchive for each in usages(db, [each.capture for each in pair]).values()):
        return None
    [resource] = read_resources(db.session, [name])
    try:
        return in_words(compared(db, resource, *pair))
    except (BlobMissing, BlobDamaged):
        return None
