"""The service's end of workers without a database: lends them hosts, and commits what they deliver."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

import msgspec

from tamias.archive.contexts import read_contexts
from tamias.archive.sites import open_site, site_is_open
from tamias.crawl.admit import Reference
from tamias.crawl.commit.committer import Visited
from tamias.crawl.commit.office import CommitContext
from tamias.crawl.held_lease import HeldLease
from tamias.crawl.remote.lending import Lender
from tamias.crawl.remote.receive_quads import Damaged, QuadReceiver
from tamias.crawl.remote.wire import (
    ContextsAsked,
    Death,
    DeliveredVisit,
    Lent,
    Policy,
    Released,
    Renewal,
    RobotsAsked,
    RobotsTold,
    Site,
)
from tamias.crawl.visit.runner import VisitResult
from tamias.crawl.visit.visitor import Allowance
from tamias.database.connect import Cursor, Database, Session
from tamias.database.sql import statements
from tamias.filters.blocked import count_blocked
from tamias.frontier.terms import Terms
from tamias.model.capture import Capture
from tamias.model.errors import TamiasError, UsageError
from tamias.model.item import Item
from tamias.model.kind import kind_of
from tamias.model.lease import Lease, Task
from tamias.model.outcome import Outcome
from tamias.model.record import Extent
from tamias.permit.store import Known, RobotsStore
from tamias.permit.traps import unpacked_alike

_SQL = statements("tamias.crawl.remote", "committer.sql")
REPAIR_SECONDS = 60.0
FORGET_SECONDS = 3600.0
"""After so long without news of a lease it is not remembered here any more; the frontier remembers."""
_log = logging.getLogger(__name__)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Place = tuple[int, int, int]
"""Of a lease: its bucket, host and token."""


class RemoteCommitter:
    """One for each service that workers deliver to, and for each policy."""

    def __init__(
        self, database: Database, data: Path, crawl: int, policy: Policy, *, number: int, terms: Terms
    ) -> None:
        self.policy = policy
        self.broken = False
        """Whether it can commit no more, and another must take its place."""
        self._sinks: list[int] = []
        self._office = CommitContext(
            database,
            data,
            policy.settings,
            policy.seeds,
            committed=self._committed,
            number=number,
            sinks=self._sinks,
        )
        self._landing = QuadReceiver(self._office.segments, policy.settings.open.max_unpacked)
        self._robots = RobotsStore(self._office.session)
        self._lender = Lender(self._office, crawl, terms)
        self._held: dict[Place, HeldLease] = {}
        self._heard: dict[Place, float] = {}
        self._under_way: dict[str, asyncio.Future[bool]] = {}
        self._releasing: dict[HeldLease, list[asyncio.Future[bool]]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Before anything is delivered."""
        await self._office.in_database(self._office.segments.reserve)
        await self._repair()
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._commit()),
            loop.create_task(self._repair_regularly()),
        ]

    async def close(self) -> None:
        """Commits what was delivered, and ends."""
        self._tasks[1].cancel()
        self._office.committer.end()
        await asyncio.wait(self._tasks)
        self._office.close()

    async def _commit(self) -> None:
        """Whatever ends it before its time is told to all who wait; they deliver again, to the next."""
        try:
            await self._office.committer.run()
        except Exception as error:  # noqa: BLE001 (told to the workers, and in the log)
            _log.error("what workers deliver cannot be committed: %s", error)
            self.broken = True
            waiting = [
                *self._under_way.values(),
                *(each for some in self._releasing.values() for each in some),
            ]
            for coming in waiting:
                _fail(coming, error)

    async def lend(self, worker: int, hosts: int, per_host: int, seconds: float) -> list[Lent]:
        """Hosts with due URLs, without what only a worker with a database can visit."""
        office, lent = self._office, list[Lent]()
        self._sinks[:] = await office.in_database(_sinks, office.session)
        for lease in await office.in_database(self._lender.lease, worker, hosts, per_host, seconds):
            bare = msgspec.structs.replace(lease, tasks=())
            wanted = [task for task in lease.tasks if not await self._settled(bare, task)]
            lent += [Lent(bare, task) for task in wanted]
            if not wanted:
                self._release(self._holding(bare))
        return lent

    async def renew(self, renewal: Renewal) -> list[Lease]:
        """The leases that go on."""
        return await self._office.in_database(self._office.frontier.renew, renewal.leases, renewal.seconds)

    async def mourn(self, death: Death) -> bool:
        """A worker is dead: its hosts are free, and the documents it died over are known for that."""

        def bury() -> None:
            for analysed in death.analysed:
                self._office.frontier.count_death(analysed.lease, analysed.task)
            self._office.frontier.give_back([death.worker])

        await self._office.in_database(bury)
        return True

    async def robots(self, asked: RobotsAsked) -> Known | None:
        """Rules that somebody fetched lately."""
        return await self._office.in_database(self._robots.read, asked.bucket, asked.qid, asked.authority)

    async def keep_robots(self, told: RobotsTold) -> Known:
        """Keeps rules for all workers."""
        return await self._office.in_database(
            self._robots.write, told.bucket, told.qid, told.authority, told.rules, told.status, told.seconds
        )

    async def contexts(self, asked: ContextsAsked) -> dict[str, bytes | None]:
        """Contexts that somebody tried."""
        return await self._office.in_database(
            read_contexts, self._office.session, asked.addresses, asked.since
        )

    async def is_site_open(self, site: Site) -> bool:
        """Whether the signposts of a place were put."""
        return await self._office.in_database(
            site_is_open, self._office.session, site.lease, site.crawl, site.authority, site.depth
        )

    async def open_site(self, site: Site) -> bool:
        """They are put now."""
        told = (site.lease, site.crawl, site.authority, site.now, site.depth)
        await self._office.in_database(open_site, self._office.session, *told)
        return True

    async def put(self, items: list[Item]) -> bool:
        """Makes items known, except those that nobody may ask for."""
        wanted = [
            item for item in items if self._office.admission.blocked(item.url, kind_of(item.tags)) is None
        ]
        await asyncio.to_thread(self._office.committer.put_items, wanted)
        return True

    async def put_links(self, reference: Reference) -> int:
        """Makes links known; returns what kept others out."""
        return await asyncio.to_thread(self._office.committer.put_now, reference)

    async def accept(
        self, name: str, brought: DeliveredVisit, quads: BinaryIO, *, again: bool
    ) -> "asyncio.Future[bool]":
        """Takes a visit; what comes tells whether it was committed. `again`: it may be already."""
        if not _UUID.fullmatch(name):
            raise UsageError(f"the id of a visit is a UUID, not {name[:100]!r}")
        coming = self._under_way.get(name)
        if coming is None:
            coming = self._under_way[name] = asyncio.get_running_loop().create_future()
            coming.add_done_callback(lambda _: self._under_way.pop(name, None))
            try:
                if again and await self._office.in_database(self._is_known, brought.lease.bucket, name):
                    _tell(coming, True)
                else:
                    await self._take(name, brought, quads, coming)
            except Exception as error:
                _fail(coming, error)
                raise
        return coming

    def released(self, told: Released) -> "asyncio.Future[bool]":
        """Gives a host back; what comes tells that it is done."""
        held = self._holding(told.lease)
        held.delay_ms, held.blocked_until = told.delay_ms, told.blocked_until
        held.visits, held.earned = told.visits, told.earned
        if told.alike is not None:
            held.alike, held.alike_changed = unpacked_alike(told.alike), True
        held.news |= told.news
        return self._release(held)

    async def _take(
        self, name: str, brought: DeliveredVisit, quads: BinaryIO, coming: "asyncio.Future[bool]"
    ) -> None:
        held = self._holding(brought.lease)
        held.delay_ms, held.granted = brought.delay_ms, brought.granted
        held.blocked_until = brought.blocked_until or held.blocked_until
        held.news |= brought.news
        try:
            result = _seen(brought, await self._landing.land(quads))
        except Damaged as error:
            reason = f"internal error: {error}"
            result = VisitResult(_unasked(brought.task.url, Outcome.FAILED, reason, self._office.now()))
        result.capture_id = name
        await self._judge(result, brought.task, held, coming)

    async def _judge(
        self, result: VisitResult, task: Task, held: HeldLease, coming: "asyncio.Future[bool]"
    ) -> None:
        """From here on as in any worker: judged, and committed with others."""
        result.afterwards = partial(_tell, coming)
        worker = str(held.lease.token >> 32)
        await self._office.visitor(_Told(result, self._office.now), Allowance(None), worker).visit(task, held)

    async def _settled(self, lease: Lease, task: Task) -> bool:
        """Whether a URL need not be asked for; then that is its outcome."""
        covering = await self._office.coverage.of(task, lease)
        blocked = self._office.admission.blocked(task.url, kind_of(task.tags))
        if covering is None and blocked is None:
            return False
        outcome, reason = Outcome.REFUSED, blocked or ""
        if covering is not None:
            outcome = Outcome.SKIPPED
            reason = covering.reason
        capture = _unasked(task.url, outcome, reason, self._office.now())
        later = covering is not None and not covering.had
        coming = asyncio.get_running_loop().create_future()
        await self._judge(VisitResult(capture, put_off=later), task, self._holding(lease), coming)
        return True

    def _holding(self, lease: Lease) -> HeldLease:
        """One value for each lease, as the committer wants it."""
        place = (lease.bucket, lease.qid, lease.token)
        self._heard[place] = time.monotonic()
        return self._held.setdefault(place, HeldLease(lease, time.monotonic(), float("inf")))

    def _release(self, held: HeldLease) -> "asyncio.Future[bool]":
        coming: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._releasing.setdefault(held, []).append(coming)
        self._office.committer.release(held)
        return coming

    def _committed(self, released: Sequence[HeldLease], _late: Sequence[Visited]) -> None:
        for held in released:
            lease = held.lease
            self._held.pop((lease.bucket, lease.qid, lease.token), None)
            for coming in self._releasing.pop(held, []):
                _tell(coming, True)

    def _is_known(self, bucket: int, name: str) -> bool:
        asked = {"bucket": bucket, "captures": [UUID(name)]}
        return bool(
            self._office.session.transact(
                lambda cursor: cursor.execute(_SQL["known_captures"].text, asked).fetchall()
            )
        )

    async def _repair_regularly(self) -> None:
        while True:
            await asyncio.sleep(REPAIR_SECONDS)
            try:
                await self._repair()
            except TamiasError as error:
                _log.warning("what dead workers left is put right later: %s", error)

    async def _repair(self) -> None:
        """What dead processes left is put right, as each worker with a database does it."""
        office = self._office
        await office.in_database(office.recover)
        await office.in_database(office.frontier.sweep)
        await office.in_database(count_blocked, office.session, office.admission.blocked_counts())
        old = time.monotonic() - FORGET_SECONDS
        for place in [place for place, heard in self._heard.items() if heard < old]:
            self._heard.pop(place)
            self._held.pop(place, None)


