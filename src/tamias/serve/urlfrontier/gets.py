"""URLs that go out: GetURLs holds what it gives, ListURLs only looks."""

import asyncio
from typing import Any

from tamias.frontier.held import Given, Wish
from tamias.frontier.queues import Listing, UrlState
from tamias.frontier.service import crawl_names, found_crawl
from tamias.serve.urlfrontier.calls import Call
from tamias.serve.urlfrontier.desk import Clerk, Desk
from tamias.serve.urlfrontier.messages import message
from tamias.serve.urlfrontier.puts import parsed
from tamias.serve.urlfrontier.reading import checked, date_of, fill_metadata

_GET = message("urlfrontier.GetParams")
_INFO = message("urlfrontier.URLInfo")
_LIST = message("urlfrontier.ListUrlParams")
_ITEM = message("urlfrontier.URLItem")

HOLD_SECONDS = 30
PAGE = 100
"""Entries of a list whose size is not told."""


class Gets:
    """The calls GetURLs and ListURLs."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._names: dict[int, str] = {}

    async def get_urls(self, call: Call) -> None:
        """Part by part: while one is sent, the next is fetched; none is fetched for a client that does not read."""
        params = parsed(_GET, await call.one())
        wish = await self._desk.ask(lambda clerk: _wish(clerk, params))
        if wish is None:
            return
        handing = await self._desk.ask(lambda clerk: clerk.holds.begin(wish))
        given = await self._desk.ask(lambda clerk: clerk.holds.next(handing))
        while given:
            await self._know_names({each.crawl for each in given})
            async with asyncio.TaskGroup() as group:
                group.create_task(call.send([self._info(each) for each in given]))
                if handing.may_go_on():
                    coming = group.create_task(self._desk.ask(lambda clerk: clerk.holds.next(handing)))
            given = coming.result() if handing.may_go_on() else []

    async def list_urls(self, call: Call) -> None:
        """Done and scheduled URLs of a crawl, or of one queue."""
        params = parsed(_LIST, await call.one())
        crawl = await self._desk.ask(lambda clerk: found_crawl(clerk.session, checked(params.crawlID)))
        if crawl is None:
            return
        await self._know_names({crawl})
        listing = listing_of(params, crawl)
        cursor = (0, None)
        pages = await self._desk.ask(lambda clerk: clerk.queues.urls(listing, params.start, params.size or PAGE))
        raise NotImplementedError

    def _info(self, given: Given) -> bytes:
        info = _INFO(url=given.url, key=given.host, crawlID=self._names[given.crawl])
        fill_metadata(info, given.metadata)
        return info.SerializeToString()  # type: ignore[no-any-return]

    async def _know_names(self, crawls: set[int]) -> None:
        if not crawls <= self._names.keys():
            self._names = await self._desk.ask(lambda clerk: crawl_names(clerk.session))
