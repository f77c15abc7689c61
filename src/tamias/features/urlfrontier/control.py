"""The calls about queues, crawls, single URLs and the service as a whole; and those that give URLs out.

GetURLs holds what it gives, ListURLs only looks.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from tamias.crawl.plan.forgotten_urls import ForgottenUrls
from tamias.features.remote_workers.grpc.connection import CallError, Code, message
from tamias.features.urlfrontier.grpc.http2 import Call
from tamias.features.urlfrontier.held import Given, Handing, Wish
from tamias.features.urlfrontier.puts import parsed
from tamias.features.urlfrontier.reading import (
    Addresses,
    checked,
    date_of,
    fill_metadata,
    milliseconds,
    queue_key,
)
from tamias.features.urlfrontier.session_threads import FrontierSession, FrontierThreads
from tamias.frontier import service
from tamias.frontier.service import Listing, NamedQueues, Spot, UrlState, crawl_names, found_crawl
from tamias.model.errors import UrlError
from tamias.model.item import WATCH
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


Answerer = Callable[[FrontierSession, Any], Any]

_EMPTY = message("urlfrontier.Empty")
_LONG = message("urlfrontier.Long")
_BOOLEAN = message("urlfrontier.Boolean")
_STRINGS = message("urlfrontier.StringList")
_QUEUES = message("urlfrontier.QueueList")
_STATS = message("urlfrontier.Stats")

MOST_QUEUES = 100_000
"""Of one answer to ListQueues."""
MOST_DELAY_MS = 2**31 - 1
_LEVELS = (logging.DEBUG, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


class ControlCalls:
    """Answers; each is one piece of work on the database."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses

    def answerers(self) -> dict[str, Answerer]:
        """The answers by the names of their calls."""
        return {
            "ListNodes": self.list_nodes,
            "ListCrawls": self.list_crawls,
            "DeleteCrawl": self.delete_crawl,
            "ListQueues": self.list_queues,
            "GetStats": self.get_stats,
            "DeleteQueue": self.delete_queue,
            "BlockQueueUntil": self.block_queue_until,
            "SetActive": self.set_active,
            "GetActive": self.get_active,
            "SetDelay": self.set_delay,
            "SetLogLevel": self.set_log_level,
            "SetCrawlLimit": self.set_crawl_limit,
            "GetURLStatus": self.get_url_status,
            "CountURLs": self.count_urls,
            "PurgeURLs": self.purge_urls,
        }

    def list_nodes(self, db: FrontierSession, _: Any) -> Any:
        """The instances that are alive."""
        return _STRINGS(values=service.nodes(db.session))

    def list_crawls(self, db: FrontierSession, _: Any) -> Any:
        """The crawls that have queues, except the archive's own."""
        names = service.crawl_names(db.session)
        crawls = db.queues.crawls() - {WATCH}
        return _STRINGS(values=sorted(names[crawl] for crawl in crawls if crawl in names))

    def delete_crawl(self, db: FrontierSession, params: Any) -> Any:
        """Removes all queues of a crawl."""
        crawl = self._crawl(db, params.value)
        return _LONG(value=0 if crawl is None else db.queues.delete(crawl.crawl, politeness_of=crawl))

    def list_queues(self, db: FrontierSession, params: Any) -> Any:
        """A page of the queues of a crawl."""
        crawl = self._crawl(db, params.crawlID)
        size = min(params.size or PAGE, MOST_QUEUES)
        answer = _QUEUES(start=params.start, crawlID=_name(params.crawlID))
        if crawl is not None:
            busy = not params.include_inactive
            keys, answer.total = db.queues.names(crawl.crawl, params.start, size, busy=busy)
            answer.values.extend(keys)
        answer.size = len(answer.values)
        return answer

    def get_stats(self, db: FrontierSession, params: Any) -> Any:
        """Counts of a queue or of a crawl."""
        crawl = self._crawl(db, params.crawlID)
        answer = _STATS(crawlID=_name(params.crawlID), counts={"completed": 0, "active_queues": 0})
        if crawl is not None:
            host = crawl.host(checked(params.key)) if params.key else None
            figures = db.queues.figures(crawl.crawl, host)
            answer.size, answer.inProcess = figures.scheduled, figures.held
            answer.counts["completed"], answer.counts["active_queues"] = figures.done, figures.busy_queues
            answer.numberOfQueues = figures.queues
        return answer

    def delete_queue(self, db: FrontierSession, params: Any) -> Any:
        """Removes a queue with its URLs."""
        crawl = self._crawl(db, params.crawlID)
        key = self._key(params, "DeleteQueue")
        if crawl is None:
            return _LONG(value=0)
        return _LONG(value=db.queues.delete(crawl.crawl, crawl.host(key), politeness_of=crawl))

    def block_queue_until(self, db: FrontierSession, params: Any) -> Any:
        """The host is left alone until after this second; 0 ends that."""
        until = milliseconds(params.time) + 1 if params.time else 0
        key, crawl = self._key(params, "BlockQueueUntil"), self._crawl(db, params.crawlID)
        if crawl is not None:
            db.queues.pause(crawl.host(key), until)
        return _EMPTY()

    def set_active(self, db: FrontierSession, params: Any) -> Any:
        """Set whether URLs are given out."""
        service.set_active(db.session, params.state)
        return _EMPTY()

    def get_active(self, db: FrontierSession, _: Any) -> Any:
        """Return whether URLs are given out."""
        return _BOOLEAN(state=db.session.transact(service.is_active))

    def set_delay(self, db: FrontierSession, params: Any) -> Any:
        """The delay of one queue, or of all that have none of their own."""
        given_ms = params.delay_ms if params.HasField("delay_ms") else params.delay_requestable * 1000
        delay_ms = min(given_ms, MOST_DELAY_MS)
        if params.key:
            crawl = self._crawl(db, params.crawlID)
            if crawl is not None:
                db.queues.set_delay(crawl.host(checked(params.key)), delay_ms)
        else:
            service.set_usual_delay(db.session, delay_ms)
        return _EMPTY()

    def set_log_level(self, _db: FrontierSession, params: Any) -> Any:
        """Set the log level of this instance; a package that is not ours stands for all of Tamias."""
        if not 0 <= params.level < len(_LEVELS):
            raise CallError(Code.INVALID_ARGUMENT, f"there is no log level {params.level}")
        ours = params.package if params.package.startswith("tamias") else "tamias"
        logging.getLogger(ours).setLevel(_LEVELS[params.level])
        return _EMPTY()

    def set_crawl_limit(self, db: FrontierSession, params: Any) -> Any:
        """A queue is served until so many of its URLs are done; 0 takes the limit away."""
        crawl = self._crawl(db, params.crawlID)
        key = self._key(params, "SetCrawlLimit")
        if crawl is None or not db.queues.set_limit(crawl.host(key), crawl.crawl, params.limit or None):
            raise CallError(Code.NOT_FOUND, f"crawl {_name(params.crawlID)} has no queue {key!r}")
        return _EMPTY()

    def get_url_status(self, db: FrontierSession, params: Any) -> Any:
        """Return the state of one URL."""
        try:
            url = fetch_url(params.url.replace("\0", ""))
        except UrlError as error:
            raise CallError(Code.INVALID_ARGUMENT, str(error)) from None
        key = checked(params.key) or queue_key(url)
        if not key:
            raise CallError(Code.INVALID_ARGUMENT, f"{url!r} has no host, and no key was given")
        crawl = self._crawl(db, params.crawlID)
        state = None
        if crawl is not None:
            state = db.queues.status(crawl.host(key), crawl.crawl, url, self._addresses.key(url))
        if state is None:
            raise CallError(Code.NOT_FOUND, f"{url!r} is not known in queue {key!r}")
        return known_item(state, _name(params.crawlID))

    def count_urls(self, db: FrontierSession, params: Any) -> Any:
        """Count the URLs of a crawl, or of one queue, that fit."""
        crawl = self._crawl(db, params.crawlID)
        return _LONG(value=0 if crawl is None else db.queues.count(listing_of(params, crawl)))

    def purge_urls(self, db: FrontierSession, params: Any) -> Any:
        """Removes URLs that have been known for more than so many days."""
        crawl = self._crawl(db, params.crawlID)
        if crawl is None:
            return _LONG(value=0)
        host = crawl.host(checked(params.key)) if params.key else None
        return _LONG(value=db.queues.purge(crawl.crawl, host, params.days))

    @staticmethod
    def _crawl(db: FrontierSession, name: str) -> service.NamedQueues | None:
        return service.found_crawl(db.session, checked(name))

    @staticmethod
    def _key(params: Any, call: str) -> str:
        if not params.key:
            raise CallError(Code.INVALID_ARGUMENT, f"{call} needs the key of a queue")
        return checked(params.key)


def _name(crawl: str) -> str:
    """A crawl's name as it is told to clients."""
    return service.DEFAULT_CRAWL if not crawl or crawl.upper() == service.DEFAULT_CRAWL else crawl
