"""The service's end of workers without a database: lends them hosts, and commits what they deliver."""

import asyncio
import logging
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import UUID
from weakref import WeakKeyDictionary

from tamias.crawl.analysing.analysers import most_unpacked
from tamias.crawl.commit.database_store import DatabaseStore
from tamias.crawl.plan.admit import Admission, Reference
from tamias.crawl.remote.delivery_check import DeliveryCheck, Untrue, until
from tamias.crawl.remote.lending import Lender
from tamias.crawl.remote.receive_quads import Damaged, QuadReceiver
from tamias.crawl.remote.wire import (
    ContextsAsked,
    Death,
    DeliveredVisit,
    Lent,
    Released,
    Renewal,
    RobotsAnswer,
    RobotsAsked,
    Site,
    WirePolicy,
    bare,
)
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.visit import Visit
from tamias.crawl.store.worker_store import Sinks
from tamias.database.connect import Database
from tamias.database.sql import statements
from tamias.frontier.lease_filter import LeaseFilter
from tamias.model.capture import Capture, Extent, Outcome
from tamias.model.errors import NodeAway, TamiasError, UsageError
from tamias.model.item import Item
from tamias.model.kind import kind_of
from tamias.model.lease import Lease, Task
from tamias.permit.delay import LONGEST_WAIT_MS
from tamias.permit.store import KnownRobots
from tamias.permit.traps import unpacked_alike
from tamias.sinks.outbox import sink_numbers
from tamias.sinks.segments.naming import Graphs, Naming

_SQL = statements("tamias.crawl.remote", "committer.sql")
MAINTAIN_SECONDS = 5.0
FORGET_SECONDS = 3600.0
"""After so long without news of a lease it is not remembered here any more; the frontier remembers."""
_log = logging.getLogger(__name__)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Place = tuple[int, int, int]
"""Of a lease: its bucket, host and token."""


