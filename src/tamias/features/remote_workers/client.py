"""The service as a worker sees it: each call a method. Most of them wait while the service is away."""

import math
import time
from collections.abc import Iterable, Sequence
from types import NoneType
from typing import Any, TypeVar

import msgspec

from tamias.crawl.analysis.marker import DocumentPlace
from tamias.crawl.plan.admit import Reference, with_words
from tamias.features.remote_workers import wire
from tamias.features.remote_workers.grpc.channel import CallFailed, NotReached, ReconnectingChannel
from tamias.features.remote_workers.grpc.connection import FRONTIER, WORKERS, message
from tamias.features.remote_workers.wire import bare, packed, unpacked
from tamias.model.item import Item
from tamias.model.lease import Lease, Task
from tamias.permit.availability import KnownRobots
from tamias.permit.robots import Rules

_GET = message("urlfrontier.GetParams")
_INFO = message("urlfrontier.URLInfo")
_PACKED = message("tamias.Packed")
_RECEIPT = message("tamias.Receipt")

LEASE_SECONDS = 20.0
"""A lease that is answered later than this is not waited for: it would be half over."""
DELIVER_SECONDS = 300.0
ITEMS_AT_ONCE = 5000
_FAILED_PRECONDITION = 9
T = TypeVar("T")


class Outdated(Exception):
    """The crawl was told something else since the worker said hello."""


class FrontierClient:
    """The two services of a frontier, through one connection."""

    def __init__(self, channel: ReconnectingChannel, worker: int) -> None:
        self._channel = channel
        self.worker = worker
        self._offset = 0.0

    def now(self) -> int:
        """The frontier's time, as it said it last, carried on by our own clock."""
        return int(self._offset + time.monotonic() * 1000)

    async def hello(self) -> wire.WirePolicy:
        """Return the policy of the crawl."""
        policy = await self._ask("Hello", wire.WirePolicy, wire.Greeting(self.worker))
        self._offset = policy.now - time.monotonic() * 1000
        return policy

    async def lease(
        self, hosts: int, per_host: int, seconds: float, digest: str
    ) -> tuple[list[Lease], dict[bytes, str]]:
        """Hosts that are lent to us, and what there is forgotten: digests of URLs, with the reasons.

        Raises `NotReached`; `Outdated` if the crawl was told something else.
        """
        wish = _GET(
            max_queues=hosts,
            max_urls_per_queue=per_host,
            delay_requestable=math.ceil(seconds),
            worker=self.worker,
            policy=digest,
        )
        path = f"/{FRONTIER}/GetURLs"
        try:
            answers = await self._channel.try_once(path, [wish.SerializeToString()], LEASE_SECONDS)
        except CallFailed as error:
            if error.code == _FAILED_PRECONDITION:
                raise Outdated(str(error)) from error
            raise
        lent = [unpacked(_INFO.FromString(each).lent, wire.Lent) for each in answers]
        return _leases(lent), {key: why for each in lent for key, why in each.forgotten.items()}

    async def renew(self, leases: Iterable[Lease], seconds: float) -> wire.Renewed:
        """The leases that go on. Raises `NotReached`."""
        held = [bare(lease) for lease in leases]
        return await self._ask("Renew", wire.Renewed, held, seconds, patience=seconds / 3)

    async def report_death(self, worker: int, analysed: Sequence[DocumentPlace]) -> None:
        """A worker of ours died over these documents, if any."""
        await self._ask("Mourn", NoneType, worker, analysed)

    async def read_robots(self, lease: Lease, authority: str) -> KnownRobots | None:
        """Rules that somebody fetched lately."""
        kind: Any = KnownRobots | None
        found: KnownRobots | None = await self._ask("GetRobots", kind, bare(lease), authority)
        return found

    async def write_robots(
        self, lease: Lease, authority: str, rules: Rules, status: int | None, seconds: int
    ) -> KnownRobots:
        """Rules that we fetched, for all workers."""
        return await self._ask("PutRobots", KnownRobots, bare(lease), authority, rules, status, seconds)

    async def read_contexts(self, addresses: list[str], since: int) -> dict[str, bytes | None]:
        """Contexts that somebody tried since then."""
        return await self._ask("GetContexts", dict[str, bytes | None], addresses, since)

    async def is_site_open(self, lease: Lease, crawl: int, authority: str, depth: int) -> bool:
        """Tell if the sitemaps of a place were put in this crawl."""
        return await self._ask("IsSiteOpen", bool, bare(lease), crawl, authority, depth)

    async def open_site(self, lease: Lease, crawl: int, authority: str, depth: int) -> None:
        """Report that the sitemaps of a place are being put."""
        await self._ask("OpenSite", NoneType, bare(lease), crawl, authority, depth)

    async def put(self, items: Sequence[Item]) -> None:
        """Makes items known. May be done twice."""
        for start in range(0, len(items), ITEMS_AT_ONCE):
            await self._ask("PutItems", NoneType, items[start : start + ITEMS_AT_ONCE])

    async def put_links(self, reference: Reference) -> int:
        """The links of a document too large to gather them; what kept others out. May be done twice."""
        return await self._ask("PutLinks", int, with_words(reference))

    async def deliver(self, parcels: Iterable[bytes]) -> dict[str, bool]:
        """Return for each visit id if it was committed. Raises `NotReached`."""
        answers = await self._channel.try_once(f"/{WORKERS}/Deliver", parcels, DELIVER_SECONDS)
        receipts = [_RECEIPT.FromString(each) for each in answers]
        return {each.id: each.committed for each in receipts}

    async def wait(self, pause: float) -> None:
        """Wait before another try. Raises `HungUp` once `stop` was called."""
        await self._channel.wait(pause)

    def stop(self) -> None:
        """Stop trying; a call under way ends at its next failure."""
        self._channel.hang_up()

    async def close(self) -> None:
        """Closes the connection."""
        await self._channel.close()

    async def _ask(self, name: str, kind: type[T], *arguments: Any, patience: float | None = None) -> T:
        argument = arguments[0] if len(arguments) == 1 else arguments
        path, sent = f"/{WORKERS}/{name}", [_PACKED(value=packed(argument)).SerializeToString()]
        if patience is None:
            answers = await self._channel.call(path, sent)
        else:
            answers = await self._channel.try_once(path, sent, patience)
        if len(answers) != 1:
            raise NotReached(f"{len(answers)} answers to {name}")
        return unpacked(_PACKED.FromString(answers[0]).value, kind)


def _leases(lent: Sequence[wire.Lent]) -> list[Lease]:
    """The leases with their tasks again."""
    tasks: dict[Lease, list[Task]] = {}
    for each in lent:
        tasks.setdefault(each.lease, []).append(each.task)
    return [msgspec.structs.replace(lease, tasks=tuple(each)) for lease, each in tasks.items()]
