"""The sitemaps that robots.txt of a place names, and the well-known addresses where a crawl begins."""

from tamias.crawl.plan.admit import Admission, first
from tamias.crawl.request.robots import RobotsCache
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.worker_store import WorkerStore
from tamias.frontier.service.state import WATCH
from tamias.model.item import MOST_DEPTH, Item
from tamias.model.kind import PROBE, SITEMAP, kind_of
from tamias.model.lease import Task
from tamias.model.url import authority
from tamias.seeds.well_known import well_known_urls
from tamias.settings import Settings

_REMEMBERED = 10_000


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
        """Puts the sitemaps of a new place; true if some were put: they come first. Raises `AskedToWait`."""
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
        """As near as this a place must have been opened before; only a limit or a seed makes a difference."""
        return task.depth if task.depth == 0 or self._settings.crawl.depth is not None else MOST_DEPTH - 1

    def _wanted(self, task: Task) -> bool:
        """At the depth limit nothing that a sitemap lists could be visited."""
        seeds, limit = self._settings.seeds, self._settings.crawl.depth
        return (
            kind_of(task.tags) is None
            and (limit is None or task.depth < limit)
            and self._settings.permit.robots
            and task.url.startswith(("http://", "https://"))
            and (seeds.sitemaps or (seeds.probe and task.depth == 0))
        )

    async def _found(self, task: Task, held: HeldLease, place: str) -> list[Item]:
        told = await self._robots.sitemaps(task.url, held)
        if told is None:
            return []
        wanted = told if self._settings.seeds.sitemaps else ()
        items = [self._item(url, SITEMAP, task) for url in wanted if self._admits(url, task)]
        if self._settings.seeds.probe and task.depth == 0 and task.crawl != WATCH:
            places = well_known_urls(place, bool(told))
            items += [self._item(each.url, PROBE, task) for each in places]
        return items

    def _admits(self, url: str, task: Task) -> bool:
        return self._admission.refusal(url, task.depth) is None

    def _item(self, url: str, kind: str, task: Task) -> Item:
        return first(self._admission, url, kind, task)
