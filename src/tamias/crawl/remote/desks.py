"""Stand-ins, for a worker without a database, of what the desks of a visit ask a database for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tamias.archive.contexts import read_contexts
from tamias.archive.sites import open_site, site_is_open
from tamias.crawl.admit import Reference
from tamias.crawl.remote.client import ServiceClient
from tamias.model.item import Item
from tamias.model.lease import Lease, Task


class FromAfar:
    """Runs what a desk would run in the database's thread: it asks the service for the same."""

    def __init__(self, service: ServiceClient) -> None:
        self._instead: dict[Callable[..., Any], Callable[..., Awaitable[Any]]] = {
            read_contexts: service.contexts,
            site_is_open: service.is_site_open,
            open_site: service.open_site,
        }

    async def __call__(self, work: Callable[..., Any], _session: None, *words: Any) -> Any:
        return await self._instead[work](*words)


class RobotsFromAfar:
    """Does what `RobotsStore` does, at the service."""

    def __init__(self, service: ServiceClient) -> None:
        self.read = service.robots
        self.write = service.keep_robots


async def ask_service(work: Callable[..., Awaitable[Any]], *words: Any) -> Any:
    """For a store whose methods are calls of the service already."""
    return await work(*words)


class Sender:
    """Does what a `Committer` does for those who put before their visit is committed. For other threads."""

    def __init__(self, service: ServiceClient) -> None:
        self._service = service
        self._loop = asyncio.get_running_loop()

    def put_items(self, items: list[Item]) -> None:
        """Puts items as they are."""
        asyncio.run_coroutine_threadsafe(self._service.put(items), self._loop).result()

    def put_now(self, reference: Reference) -> int:
        """Puts the links of a document too large to gather them; returns what kept others out."""
        return asyncio.run_coroutine_threadsafe(self._service.put_links(reference), self._loop).result()


class NoHarvests:
    """Knows the harvesters, and opens none: addresses behind them are lent to workers with a database."""

    def __init__(self, kinds: frozenset[str]) -> None:
        self._kinds = kinds

    def opens(self, kind: str) -> bool:
        """Whether somebody can open it."""
        return kind in self._kinds


class NoCoverage:
    """What a dataset covers is not lent at all: the service looks at that."""

    async def of(self, _task: Task, _lease: Lease) -> None:
        """Nothing."""
