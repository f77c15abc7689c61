"""The same for programs with an event loop: `crawl`, `read` and `AsyncArchive`, to be awaited.

    async with tamias.aio.start_crawl("https://example.org/", depth=1) as running:
        async for now in running:
            print(now.visited, now.open)

A task that is cancelled stops its crawl and waits for its end; the next run resumes.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial, update_wrapper
from itertools import islice
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from tamias.crawl.store.progress import CrawlSnapshot
from tamias.crawl.verbs import library
from tamias.crawl.verbs.crawl import CrawlKeywords, RunKeywords, start_crawl
from tamias.crawl.verbs.library import ArchivedResource
from tamias.crawl.verbs.read import Reading, Source
from tamias.crawl.verbs.read import read as read_now
from tamias.model.event import Event

__all__ = ["AsyncArchive", "crawl", "read", "start_crawl"]

P = ParamSpec("P")
T = TypeVar("T")
AT_ONCE = 500


async def crawl(*seeds: str, **options: Unpack[RunKeywords]) -> CrawlSnapshot:
    """Crawl from the seeds until nothing is left, as `tamias.crawl`."""
    async with start_crawl(*seeds, **options) as running:
        return [now async for now in running][-1]


async def read(source: Source, *, base: str | None = None, media_type: str | None = None) -> Reading:
    """Read bytes, a path, an open binary file or a URL, as `tamias.read`."""
    return await asyncio.to_thread(read_now, source, base=base, media_type=media_type)


def _awaited(
    method: Callable[Concatenate[library.Archive, P], T],
) -> "Callable[Concatenate[AsyncArchive, P], Coroutine[Any, Any, T]]":
    """Make a method of the archive one that is awaited."""

    async def call(self: "AsyncArchive", /, *words: P.args, **named: P.kwargs) -> T:
        return await self.run(lambda archive: method(archive, *words, **named))

    update_wrapper(call, method)
    return call


class AsyncArchive:
    """A `tamias.Archive` whose methods are awaited; they run one after another, in a thread of its own."""

    def __init__(
        self,
        place: str | os.PathLike[str] = "tamias-data",
        *,
        data: str | os.PathLike[str] | None = None,
        create: bool = False,
    ) -> None:
        """Take the place; it is opened by `async with`."""
        self._open = lambda: library.Archive(place, data=data, create=create)
        self._thread = ThreadPoolExecutor(1, "tamias archive")
        self._archive: library.Archive

    async def __aenter__(self) -> Self:
        self._archive = await asyncio.get_running_loop().run_in_executor(self._thread, self._open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.run(library.Archive.close)
        self._thread.shutdown(wait=False)

    async def run(self, work: Callable[[library.Archive], T]) -> T:
        """Return what a function makes of the archive: `run(lambda it: it.get(url).text())`."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._archive)

    resource = _awaited(library.Archive.resource)
    versions = _awaited(library.Archive.versions)
    get = _awaited(library.Archive.get)
    history = _awaited(library.Archive.history)
    graph_history = _awaited(library.Archive.graph_history)
    diff = _awaited(library.Archive.diff)
    diff_update = _awaited(library.Archive.diff_update)
    diff_portal = _awaited(library.Archive.diff_portal)
    query = _awaited(library.Archive.query)
    add = _awaited(library.Archive.add)
    remove = _awaited(library.Archive.remove)

    async def resources(
        self, *, host: str | None = None, media_type: str | None = None, portal: str | None = None
    ) -> AsyncIterator[ArchivedResource]:
        """Yield the resources under watch, all or some, in the order of their ids."""
        found = await self.run(lambda it: it.resources(host=host, media_type=media_type, portal=portal))
        while page := await self.run(lambda _: list(islice(found, AT_ONCE))):
            for each in page:
                yield each

    async def visit(self, *urls: str, **options: Unpack[CrawlKeywords]) -> CrawlSnapshot:
        """Visit watched URLs now, without any those that are due."""
        async with self._archive.start_visit(*urls, **options) as running:
            return [now async for now in running][-1]

    async def watch(
        self,
        url: str | None = None,
        *,
        host: str | None = None,
        portal: str | None = None,
        after: int | None = None,
    ) -> AsyncIterator[Event]:
        """Follow what happens, as `tamias.Archive.watch`."""
        step, number = await self.run(lambda it: it.events(url, host, portal)), after
        while True:
            number, found = await self.run(partial(_after, step, number))
            for each in found:
                yield each
            if not found:
                await asyncio.sleep(library.LOOK_SECONDS)


def _after(step: library.Step, number: int | None, _: library.Archive) -> tuple[int, list[Event]]:
    return step(number)
