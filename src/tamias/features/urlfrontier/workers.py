"""The second service: what workers without a database ask for, and where they deliver. See `tamias.proto`."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

import msgspec

from tamias.crawl.analysis.marker import DocumentPlace
from tamias.crawl.plan.policy import CRAWL
from tamias.features.remote_workers import wire
from tamias.features.remote_workers.committer import RemoteCommitter
from tamias.features.remote_workers.grpc import connection
from tamias.features.remote_workers.grpc.channel import CRAWL_HEADER
from tamias.features.remote_workers.grpc.connection import CallError, Code, message
from tamias.features.remote_workers.registry import WorkerRegistry
from tamias.features.remote_workers.wire import packed, unpacked
from tamias.features.urlfrontier.grpc.http2 import Call
from tamias.features.urlfrontier.puts import parsed
from tamias.features.urlfrontier.reading import checked
from tamias.features.urlfrontier.session_threads import FrontierThreads
from tamias.frontier.service import crawl_names, found_crawl

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
Answer = Callable[..., Awaitable[Any]]
_OF_THE_STORE = {
    "GetRobots": "read_robots",
    "PutRobots": "write_robots",
    "GetContexts": "read_contexts",
    "IsSiteOpen": "is_site_open",
    "OpenSite": "open_site",
    "PutItems": "put",
    "PutLinks": "put_links",
}
"""Calls that ask the store of the service, and the names of its methods."""
_CLIENTS_OWN = (
    "the crawl is one of clients with a politeness of its own: workers of Tamias cannot work for it"
)


class Workers:
    """The calls of the service `Workers`, and GetURLs where a worker asks."""

    def __init__(self, registry: WorkerRegistry, threads: FrontierThreads) -> None:
        self._registry = registry
        self._threads = threads

    def routes(self) -> dict[str, Route]:
        """Return the handlers of the calls by their paths."""
        single = {name: self._at_store(method) for name, method in _OF_THE_STORE.items()}
        single |= {"Hello": self._registry.hello, "Renew": self._registry.renew, "Mourn": self._note_death}
        routes = {name: self._route(wire.CALLS[name], answer) for name, answer in single.items()}
        routes["Deliver"] = self.deliver
        return {f"/{connection.WORKERS}/{name}": route for name, route in routes.items()}

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

    def _at_store(self, method: str) -> Answer:
        async def respond(crawl: int, *arguments: Any) -> Any:
            return await (await self._registry.committer(crawl)).ask(method, *arguments)

        return respond

    async def _note_death(self, crawl: int, worker: int, analysed: list[DocumentPlace]) -> None:
        await (await self._registry.committer(crawl)).note_death(worker, analysed)

    def _route(self, arguments: Any, respond: Answer) -> Route:
        async def route(call: Call) -> None:
            values = value_of(parsed(_PACKED, await call.one()).value, arguments)
            values = values if isinstance(values, tuple) else (values,)
            answer = await respond(await self._crawl(call), *values)
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
    """Yield each complete parcel, with the future that says whether it is committed."""
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
