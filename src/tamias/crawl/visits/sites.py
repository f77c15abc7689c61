"""The signposts of a place where a crawl begins: the sitemaps of its robots.txt, and the usual places."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tamias.archive.sites import open_site, site_is_open
from tamias.crawl.admit import Admission, first
from tamias.crawl.archiving.keeping import WATCH
from tamias.crawl.commits.commit import Committer
from tamias.crawl.visits.pace import Held
from tamias.crawl.visits.robots import RobotsDesk
from tamias.database.connect import Session
from tamias.model.item import Item
from tamias.model.kind import PROBE, SITEMAP, kind_of
from tamias.model.lease import Task
from tamias.model.url import authority
from tamias.seeds.usual_places import usual_places
from tamias.settings import Settings

_REMEMBERED = 10_000


class SiteDesk:
    """Puts signposts before anything else of a place is asked for."""

    def __init__(
        self,
        settings: Settings,
        robots: RobotsDesk,
        *,
        session: Session,
        in_database: Callable[..., Awaitable[Any]],
        admission: Admission,
        committer: Committer,
        now: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._robots = robots
        self._session = session
        self._in_database = in_database
        self._admission = admission
        self._committer = committer
        self._now = now
        self._open: set[tuple[int, str]] = set()

    async def opened(self, task: Task, held: Held) -> bool:
        """Whether signposts were put just now; they want to be visited first. Raises `AskedToWait`."""
        if not self._wanted(task):
            return False
        place = authority(task.url)
        if (task.crawl, place) in self._open:
            return False
        if len(self._open) > _REMEMBERED:
            self._open.clear()
        items: list[Item] = []
        if not await self._in_database(site_is_open, self._session, held.lease, task.crawl, place):
            items = await self._signposts(task, held, place)
            await asyncio.to_thread(self._committer.put_items, items)
            await self._in_database(open_site, self._session, held.lease, task.crawl, place, self._now())
        self._open.add((task.crawl, place))
        return bool(items)

    def _wanted(self, task: Task) -> bool:
        return (
            task.depth == 0
            and kind_of(task.tags) is None
            and self._settings.crawl.depth != 0
            and self._settings.permit.robots
            and task.url.startswith(("http://", "https://"))
            and (self._settings.seeds.sitemaps or self._settings.seeds.probe)
        )

    async def _signposts(self, task: Task, held: Held, place: str) -> list[Item]:
        told = await self._robots.sitemaps(task.url, held)
        if told is None:
            return []
        items = [self._item(url, SITEMAP, task) for url in told if self._settings.seeds.sitemaps]
        if self._settings.seeds.probe and task.crawl != WATCH:
            places = usual_places(place, bool(told))
            items += [self._item(each.url, PROBE, task) for each in places]
        return items

    def _item(self, url: str, kind: str, task: Task) -> Item:
        return first(self._admission, url, kind, task)
