"""Resources with all their versions. What is asked at the same time is asked of the database at once."""

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec

from tamias.archive.forgetting.tombstones import check_forgotten
from tamias.archive.reader.library import NotArchived
from tamias.archive.versions.resources import resource_of
from tamias.model.resource import Version, resource_id
from tamias.model.url import fetch_url, url_key
from tamias.serve.queries.history_cache import HistoryCache, ResourceHistory
from tamias.serve.queries.thread_pool import ServiceSession, SessionPool

__all__ = ["Histories", "ResourceHistory", "history_of"]

MOST_AT_ONCE = 64
MOST_UNDER_WAY = 2
_ID = re.compile(r"[0-9a-f]{24}")


class _Wanted(msgspec.Struct, frozen=True):
    resource: str
    url: str
    found: asyncio.Future[ResourceHistory | None]


class Histories:
    """Finds histories. Who comes while a question is under way waits for the next: no answer is stale."""

    def __init__(self, pool: SessionPool, session_names: frozenset[str]) -> None:
        self._pool = pool
        self._session_names = session_names
        self._waiting: list[_Wanted] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self.kept = HistoryCache(pool)

    async def find(self, named: str) -> ResourceHistory:
        """A resource by its URL, in any spelling, or by its id. Raises `NotArchived`, `UrlError`."""
        name, url = _name_and_url(named, self._session_names)
        kept = await self.kept.find(name)
        if kept is not None:
            return kept
        turn = self.kept.turn
        wanted = _Wanted(name, url, asyncio.get_running_loop().create_future())
        self._waiting.append(wanted)
        self._ask_on()
        found = await wanted.found
        if found is None:
            await self._pool.run(lambda db: check_forgotten(db.session, name))
            raise NotArchived(f"{named[:200]} is not in the archive")
        if found.resource.id == name:
            self.kept.put(found, turn)
        return found

    def _ask_on(self) -> None:
        while self._waiting and len(self._under_way) < MOST_UNDER_WAY:
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            task = asyncio.create_task(self._ask(batch))
            self._under_way.add(task)
            task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._ask_on()

    async def _ask(self, batch: Sequence[_Wanted]) -> None:
        asked = {"resource": [each.resource for each in batch], "url": [each.url for each in batch]}
        try:
            found = await self._pool.run(partial(_read, asked=asked))
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait
            for each in batch:
                if not each.found.done():
                    each.found.set_exception(error)
            return
        for place, each in enumerate(batch, 1):
            if not each.found.done():
                each.found.set_result(found.get(place))


@lru_cache(maxsize=2048)
def _name_and_url(named: str, session_names: frozenset[str]) -> tuple[str, str]:
    """The name of a resource, and its address where it was named by that. Raises `UrlError`."""
    if _ID.fullmatch(named):
        return named, ""
    url = fetch_url(named)
    return resource_id(url_key(url, session_names)), url


def _read(db: ServiceSession, asked: dict[str, Any]) -> dict[int, ResourceHistory]:
    return {row[0]: history_of(row[1:]) for row in db.rows("histories", asked)}


def history_of(row: tuple[Any, ...]) -> ResourceHistory:
    """A row of `histories`: the resource, then columns of its sources, then columns of its versions."""
    resource = resource_of(row[:12], zip(*row[12:16], strict=True) if row[12] else ())
    kept = zip(*row[16:], strict=True) if row[16] else ()
    return ResourceHistory(resource, [_version(resource.id, each) for each in kept])


def _version(resource: str, row: tuple[Any, ...]) -> Version:
    (number, captured_at, sha256, byte_size, media_type, told_type, fingerprint, noise, suspicious,
     capture) = row  # fmt: skip
    return Version(
        resource=resource,
        number=number,
        captured_at=captured_at,
        sha256=sha256.hex(),
        byte_size=byte_size,
        media_type=media_type,
        told_type=told_type,
        fingerprint=fingerprint.hex() if fingerprint else None,
        noise=noise,
        suspicious=suspicious,
        capture=capture,
    )
