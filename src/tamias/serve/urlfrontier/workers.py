"""The second service: what workers without a database ask for, and where they deliver. See `tamias.proto`."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

import msgspec

from tamias.crawl.plan.admit import Reference
from tamias.crawl.plan.policy import CRAWL
from tamias.crawl.remote import wire
from tamias.crawl.remote.committer import RemoteCommitter
from tamias.crawl.remote.grpc import messages
from tamias.crawl.remote.grpc.channel import CRAWL_HEADER
from tamias.crawl.remote.grpc.messages import message
from tamias.crawl.remote.grpc.status import CallError, Code
from tamias.crawl.remote.registry import WorkerRegistry
from tamias.crawl.remote.wire import packed, unpacked
from tamias.frontier.service.state import crawl_names, found_crawl
from tamias.model.item import Item
from tamias.serve.urlfrontier.grpc.calls import Call
from tamias.serve.urlfrontier.puts import parsed
from tamias.serve.urlfrontier.reading import checked
from tamias.serve.urlfrontier.session_threads import FrontierThreads

_PACKED = message("tamias.Packed")
_PARCEL = message("tamias.Parcel")
_RECEIPT = message("tamias.Receipt")
_GET = message("urlfrontier.GetParams")
_INFO = message("urlfrontier.URLInfo")

MOST_HOSTS = 1000
MOST_SECONDS = 600
HOLD_SECONDS = 30
LOOK_SECONDS = 0.1
"""How often it is looked whether a delivery waits for a node of the database."""
MOST_VISIT = 64 << 20
"""Bytes of a visit without its quads."""
IN_MEMORY = 1 << 20
"""Bytes of a document's quads that are not put into a file."""

Route = Callable[[Call], Awaitable[None]]
Answer = Callable[[RemoteCommitter, Any], Awaitable[Any]]


_CLIENTS_OWN = (
    "the crawl is one of clients with a politeness of its own: workers of Tamias cannot work for it"
)


class Workers:
    """The calls of the service `Workers`, and GetURLs where a worker asks."""

    def __init__(self, registry: WorkerRegistry, threads: FrontierThreads) -> None:
        self._registry = registry
        self._threads = threads

    def routes(self) -> dict[str, Route]:
        """Each call by its path."""
        asked: dict[str, tuple[Any, Answer]] = {
            "Mourn": (wire.Death, RemoteCommitter.note_death),
            "GetRobots": (wire.RobotsAsked, RemoteCommitter.read_robots),
            "PutRobots": (wire.RobotsAnswer, RemoteCommitter.write_robots),
            "GetContexts": (wire.ContextsAsked, RemoteCommitter.read_contexts),
            "IsSiteOpen": (wire.Site, RemoteCommitter.is_site_open),
            "OpenSite": (wire.Site, RemoteCommitter.open_site),
            "PutItems": (list[Item], RemoteCommitter.put),
            "PutLinks": (Reference, RemoteCommitter.put_links),
        }
        single = {name: self._at_committer(kind, answer) for name, (kind, answer) in asked.items()}
        single["Hello"] = self._at_registry(wire.Greeting, self._registry.hello)
        single["Renew"] = self._at_registry(wire.Renewal, self._registry.renew)
        return {f"/{messages.WORKERS}/{name}": route for name, route in single.items()} | {
            f"/{messages.WORKERS}/Deliver": self.deliver
        }

    async def lend(self, call: Call, params: Any) -> None:
        """GetURLs for a worker: whole hosts, each with its lease."""
        crawl = await self._crawl(call)
        committer = await self._registry.committer(crawl)
        if params.policy != await self._registry.digest(crawl):
            raise CallError(
                Code.FAILED_PRECONDITION, "the settings of the crawl have changed: say hello again"
            )
        lent = await committer.lend(
            params.worker,
            min(params.max_queues or MOST_HOSTS, MOST_HOSTS),
            min(params.max_urls_per_queue or MOST_HOSTS, MOST_HOSTS),
            min(params.delay_requestable or HOLD_SECONDS, MOST_SECONDS),
        )
        names = await self._threads.run(lambda db: crawl_names(db.session)) if lent else {}
        await call.send([_info(each, names) for each in lent])

    async def deliver(self, call: Call) -> None:
        """Takes all parcels, and answers each when it is committed.

        What waits for a node of the database is not answered, so that others need not wait: it comes again.
        """
        committer = await self._registry.committer(await self._crawl(call))
        taken = {coming: name async for name, coming in _accepted(call, committer)}
        while taken and not committer.are_stranded(taken):
            done, _ = await asyncio.wait(taken, timeout=LOOK_SECONDS)
            receipts = [(taken.pop(coming), coming) for coming in done]
            await call.send(
                _RECEIPT(id=name, committed=coming.result()).SerializeToString()
                for name, coming in receipts
                if not coming.cancelled()
            )

    def _at_committer(self, kind: Any, answer: Answer) -> Route:
        async def respond(asked: Any, crawl: int) -> Any:
            return await answer(await self._registry.committer(crawl), asked)

        return self._at_registry(kind, respond)

    def _at_registry(self, kind: Any, respond: Callable[[Any, int], Awaitable[Any]]) -> Route:
        async def route(call: Call) -> None:
            asked = value_of(parsed(_PACKED, await call.one()).value, kind)
            answer = await respond(asked, await self._crawl(call))
            await call.send([_PACKED(value=packed(answer)).SerializeToString()])

        return route

    async def _crawl(self, call: Call) -> int:
        """The crawl that the worker works for: a header of each call says its name."""
        name = checked(unquote(call.metadata.get(CRAWL_HEADER, "")))
        if not name:
            return CRAWL
        found = await self._threads.run(lambda db: found_crawl(db.session, name))
        if found is None or found.own_politeness:
            raise CallError(Code.NOT_FOUND, f"there is no crawl {name!r}" if found is None else _CLIENTS_OWN)
        return found.crawl


def value_of(data: bytes, kind: Any) -> Any:
    """A worker's word of a kind, or the reason why it is none."""
    try:
        return unpacked(data, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CallError(Code.INVALID_ARGUMENT, f"not what this call takes: {error}") from None


async def _accepted(
    call: Call, committer: RemoteCommitter
) -> AsyncIterator[tuple[str, "asyncio.Future[bool]"]]:
    """Each parcel once it is complete, with what will tell whether it is committed."""
    visit, quads = bytearray(), _spool()
    try:
        async for batch in call.batches():
            for parcel in (parsed(_PARCEL, each) for each in batch):
                visit += parcel.visit
                quads.write(parcel.quads)
                if len(visit) > MOST_VISIT:
                    raise CallError(Code.RESOURCE_EXHAUSTED, f"a visit has more than {MOST_VISIT} bytes")
                if parcel.last and parcel.release:
                    yield parcel.id, committer.released(value_of(parcel.release, wire.Released))
                elif parcel.last:
                    delivered = value_of(bytes(visit), wire.DeliveredVisit)
                    yield parcel.id, await committer.accept(parcel.id, delivered, quads, again=parcel.again)
                if parcel.last:
                    quads.close()
                    visit, quads = bytearray(), _spool()
    finally:
        quads.close()


def _spool() -> BinaryIO:
    return cast("BinaryIO", tempfile.SpooledTemporaryFile(IN_MEMORY))


def _info(lent: wire.Lent, names: dict[int, str]) -> bytes:
    task = lent.task
    info = _INFO(url=task.url, key=lent.lease.host, crawlID=names.get(task.crawl, ""), lent=packed(lent))
    return info.SerializeToString()  # type: ignore[no-any-return]