class RemoteCommitter:
    """One for each service that workers deliver to, and for each policy."""

    def __init__(
        self,
        database: Database,
        data: Path,
        crawl: int,
        policy: WirePolicy,
        *,
        number: int,
        lease_filter: LeaseFilter,
    ) -> None:
        self.policy = policy
        self.broken = False
        """Whether it can commit no more, and another must take its place."""
        self._outside: list[int] = []
        self._store = DatabaseStore(
            database,
            data,
            Admission(policy.settings, policy.seeds),
            number=number,
            sinks=Sinks(self._outside),
        )
        self._check = DeliveryCheck(self._store.context.admission, crawl)
        self._lent: dict[Place, dict[int, Task]] = {}
        """What this service lent, by the numbers of URLs."""
        self._quads = QuadReceiver(self._store.quads, most_unpacked(policy.settings, str(self._store.data)))
        self._lender = Lender(self._store.context, crawl, lease_filter)
        self._held: dict[Place, HeldLease] = {}
        self._heard: dict[Place, float] = {}
        self._under_way: dict[str, asyncio.Future[bool]] = {}
        self._releasing: dict[HeldLease, list[asyncio.Future[bool]]] = {}
        self._place_of: WeakKeyDictionary[asyncio.Future[bool], Place] = WeakKeyDictionary()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Before anything is delivered."""
        await self._store.open()
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._commit()),
            loop.create_task(self._maintain_regularly()),
        ]

    async def close(self) -> None:
        """Commits what was delivered, and ends."""
        self._tasks[1].cancel()
        self._store.end()
        await asyncio.wait(self._tasks)
        with suppress(TamiasError):  # one that is broken may have no database to say good-bye to
            await self._store.close()

    async def _commit(self) -> None:
        """Whatever ends it before its time is told to all who wait; they deliver again, to the next."""
        try:
            await self._store.run(self._committed)
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
        thread, lent = self._store.thread, list[Lent]()
        named = self.policy.settings.crawl.sinks
        self._outside[:] = await thread.run(sink_numbers, thread.session, named)
        for lease in await thread.run(self._lender.lease, worker, hosts, per_host, seconds):
            without_tasks = bare(lease)
            wanted = [task for task in lease.tasks if not await self._settled(without_tasks, task)]
            near = self._store.context.admission.forgotten.near(task.url for task in wanted)
            lent += [Lent(without_tasks, task, {} if at else near) for at, task in enumerate(wanted)]
            self._lent[_place(lease)] = {task.uid: task for task in wanted}
            if not wanted:
                self._release(self._holding(without_tasks))
        return lent

    async def renew(self, renewal: Renewal) -> list[Lease]:
        """The leases that go on."""
        return await self._store.renew(renewal.leases, renewal.seconds) or []

    async def note_death(self, death: Death) -> bool:
        """A worker is dead: its hosts are free, and the documents it died over are known for that."""
        frontier = self._store.context.frontier

        def note() -> None:
            for place in death.analysed:
                frontier.count_death(*place)
            frontier.give_back([death.worker])

        await self._store.thread.run(note)
        return True

    async def read_robots(self, asked: RobotsAsked) -> list[KnownRobots]:
        """Rules that somebody fetched lately, if any."""
        found = await self._store.read_robots(asked.lease, asked.authority)
        return [] if found is None else [found]

    async def write_robots(self, answer: RobotsAnswer) -> KnownRobots:
        """Keeps rules for all workers."""
        answer = self._check.robots(answer)
        return await self._store.write_robots(
            answer.lease, answer.authority, answer.rules, answer.status, answer.seconds
        )

    async def read_contexts(self, asked: ContextsAsked) -> dict[str, bytes | None]:
        """Contexts that somebody tried."""
        return await self._store.read_contexts(asked.addresses, asked.since)

    async def is_site_open(self, site: Site) -> bool:
        """Whether the sitemaps of a place were put."""
        site = self._check.site(site)
        return await self._store.is_site_open(site.lease, site.crawl, site.authority, site.depth)

    async def open_site(self, site: Site) -> bool:
        """They are put now."""
        site = self._check.site(site)
        await self._store.open_site(site.lease, site.crawl, site.authority, site.depth)
        return True

    async def put(self, items: list[Item]) -> bool:
        """Makes items known, except those that nobody may ask for."""
        blocked = self._store.context.admission.blocked
        made = self._check.items(items)
        await self._store.put([item for item in made if blocked(item.url, kind_of(item.tags)) is None])
        return True

    async def put_links(self, reference: Reference) -> int:
        """Makes links known; returns what kept others out."""
        return await self._store.put_links(self._check.links(reference))

    async def accept(
        self, name: str, visit: DeliveredVisit, quads: BinaryIO, *, again: bool
    ) -> "asyncio.Future[bool]":
        """Takes a visit; what comes tells whether it was committed. `again`: it may be already.

        It is cancelled if that takes a node of the database that is away.
        """
        if not _UUID.fullmatch(name):
            raise UsageError(f"the id of a visit is a UUID, not {name[:100]!r}")
        coming = self._under_way.get(name)
        if coming is None:
            coming = self._under_way[name] = asyncio.get_running_loop().create_future()
            coming.add_done_callback(lambda _: self._under_way.pop(name, None))
            self._place_of[coming] = _place(visit.lease)
            try:
                if again and await self._store.thread.run(self._is_known, visit.lease.bucket, name):
                    _tell(coming, True)
                elif (task := await self._lent_task(visit.lease, visit.task)) is None:
                    _tell(coming, False)
                else:
                    visit = self._check.visit(visit, task, self._store.now())
                    await self._take(name, visit, quads, coming)
            except NodeAway:
                coming.cancel()
            except Exception as error:
                _fail(coming, error)
                raise
        return coming

    def are_stranded(self, comings: "Iterable[asyncio.Future[bool]]") -> bool:
        """Whether none of these can be told before a node of the database is back."""
        places = set(map(_place, self._store.stranded()))
        return all(self._place_of.get(coming) in places for coming in comings)

    def released(self, release: Released) -> "asyncio.Future[bool]":
        """Gives a host back; what comes tells that it is done."""
        held, now = self._holding(release.lease), self._store.now()
        held.delay_ms = min(max(0, release.delay_ms), LONGEST_WAIT_MS)
        held.blocked_until = until(release.blocked_until, now)
        held.visits, held.earned = release.visits, release.earned
        held.touched = True  # the worker does not say whether it did
        if release.alike is not None:
            held.alike, held.alike_changed = unpacked_alike(release.alike), True
        held.news |= self._check.news(release.news, held.lease, now)
        return self._release(held)

    async def _take(
        self, name: str, delivered: DeliveredVisit, quads: BinaryIO, coming: "asyncio.Future[bool]"
    ) -> None:
        held = self._holding(delivered.lease)
        held.delay_ms, held.granted = delivered.delay_ms, delivered.granted
        held.blocked_until = delivered.blocked_until or held.blocked_until
        held.news |= delivered.news
        try:
            visit = await self._received(delivered, held, quads)
        except Damaged as error:
            reason, task = f"internal error: {error}", delivered.task
            visit = Visit(task, held, _unasked(task.url, Outcome.FAILED, reason, self._store.now()))
        visit.capture_id = name
        visit.afterwards = partial(_tell, coming)
        await self._store.commit(visit)

    async def _received(self, delivered: DeliveredVisit, held: HeldLease, quads: BinaryIO) -> Visit:
        """What a worker brought, without what was forgotten since it was lent. Raises `Damaged`."""
        forgotten = self._store.context.admission.forgotten
        await self._store.thread.run(partial(forgotten.refresh, self._store.thread.session, now=True))
        capture = delivered.capture
        kept = forgotten.without_body(capture)
        reason = next(filter(None, map(forgotten.refuse, (capture.url, capture.final_url))), None)
        if reason is not None:
            kept = _unasked(capture.url, Outcome.REFUSED, reason, capture.ended_at)
        if kept is not capture:
            return Visit(delivered.task, held, kept)
        settings = self._store.context.settings
        naming = Naming(capture.final_url, "", graphs=Graphs(settings.sinks.graphs))
        extent, delivered.found.quads = await self._quads.receive(quads, naming)
        return _visit(delivered, held, extent)

    async def _lent_task(self, lease: Lease, named: Task) -> Task | None:
        """What was lent, by this service or another; None if the host is not lent any more.

        Raises `Untrue` where another URL was.
        """
        known = self._lent.get(_place(lease))
        if known is not None:
            task = known.get(named.uid)
        else:
            place = {"bucket": lease.bucket, "qid": lease.qid, "token": lease.token}
            place |= {"crawl": named.crawl, "uid": named.uid}
            row = await self._store.thread.run(
                self._store.thread.session.fetch_one, _SQL["lent_url"], place, lease.bucket
            )
            if row is None:
                return None
            task = named if row[0] == named.url else None
        if task is None or task.url != named.url or task.crawl != named.crawl:
            raise Untrue(f"{named.url[:200]} was not lent")
        return task

    async def _settled(self, lease: Lease, task: Task) -> bool:
        """Whether a URL need not be asked for; then that is its outcome."""
        covering = await self._store.covering(task, lease)
        if covering is not None and covering.lacks:
            covering = None
        blocked = self._store.context.admission.blocked(task.url, kind_of(task.tags))
        if covering is None and blocked is None:
            return False
        outcome, reason = Outcome.REFUSED, blocked or ""
        if covering is not None:
            outcome = Outcome.SKIPPED
            reason = covering.reason
        capture = _unasked(task.url, outcome, reason, self._store.now())
        later = covering is not None and not covering.had
        visit = Visit(task, self._holding(lease), capture, put_off=later, covering=covering)
        await self._store.commit(visit)
        return True

    def _holding(self, lease: Lease) -> HeldLease:
        """One value for each lease, as the committer wants it."""
        place = _place(lease)
        self._heard[place] = time.monotonic()
        return self._held.setdefault(place, HeldLease(lease, time.monotonic(), float("inf")))

    def _release(self, held: HeldLease) -> "asyncio.Future[bool]":
        coming: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._place_of[coming] = _place(held.lease)
        if held not in self._releasing:
            self._store.release(held)
        self._releasing.setdefault(held, []).append(coming)
        return coming

    def _committed(self, released: Sequence[HeldLease], _late: Sequence[Task]) -> None:
        for held in released:
            self._held.pop(_place(held.lease), None)
            self._lent.pop(_place(held.lease), None)
            for coming in self._releasing.pop(held, []):
                _tell(coming, True)

    def _is_known(self, bucket: int, name: str) -> bool:
        asked = {"bucket": bucket, "captures": [UUID(name)]}
        return bool(
            self._store.thread.session.transact(
                lambda cursor: cursor.execute(_SQL["known_captures"].text, asked).fetchall(), bucket
            )
        )

    async def _maintain_regularly(self) -> None:
        while True:
            await asyncio.sleep(MAINTAIN_SECONDS)
            try:
                await self._store.maintain()
            except TamiasError as error:
                _log.warning("what dead workers left is recovered later: %s", error)
            old = time.monotonic() - FORGET_SECONDS
            for place in [place for place, heard in self._heard.items() if heard < old]:
                self._heard.pop(place)
                self._held.pop(place, None)
                self._lent.pop(place, None)


def _visit(delivered: DeliveredVisit, held: HeldLease, extent: Extent | None) -> Visit:
    delivered.found.extent = extent
    return Visit(
        delivered.task,
        held,
        delivered.capture,
        delivered.found,
        delivered.references,
        delivered.items,
        put_off=delivered.put_off,
        due=delivered.due,
        is_context=delivered.is_context,
        context=delivered.context,
    )


def _place(lease: Lease) -> Place:
    return lease.bucket, lease.qid, lease.token


def _unasked(url: str, outcome: Outcome, reason: str, now: int) -> Capture:
    return Capture(url=url, started_at=now, ended_at=now, outcome=outcome, reason=reason)


def _tell(coming: "asyncio.Future[bool]", committed: bool) -> None:
    if not coming.done():
        coming.set_result(committed)


def _fail(coming: "asyncio.Future[bool]", error: Exception) -> None:
    if not coming.done():
        coming.set_exception(error)
        coming.exception()  # result, also where nobody waits for it any more