class _Told:
    """Sees what a worker elsewhere saw."""

    def __init__(self, result: VisitResult, now: Callable[[], int]) -> None:
        self._seen = result
        self._now = now

    def unasked(self, url: str, outcome: Outcome, reason: str) -> Capture:
        return _unasked(url, outcome, reason, self._now())

    async def run(self, _task: Task, _held: HeldLease) -> VisitResult:
        return self._seen


def _seen(brought: DeliveredVisit, extent: Extent | None) -> VisitResult:
    brought.found.extent = extent
    return VisitResult(
        brought.capture,
        brought.found,
        brought.references,
        brought.items,
        put_off=brought.put_off,
        due=brought.due,
        is_context=brought.is_context,
        context=brought.context,
    )


def _unasked(url: str, outcome: Outcome, reason: str, now: int) -> Capture:
    return Capture(url=url, started_at=now, ended_at=now, outcome=outcome, reason=reason)


def _tell(coming: "asyncio.Future[bool]", committed: bool) -> None:
    if not coming.done():
        coming.set_result(committed)


def _fail(coming: "asyncio.Future[bool]", error: Exception) -> None:
    if not coming.done():
        coming.set_exception(error)
        coming.exception()  # result, also where nobody waits for it any more


def _sinks(session: Session) -> list[int]:
    def read(cursor: Cursor) -> list[int]:
        return [row[0] for row in cursor.execute(_SQL["all_sinks"].text).fetchall()]

    return session.transact(read)
