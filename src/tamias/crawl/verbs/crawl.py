"""`tamias.crawl`: a crawl from Python, in a thread of its own, so that the program goes on meanwhile."""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack

from tamias.crawl.store.progress import CrawlSnapshot
from tamias.crawl.verbs.crawl_run import CrawlRun
from tamias.crawl.verbs.run_policy import RunPlace
from tamias.crawl.verbs.seed_check import SeedFile, named_seeds, split_seeds
from tamias.crawl.worker.fork_server import use_own_servers
from tamias.model.errors import UsageError
from tamias.model.item import Seed
from tamias.model.url import without_password

if TYPE_CHECKING:
    from tamias.crawl.worker.supervisor import Supervisor

_log = logging.getLogger("tamias")


class CrawlKeywords(TypedDict, total=False):
    """The options of a crawl: those of `tamias crawl`, under the same names (docs/commands.md)."""

    preset: Literal["none", "owler"]
    depth: int
    max_urls: int
    max_time: float
    max_wait: float
    workers: int
    scope: Literal["any", "host", "domain", "prefix"]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    delay: float
    concurrency: int
    robots: bool
    allow_private: bool
    sinks: tuple[str, ...]
    contact: str
    resolve: tuple[str, ...]
    require: tuple[str, ...]
    forbid: tuple[str, ...]
    requisites: bool
    continuous: bool
    budget: float
    new_share: float
    store: str


class RunKeywords(CrawlKeywords, total=False):
    """The options of `tamias.crawl`: where the data and the settings are, and the options of the crawl."""

    data: str | os.PathLike[str]
    """The data directory. [tamias-data]"""
    db: str | None
    config: str | os.PathLike[str] | None
    name: str | None
    """As `--crawl` has it."""
    again: bool


_TABLES = {
    **dict.fromkeys(("scope", "include", "exclude"), "filters"),
    **dict.fromkeys(("delay", "concurrency", "contact", "resolve"), "fetch"),
    **dict.fromkeys(("robots", "allow_private"), "permit"),
    **dict.fromkeys(("require", "forbid"), "frontier"),
    "store": "archive",
}
"""The tables of options that are not in `crawl`."""


class RunningCrawl:
    """A crawl under way. Iterate over it, with `for` or `async for`, to see how it goes.

    It goes on whether somebody looks or not; an iterator skips what it was too slow for, but not the end.
    Leaving the `with` block stops it: what was fetched is stored, and the same call resumes.
    """

    def __init__(
        self, place: RunPlace, name: str | None, options: dict[str, Any], seeds: Sequence[str], work: "Work"
    ) -> None:
        """Check options and seeds, and begin. Raises `UsageError` for what is none."""
        for unknown in options.keys() - CrawlKeywords.__annotations__:
            raise UsageError(
                f"a crawl has no option '{unknown}'; it has {list(CrawlKeywords.__annotations__)}"
            )
        flags = {f"{_TABLES.get(key, 'crawl')}__{key}": value for key, value in options.items()}
        self._run = CrawlRun(place, flags, name, drive=self._drive, tell=_log.warning, note=_log.info)
        single, _, imports = split_seeds(seeds, ())
        self._work = partial(work, self._run, self._run.check(named_seeds(single, ())), imports)
        self._changed = threading.Condition()
        self._latest: tuple[int, CrawlSnapshot | None] = (0, None)
        self._stop: Callable[[], object] | None = None
        self._is_stopped = self._has_ended = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run_to_end, name="tamias crawl")
        self._thread.start()

    def stop(self) -> None:
        """Let it come to its end; a later run resumes."""
        with self._changed:
            self._is_stopped = True
            if self._stop is not None:
                self._stop()

    def wait(self) -> CrawlSnapshot:
        """Return how it ended. Raises what kept it from its end, such as `DiskFull`."""
        *_, end = self
        return end

    def __iter__(self) -> Iterator[CrawlSnapshot]:
        number, is_end = 0, False
        while not is_end:
            number, news, is_end = self._next(number)
            if news is not None:
                yield news

    async def __aiter__(self) -> AsyncIterator[CrawlSnapshot]:
        number, is_end = 0, False
        while not is_end:
            number, news, is_end = await asyncio.to_thread(self._next, number)
            if news is not None:
                yield news

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        # Whoever cancels this as well must not leave it running.
        await asyncio.shield(asyncio.to_thread(self._thread.join))

    def _next(self, number: int) -> tuple[int, CrawlSnapshot | None, bool]:
        """Wait for the snapshot after one; return its number, and whether it is the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._latest[0] > number or self._has_ended)
            if self._has_ended and self._error is not None:
                raise self._error
            return *self._latest, self._has_ended

    def _show(self, now: CrawlSnapshot) -> None:
        with self._changed:
            self._latest = self._latest[0] + 1, now
            self._changed.notify_all()

    def _run_to_end(self) -> None:
        use_own_servers()  # those of the process belong to its event loop
        try:
            with closing(self._run):
                self._run.start_keeper()
                self._show(self._work())
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits
            self._error = error
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _drive(self, supervisor: "Supervisor") -> CrawlSnapshot:
        async def run() -> CrawlSnapshot:
            loop = asyncio.get_running_loop()
            with self._changed:
                self._stop = partial(loop.call_soon_threadsafe, supervisor.stop)
                if self._is_stopped:
                    supervisor.stop()
            try:
                return await supervisor.run(self._show)
            finally:
                with self._changed:
                    self._stop = None

        return asyncio.run(run())


Work = Callable[[CrawlRun, list[Seed], list[SeedFile]], CrawlSnapshot]
"""What a run does with its seeds."""


def start_crawl(*seeds: str, **options: Unpack[RunKeywords]) -> RunningCrawl:
    """Start a crawl and return at once: use it in `with`, which stops it at the end of the block.

    The options are those of `crawl`.
    """
    given: dict[str, Any] = {**options}
    data, db, config, name = (given.pop(each, None) for each in ("data", "db", "config", "name"))
    again = bool(given.pop("again", False))

    def work(run: CrawlRun, named: list[Seed], imports: list[SeedFile]) -> CrawlSnapshot:
        end = run.crawl(named, imports, again=again)
        assert end is not None
        for seed in end.unfetched:
            _log.warning("%s: %s: %s", without_password(seed.url), seed.outcome.word, seed.reason)
        return end.snapshot

    place = RunPlace(Path(data or "tamias-data"), db, None if config is None else Path(config))
    return RunningCrawl(place, name, given, seeds, work)


def crawl(*seeds: str, **options: Unpack[RunKeywords]) -> CrawlSnapshot:
    """Crawl from the seeds until nothing is left, as `tamias crawl` does, and return how it ended.

    Called again, it resumes; without seeds too. What is not named stays as it was in the last run. A URL that
    cannot be fetched raises nothing: see `outcomes` and `reasons`; the logger `tamias` warns of seeds. Raises
    a `TamiasError` for anything else.
    """
    with start_crawl(*seeds, **options) as running:
        return running.wait()


def revisit(place: RunPlace, urls: Sequence[str], options: CrawlKeywords) -> RunningCrawl:
    """Start to visit watched URLs; without any, all that are due."""
    return RunningCrawl(place, None, {**options}, urls, lambda run, seeds, _: run.revisit(seeds))
