"""URLs that go out: GetURLs holds what it gives, ListURLs only looks."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from tamias.crawl.plan.forgotten_urls import ForgottenUrls
from tamias.features.remote_workers.grpc.messages import message
from tamias.features.urlfrontier.grpc.http2 import Call
from tamias.features.urlfrontier.held import Given, Handing, Wish
from tamias.features.urlfrontier.puts import parsed
from tamias.features.urlfrontier.reading import checked, date_of, fill_metadata
from tamias.features.urlfrontier.session_threads import FrontierSession, FrontierThreads
from tamias.frontier.service import Listing, NamedQueues, Spot, UrlState, crawl_names, found_crawl
from tamias.model.errors import UrlError
from tamias.model.url import fetch_url

_GET = message("urlfrontier.GetParams")
_INFO = message("urlfrontier.URLInfo")
_LIST = message("urlfrontier.ListUrlParams")
_ITEM = message("urlfrontier.URLItem")

HOLD_SECONDS = 30
PAGE = 100
"""Entries of a list whose size is not told."""
_URLS_AT_ONCE = 1000
_MOST = 2**31 - 2


class Gets:
    """The calls GetURLs and ListURLs."""

    def __init__(
        self,
        threads: FrontierThreads,
        lend: Callable[[Call, Any], Awaitable[None]],
        forgotten: ForgottenUrls,
        unsynced: frozenset[str] = frozenset(),
    ) -> None:
        """`lend` answers where a worker of ours asks; `unsynced`: crawls that do not wait for the disk."""
        self._unsynced = unsynced
        self._threads = threads
        self._lend = lend
        self._forgotten = forgotten
        self._names: dict[int, str] = {}

    async def get_urls(self, call: Call) -> None:
        """Part by part: while one is sent, the next is fetched, and no further one before that is sent.

        Who asks for all queues is served by two transactions at a time.
        """
        params = parsed(_GET, await call.one())
        if params.worker:
            await self._lend(call, params)
            return
        unsynced = await self._unsynced_crawls()
        if self._forgotten.is_stale:
            await self._threads.run(lambda db: self._forgotten.refresh(db.session))
        wish = await self._threads.run(lambda db: _wish(db, params, unsynced))
        if wish is None:
            return
        handing = await self._threads.run(lambda db: db.holds.begin(wish))
        is_open = wish.hosts is None and wish.host is None
        handings = [handing, handing.beside()] if is_open else [handing]
        coming = deque((each, asyncio.create_task(self._next(each))) for each in handings)
        try:
            while coming:
                given = await coming[0][1]
                handing, _ = coming.popleft()
                if given is None:
                    continue
                if handing.may_go_on():
                    coming.append((handing, asyncio.create_task(self._next(handing))))
                await self._know_names({row[1] for row in given.rows})
                await asyncio.sleep(0)  # so that it begins
                await call.send(self._infos(given))
        finally:
            for _, part in coming:
                part.cancel()

    async def list_urls(self, call: Call) -> None:
        """Done and scheduled URLs of a crawl, or of one queue."""
        params = parsed(_LIST, await call.one())
        crawl = await self._threads.run(lambda db: found_crawl(db.session, checked(params.crawlID)))
        if crawl is None:
            return
        listing, left = listing_of(params, crawl), params.size or PAGE
        spot: Spot | None = Spot(skip=params.start)
        await self._know_names({crawl.crawl})
        while left > 0 and spot is not None:
            page, spot = await self._page(listing, spot, min(left, _URLS_AT_ONCE))
            left -= len(page)
            await call.send([known_item(each, self._names[crawl.crawl]).SerializeToString() for each in page])

    async def _next(self, handing: Handing) -> Given | None:
        return await self._threads.run(lambda db: db.holds.next(handing))

    async def _page(self, listing: Listing, spot: Spot, size: int) -> tuple[list[UrlState], Spot | None]:
        return await self._threads.run(lambda db: db.queues.urls(listing, spot, size))

    def _is_forgotten(self, spelling: str) -> bool:
        try:
            return self._forgotten.refuse(fetch_url(spelling)) is not None
        except UrlError:
            return False

    def _infos(self, given: Given) -> list[bytes]:
        """Write the URLs that are not forgotten."""
        rows, hosts, names = given.rows, given.hosts, self._names
        if self._forgotten:
            rows = [row for row in rows if not self._is_forgotten(row[2])]
        infos = []
        for qid, crawl, url, metadata, tags, _, _, _, _ in rows:
            info = _INFO(url=url, key=hosts[qid], crawlID=names[crawl])
            fill_metadata(info, metadata, tags)
            infos.append(info.SerializeToString())
        return infos

    async def _unsynced_crawls(self) -> frozenset[int]:
        if not self._unsynced <= set(self._names.values()):
            self._names = await self._threads.run(lambda db: crawl_names(db.session))
        return frozenset(crawl for crawl, name in self._names.items() if name in self._unsynced)

    async def _know_names(self, crawls: set[int]) -> None:
        if not crawls <= self._names.keys():
            self._names = await self._threads.run(lambda db: crawl_names(db.session))


def _wish(db: FrontierSession, params: Any, unsynced: frozenset[int]) -> Wish | None:
    """Return what a client wants; None if nothing can fit."""
    named = params.WhichOneof("item") == "crawlID"
    crawl = found_crawl(db.session, checked(params.crawlID)) if named else None
    if (named and crawl is None) or (params.key and not named):
        return None
    return Wish(
        hosts=min(params.max_queues, _MOST) or None,
        per_host=min(params.max_urls_per_queue, _MOST) or None,
        hold_ms=1000 * (params.delay_requestable or HOLD_SECONDS),
        crawl=crawl.crawl if crawl else None,
        host=crawl.host(checked(params.key)) if crawl and params.key else None,
        unsynced=unsynced,
    )


def listing_of(params: Any, crawl: NamedQueues) -> Listing:
    """Return the selection of URLs that a ListURLs or CountURLs request names."""
    part = params.filter.replace("\0", "")
    host = crawl.host(checked(params.key)) if params.key else None
    return Listing(crawl=crawl.crawl, host=host, part=part or None, any_case=params.ignoreCase)


def known_item(state: UrlState, crawl: str) -> Any:
    """A URL as clients are told of it."""
    item = _ITEM(creation_date=state.first_seen // 1000)
    item.known.refetchable_from_date = date_of(state.due)
    item.known.info.url, item.known.info.key, item.known.info.crawlID = state.url, state.host, crawl
    fill_metadata(item.known.info, state.metadata, state.tags)
    return item
