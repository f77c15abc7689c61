"""Histories that were asked for lately. They are good until somebody notes a change of their resource.

Whoever changes a resource leaves a note for the SPARQL store (`catalogue_news`); they are read here too.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from tamias.model.errors import TamiasError
from tamias.model.resource import Resource, Version
from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.responses import Encoded
from tamias.serve.queries.thread_pool import ServiceSession, SessionPool

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
    """Those asked for last, by the names of their resources."""

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
        """One that is kept, and is what the database has."""
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
        """Somebody has just written something by this service, and wants to see it."""
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
            self._begin_anew()
        try:
            ((noted, oldest, newest, names),) = await self._pool.run(partial(_news, since=self._since))
        except (TamiasError, HttpProblem):
            self._begin_anew()
            self._looked_at = time.monotonic()
            return
        self._looked_at = time.monotonic()
        self._since = oldest
        if not noted or len(names or ()) > MOST_NEWS:
            self._begin_anew()
        elif self._noted_since is None:
            self._noted_since = int(newest)
        elif int(oldest) >= self._noted_since:
            self.turn = (self.turn or 0) + 1
            for name in names or ():
                self._forget(name)

    def _begin_anew(self) -> None:
        self.forget_all()
        self.turn = self._since = self._noted_since = None


def _news(db: ServiceSession, since: str | None) -> list[tuple[Any, ...]]:
    return db.rows("news", {"since": since, "most": MOST_NEWS + 1})


def _weight(history: ResourceHistory) -> int:
    return 1 + len(history.versions)
