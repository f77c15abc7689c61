"""Resources with all their versions. What is asked at the same time is asked of the database at once."""

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from tamias.archive.reader.library import NotArchived
from tamias.archive.tombstones import check_forgotten
from tamias.archive.versions.resources import read_resources, resource_of, version_of
from tamias.features.service.http.exchange import Encoded
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.model.errors import TamiasError
from tamias.model.resource import Resource, Version, resource_id
from tamias.model.url import fetch_url, url_key

FRESH_SECONDS = 0.05
"""How old an answer can be: so long after they were read, notes are read again."""
UNCERTAIN_SECONDS = 0.5
"""How often it is looked whether everybody leaves notes by now."""
LONGEST_SECONDS = 3600.0
"""Notes are thrown away after days; whoever has not looked for so long begins anew."""
MOST_VERSIONS = 40_000
MOST_FORMS = 4
MOST_NEWS = 5000


class ResourceHistory(msgspec.Struct, frozen=True):
    """A resource and its versions, oldest first."""

    resource: Resource
    versions: list[Version]
    forms: dict[Any, Encoded] = msgspec.field(default_factory=dict)
    """Answers that were made of it."""

    def form(self, key: Any, make: Callable[[], Encoded]) -> Encoded:
        """An answer of some form, made once."""
        found = self.forms.get(key)
        if found is None:
            found = make()
            if len(self.forms) >= MOST_FORMS:
                self.forms.clear()
            self.forms[key] = found
        return found


class HistoryCache:
    """The histories that were used last, by the ids of their resources."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool
        self._histories: OrderedDict[str, ResourceHistory] = OrderedDict()
        self._versions = 0
        self._looking: asyncio.Task[None] | None = None
        self._looked_at = 0.0
        self._since: str | None = None
        """Of all transactions before this one the notes are read."""
        self._noted_since: int | None = None
        """Every transaction from this one on leaves notes."""
        self.turn: int | None = None
        """How often notes were read; None while it is not certain that everybody leaves them."""

    async def find(self, name: str) -> ResourceHistory | None:
        """Return a cached history that is still valid."""
        if self.turn is None:
            if time.monotonic() - self._looked_at > UNCERTAIN_SECONDS:
                self._look_on()
            return None
        if name not in self._histories:
            return None
        if time.monotonic() - self._looked_at > FRESH_SECONDS:
            await asyncio.shield(self._look_on())
        found = self._histories.get(name)
        if found is not None:
            self._histories.move_to_end(name)
        return found

    def put(self, history: ResourceHistory, turn: int | None) -> None:
        """Keeps one that was asked for in some turn: if notes were read since, it may be older than they."""
        name, weight = history.resource.id, _weight(history)
        if turn is None or turn != self.turn or weight > MOST_VERSIONS // 10:
            return
        self._forget(name)
        self._histories[name] = history
        self._versions += weight
        while self._versions > MOST_VERSIONS:
            self._forget(next(iter(self._histories)))

    def forget_all(self) -> None:
        """Forget all histories, because this service has just written something."""
        self._histories.clear()
        self._versions = 0
        if self.turn is not None:
            self.turn += 1

    def _forget(self, name: str) -> None:
        gone = self._histories.pop(name, None)
        self._versions -= 0 if gone is None else _weight(gone)

    def _look_on(self) -> asyncio.Task[None]:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        return self._looking

    async def _look(self) -> None:
        if time.monotonic() - self._looked_at > LONGEST_SECONDS:
            self._restart()
        try:
            values = {"since": self._since, "most": MOST_NEWS + 1}
            ((noted, oldest, newest, names),) = await self._pool.run(lambda db: db.rows("news", values))
        except (TamiasError, HttpProblem):
            self._restart()
            self._looked_at = time.monotonic()
            return
        self._looked_at = time.monotonic()
        self._since = oldest
        if not noted or len(names or ()) > MOST_NEWS:
            self._restart()
        elif self._noted_since is None:
            self._noted_since = int(newest)
        elif int(oldest) >= self._noted_since:
            self.turn = (self.turn or 0) + 1
            for name in names or ():
                self._forget(name)

    def _restart(self) -> None:
        self.forget_all()
        self.turn = self._since = self._noted_since = None


def _weight(history: ResourceHistory) -> int:
    return 1 + len(history.versions)


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
        self.cache = HistoryCache(pool)

    async def find(self, named: str) -> ResourceHistory:
        """A resource by its URL, in any spelling, or by its id. Raises `NotArchived`, `UrlError`."""
        name, url = _name_and_url(named, self._session_names)
        cached = await self.cache.find(name)
        if cached is not None:
            return cached
        turn = self.cache.turn
        wanted = _Wanted(name, url, asyncio.get_running_loop().create_future())
        self._waiting.append(wanted)
        self._ask_on()
        found = await wanted.found
        if found is None:
            await self._pool.run(lambda db: check_forgotten(db.session, name))
            raise NotArchived(f"{named[:200]} is not in the archive")
        if found.resource.id == name:
            self.cache.put(found, turn)
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
        values = {"resource": [each.resource for each in batch], "url": [each.url for each in batch]}
        try:
            rows = await self._pool.run(lambda db: db.rows("histories", values))
            found = {row[0]: history_of(row[1:]) for row in rows}
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


def history_of(row: tuple[Any, ...]) -> ResourceHistory:
    """A row of `histories`: the resource, then columns of its sources, then columns of its versions."""
    resource = resource_of(row[:12], zip(*row[12:17], strict=True) if row[12] else ())
    versions = zip(*row[17:], strict=True) if row[17] else ()
    return ResourceHistory(resource, [version_of((resource.id, *each)) for each in versions])


def id_of_url(db: ServiceSession, url: str) -> str:
    """Return the id that a URL has, or would have. Raises `UrlError`."""
    return resource_id(url_key(fetch_url(url), frozenset(db.settings.filters.session_names)))


def resource_named(db: ServiceSession, named: str) -> Resource:
    """Return a resource by its id. Raises `NotArchived`."""
    found = read_resources(db.session, [named]) if _ID.fullmatch(named) else []
    if not found:
        check_forgotten(db.session, named)
        raise NotArchived(f"{named[:100]} is not in the archive")
    return found[0]


def version_numbered(
    db: ServiceSession, resource: Resource, versions: Sequence[Version], number: int | None
) -> Version:
    """Return the version of a resource with a number. Raises `NotArchived`."""
    found = next((each for each in versions if each.number == number), None)
    if found is None:
        check_forgotten(db.session, resource.id, number)
        newest = f" {number}; the newest is {versions[-1].number}" if versions else " yet"
        raise NotArchived(f"{resource.url} has no version{newest}")
    return found
