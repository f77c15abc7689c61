"""The sitemaps of a site, and its signals about the use of its content."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from tamias.crawl.plan.admit import Admission, first
from tamias.crawl.request.robots import RobotsCache
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.worker_store import WorkerStore
from tamias.model.capture import Capture
from tamias.model.item import MOST_DEPTH, WATCH, Item
from tamias.model.kind import CONTEXT, PROBE, SITEMAP, kind_of
from tamias.model.lease import Task
from tamias.model.site import Signal
from tamias.model.url import authority
from tamias.model.usage import LICENCE
from tamias.permit.licences import LicensedContent, is_licence, licensed_content
from tamias.permit.robots import Rules, parse
from tamias.permit.signals import PLACE, TdmRule, signals_of, tdm_rules
from tamias.seeds.well_known import well_known_urls
from tamias.settings import Settings


class SitemapDiscovery:
    """Puts sitemaps and well-known addresses before anything else of a place is asked for."""

    def __init__(
        self,
        settings: Settings,
        robots: RobotsCache,
        store: WorkerStore,
        admission: Admission,
    ) -> None:
        self._settings = settings
        self._robots = robots
        self._store = store
        self._admission = admission
        self._open: dict[tuple[int, str], int] = {}
        """How deep the URL was that opened a place in a crawl."""

    async def open_site(self, task: Task, held: HeldLease) -> bool:
        """Put the sitemaps of a new place; return if some must be visited first. Raises `RobotsDelayed`."""
        place = authority(task.url) if self._wanted(task) else None
        if place is None or self._open.get((task.crawl, place), MOST_DEPTH) <= self._counting(task):
            return False
        items = await self._found(task, held, place)
        if items and not await self._is_open(task, held, place):
            await self._store.put(items)
            await self._store.open_site(held.lease, task.crawl, place, task.depth)
        else:
            items = []
        if len(self._open) > _REMEMBERED:
            self._open.clear()
        self._open[task.crawl, place] = task.depth
        return bool(items)

    async def _is_open(self, task: Task, held: HeldLease, place: str) -> bool:
        return await self._store.is_site_open(held.lease, task.crawl, place, self._counting(task))

    def _counting(self, task: Task) -> int:
        """Return the depth that counts for a place; it matters only for seeds and with a limit."""
        return task.depth if task.depth == 0 or self._settings.crawl.depth is not None else MOST_DEPTH - 1

    def _wanted(self, task: Task) -> bool:
        """Tell if sitemaps are wanted; at the depth limit their URLs could not be visited."""
        seeds, limit = self._settings.seeds, self._settings.crawl.depth
        return (
            kind_of(task.tags) is None
            and (limit is None or task.depth < limit)
            and self._settings.permit.robots
            and task.url.startswith(("http://", "https://"))
            and (seeds.sitemaps or (seeds.probe and task.depth == 0))
        )

    async def _found(self, task: Task, held: HeldLease, place: str) -> list[Item]:
        sitemaps = await self._robots.sitemaps(task.url, held)
        if sitemaps is None:
            return []
        wanted = sitemaps if self._settings.seeds.sitemaps else ()
        items = [self._item(url, SITEMAP, task) for url in wanted if self._admits(url, task)]
        licences = licences_in(self._robots.signals(task.url))
        items += [self._item(url, CONTEXT, task) for url in licences if self._admits(url, task)]
        if self._settings.seeds.probe and task.depth == 0 and task.crawl != WATCH:
            places = well_known_urls(place, bool(sitemaps))
            items += [self._item(each.url, PROBE, task) for each in places]
        return items

    def _admits(self, url: str, task: Task) -> bool:
        return self._admission.refusal(url, task.depth) is None

    def _item(self, url: str, kind: str, task: Task) -> Item:
        return first(self._admission, url, kind, task)


_REMEMBERED = 10_000
_NONE_SECONDS = 60.0
_MOST_NOTED = 100
AI_TXT_PLACE = "/ai.txt"


class _UsageFiles(NamedTuple):
    tdm: tuple[TdmRule, ...] = ()
    ai: Rules | None = None
    licensed: tuple[LicensedContent, ...] = ()


_NO_FILES = _UsageFiles()


class UsageSignals:
    """Gathers the signals in force for a capture: headers, metas, files of its host, licences."""

    def __init__(
        self,
        robots: RobotsCache,
        store: WorkerStore,
        *,
        probed: bool,
    ) -> None:
        """`probed`: whether tdmrep.json and ai.txt are looked for at all."""
        self._robots = robots
        self._store = store
        self._probed = probed
        self._files: dict[str, tuple[_UsageFiles, float]] = {}
        self._noted: dict[str, bytes] = {}

    def note(self, address: str, body: bytes) -> None:
        """Remember a licence until it is committed."""
        if is_licence(body):
            if len(self._noted) >= _MOST_NOTED:
                self._noted.clear()
            self._noted[address] = body

    async def signals(self, capture: Capture, metas: Sequence[tuple[str, str]]) -> tuple[Signal, ...]:
        """Return all usage signals with their sources."""
        headers, url = capture.hops[-1].headers if capture.hops else (), capture.final_url
        robots_signals = self._robots.signals(url)
        licences = licences_in(robots_signals)
        files = await self._usage_files(url, licences) if self._probed or licences else _NO_FILES
        return signals_of(
            headers, metas, robots_signals, url=url, tdm=files.tdm, ai=files.ai, licensed=files.licensed
        )

    async def _usage_files(self, url: str, licences: Sequence[str]) -> _UsageFiles:
        if not url.startswith(("http://", "https://")):
            return _NO_FILES
        place = authority(url)
        files, until = self._files.get(place, (_NO_FILES, 0.0))
        if until < time.monotonic():
            known = await self._store.read_contexts([place + PLACE, place + AI_TXT_PLACE, *licences], 0)
            files = _files(known.get(place + PLACE), known.get(place + AI_TXT_PLACE))
            bodies = [self._noted.get(each) or known.get(each) or b"" for each in licences]
            licensed = tuple(part for body in bodies for part in licensed_content(body, place))
            files = files._replace(licensed=licensed)
            if len(self._files) >= _REMEMBERED:
                self._files.clear()
            seconds = _NONE_SECONDS if files == _NO_FILES else 3600.0
            self._files[place] = files, time.monotonic() + seconds
        return files


def licences_in(signals: Sequence[tuple[str, str]]) -> list[str]:
    """Return the addresses of the licences among the signals of a robots.txt."""
    return [value for key, value in signals if key == LICENCE]


def _files(tdm: bytes | None, ai: bytes | None) -> _UsageFiles:
    return _UsageFiles(tdm_rules(tdm or b""), parse(ai) if ai else None)
