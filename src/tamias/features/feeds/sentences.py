"""Sentences on changes in small versions, for feeds; a request waits for them only shortly."""

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import chain, islice
from typing import Final

from tamias.archive.blobs import BlobDamaged, BlobMissing
from tamias.archive.versions.resources import read_resources, read_versions
from tamias.features.service.files.comparison import COMPARED_AT_ONCE, compare, turns
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.features.service.queries.usage import usages
from tamias.features.service.service import Service
from tamias.model.diff import in_words
from tamias.model.errors import TamiasError
from tamias.model.resource import Resource, Version
from tamias.plugins import parts

MOST_WAITING: Final = 1000
"""Versions that wait to be compared; what more is asked for is compared when it is asked for again."""
_SECONDS: Final = 0.04
"""How long a request waits for comparisons. Those not done by then go on, and the next request has them."""
_AT_ONCE: Final = 10
_MOST_KNOWN: Final = 10_000


class _Comparisons:
    """Sentences by the ids of versions, and the comparisons under way."""

    def __init__(self, pool: SessionPool) -> None:
        self.known: dict[str, str] = {}
        self._pool = pool
        self._waiting: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None

    async def find(self, wanted: Sequence[str]) -> None:
        """Compares versions, those asked for last first. Returns soon, perhaps before all is known."""
        self._waiting = dict(islice(dict.fromkeys([*wanted, *self._waiting]).items(), MOST_WAITING))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._compare())
        await asyncio.wait([self._task], timeout=_SECONDS)

    async def _compare(self) -> None:
        while self._waiting:
            batch = list(islice(self._waiting, _AT_ONCE))
            try:
                async with turns:
                    await self._pool.run(partial(_compared, wanted=batch, known=self.known))
            except (HttpProblem, TamiasError):
                self._waiting.clear()  # the database is away: whoever asks next begins anew
                return
            for each in batch:
                self._waiting.pop(each, None)


async def sentences(service: Service, versions: Sequence[str]) -> dict[str, str]:
    """Return sentences on changes by the ids of versions, as far as they are known soon."""
    comparisons: _Comparisons = service.parts.setdefault("sentences", _Comparisons(service.pool))
    known = comparisons.known
    if len(known) > _MOST_KNOWN:
        known.clear()
    if wanted := [each for each in versions if each not in known]:
        await comparisons.find(wanted)
    return {each: known[each] for each in versions if known.get(each)}


def _compared(db: ServiceSession, wanted: Sequence[str], known: dict[str, str]) -> None:
    """Empty where nothing will ever be said: it is not asked for again."""
    pairs = _pairs(db, wanted)
    known.update((each, "") for each in wanted if each not in pairs)
    for each, pair in pairs.items():
        if (said := _sentence(db, *pair)) is not None:
            known[each] = said


def _pairs(db: ServiceSession, wanted: Sequence[str]) -> dict[str, tuple[Resource, Version, Version]]:
    """Return pairs of versions that are small and public, by three statements for all."""
    if "diff" not in parts("comparisons"):
        return {}
    names = list({each.partition("_")[0] for each in wanted})
    resources = {each.id: each for each in read_resources(db.session, names)}
    versions = {each.id: each for each in chain.from_iterable(read_versions(db.session, names).values())}
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
    try:
        return in_words(compare(db, resource, old, new))
    except (BlobMissing, BlobDamaged):
        return None
