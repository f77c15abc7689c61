"""The service's end of workers without a database: lends them hosts, and commits what they deliver.

What a worker delivers is checked against what it was lent: nothing that it says is taken on trust.
"""

import asyncio
import logging
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID
from weakref import WeakKeyDictionary

import msgspec

from tamias.crawl.analysis.analysers import most_unpacked
from tamias.crawl.analysis.marker import DocumentPlace
from tamias.crawl.commit.database_store import DatabaseStore
from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.commit.settlement import OutboxHook
from tamias.crawl.plan.admit import Admission, Reference, open_frontier
from tamias.crawl.plan.policy import CrawlRow, RunLimit, RunShare, terms_of
from tamias.crawl.revisit.timetable import budget_of
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.visit import CommitHook, Visit, hook_of
from tamias.crawl.visit.stages import harvesters
from tamias.database.connect import Database
from tamias.database.sql import statements
from tamias.features.remote_workers.quad_spool import Damaged, QuadReceiver
from tamias.features.remote_workers.wire import DeliveredVisit, Lent, Released, WirePolicy, bare
from tamias.frontier.keys import shared_key
from tamias.frontier.lease_filter import Interest, LeaseFilter
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.service import is_active
from tamias.model.capture import Capture, Outcome
from tamias.model.errors import NodeAway, TamiasError, UsageError
from tamias.model.item import TRUSTED, Item
from tamias.model.kind import CONTEXT, ROBOTS, kind_of, kind_tag
from tamias.model.lease import Lease, Task, Unreachable
from tamias.permit.availability import LONGEST_CACHED
from tamias.permit.delay import LONGEST_WAIT_MS
from tamias.permit.traps import unpacked_alike
from tamias.plugins import load_all
from tamias.settings import Settings
from tamias.sinks.segments.naming import Graphs, Naming

CLOCK_MS = 60_000
"""Milliseconds by which the clock of a worker may be ahead."""
MOST_PROBLEMS = 100
LONGEST_PROBLEM = 1000
MOST_RENAMED = 1000


class Untrue(UsageError):
    """A worker says something that it has no right to say."""


class DeliveryCheck:
    """Checks the words of workers of one crawl."""

    def __init__(self, admission: Admission, crawl: int) -> None:
        self._admission = admission
        self._crawl = crawl

    def visit(self, delivered: DeliveredVisit, task: Task, now: int) -> DeliveredVisit:
        """Return what may be committed of a visit to a URL that was lent. Raises `Untrue`."""
        if delivered.is_context and kind_of(task.tags) not in (CONTEXT, ROBOTS):
            raise Untrue(f"{task.url} was not lent as a context")
        self._check_capture(delivered.capture, delivered.lease, task, now)
        for each in delivered.references:
            self.links(each, task)
        found = delivered.found
        found.problems = [each[:LONGEST_PROBLEM] for each in found.problems[:MOST_PROBLEMS]]
        found.renamed_graphs = found.renamed_graphs[:MOST_RENAMED]
        return msgspec.structs.replace(
            delivered,
            task=task,
            items=self.items(delivered.items),
            delay_ms=min(max(0, delivered.delay_ms), LONGEST_WAIT_MS),
            blocked_until=until(delivered.blocked_until, now),
            due=until(delivered.due, now),
            news=self.news(delivered.news, delivered.lease, now),
        )

    def items(self, items: Sequence[Item]) -> list[Item]:
        """Return items as this crawl would make them. Raises `Untrue`."""
        made = []
        for each in items:
            if each.crawl != self._crawl or each.overwrites or TRUSTED in each.tags:
                raise Untrue(f"{each.url[:200]} is not an item that a worker may put")
            kind = kind_of(each.tags)
            tags = tuple(tag for tag in each.tags if kind is None or tag != kind_tag(kind))
            item = self._admission.item(each.url, each.depth, each.crawl, kind, tags=tags, score=each.score)
            day = each.key.removeprefix(item.key)  # that a robots.txt elsewhere is asked for
            if day and not (kind == ROBOTS and day[1:].isdigit()):
                raise Untrue(f"{each.key[:200]} is not the key of {each.url[:200]}")
            made.append(msgspec.structs.replace(item, key=each.key, due=each.due))
        return made

    def links(self, reference: Reference, task: Task | None = None) -> Reference:
        """Return links that are of this crawl, and not nearer than the document. Raises `Untrue`."""
        depth, tags = (task.depth, task.tags) if task else (0, ())
        is_trusted = TRUSTED in reference.tags and TRUSTED not in tags
        if reference.crawl != self._crawl or reference.depth < depth or is_trusted:
            raise Untrue(f"the links of {reference.base[:200]} are not of the crawl that was lent")
        return reference

    def site(self, lease: Lease, crawl: int, authority: str) -> None:
        """Check that a place is of the host and the crawl that were lent. Raises `Untrue`."""
        self.place(authority, lease)
        if crawl != self._crawl:
            raise Untrue(f"the crawl {crawl} was not lent")

    def news(
        self, news: dict[str, Unreachable | None], lease: Lease, now: int
    ) -> dict[str, Unreachable | None]:
        """Return which places of the host cannot be reached. Raises `Untrue`."""
        for place in news:
            self.place(place, lease)
        return {
            place: each and msgspec.structs.replace(each, next_at=min(each.next_at, now + LONGEST_WAIT_MS))
            for place, each in news.items()
        }

    def _check_capture(self, capture: Capture, lease: Lease, task: Task, now: int) -> None:
        if capture.url != task.url:
            raise Untrue(f"{task.url} was lent, and not {capture.url[:200]}")
        if not capture.started_at <= capture.ended_at <= now + CLOCK_MS:
            raise Untrue(f"the visit to {task.url} ended in the future")
        for hop in capture.hops:
            if hop.url != task.url:
                self.place(hop.url, lease, task.url)

    def place(self, url: str, lease: Lease, lent: str | None = None) -> None:
        """Check that a URL is of the host that was lent. Raises `Untrue`.

        A queue that a client named holds URLs of any host: there the host of the lent URL counts.
        """
        queue = self._admission.queue
        if queue(url) not in {shared_key(lease.host), lent and queue(lent)}:
            raise Untrue(f"{url[:200]} is not of the host that was lent, {lease.host}")


def until(moment: int | None, now: int) -> int | None:
    """Return a time that is not too far ahead."""
    return None if moment is None else min(moment, now + LONGEST_WAIT_MS)


_MOST_WORKERS = 1000


class Lender:
    """Leases for remote workers, in the database's thread; tokens hold the worker's number."""

    def __init__(
        self, context: CommitContext, crawl: int, lease_filter: LeaseFilter, limit: RunLimit
    ) -> None:
        self._limit = limit
        self._context = context
        self._row = CrawlRow(context.session, crawl)
        self._lease_filter = lending_terms(lease_filter, context.settings, crawl)
        self._budget = budget_of(context.session, context.settings, self._lease_filter)
        self._frontiers: dict[int, PostgresFrontier] = {}

    def lease(self, worker: int, hosts: int, per_host: int, seconds: float) -> Sequence[Lease]:
        """Hosts with due URLs that such a worker can visit; none while service or crawl are not active."""
        self._row.has_changed()
        if not self._row.is_active or not self._context.session.transact(is_active):
            return []
        given = self._frontier(worker), self._limit, self._budget
        return self._context.lease(*given, hosts, per_host, seconds)

    def _frontier(self, worker: int) -> PostgresFrontier:
        if len(self._frontiers) > _MOST_WORKERS:
            self._frontiers.clear()
        found = self._frontiers.get(worker)
        if found is None:
            context = self._context
            found = open_frontier(context.session, context.settings, worker, self._lease_filter)
            self._frontiers[worker] = found
        return found


def lending_terms(lease_filter: LeaseFilter, settings: Settings, crawl: int) -> LeaseFilter:
    """Return the lease filter of a crawl in the section of the service, without harvested addresses."""
    terms = terms_of(settings, crawl)
    wanted = terms.interest or Interest()
    harvests = map(kind_tag, sorted(harvesters()))
    interest = Interest(wanted.require, (*wanted.forbid, *harvests))
    return msgspec.structs.replace(terms, interest=interest, section=lease_filter.section)


_SQL = statements("tamias.features.remote_workers", "committer.sql")
MAINTAIN_SECONDS = 5.0
FORGET_SECONDS = 3600.0
"""After so long without news of a lease it is not remembered here any more; the frontier remembers."""
_log = logging.getLogger(__name__)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Place = tuple[int, int, int]
"""Of a lease: its bucket, host and token."""


class Receipts(CommitHook):
    """Tell those who wait for it whether a delivered visit was committed."""

    def __init__(self, waiting: "dict[str, asyncio.Future[bool]]") -> None:
        """`waiting` is by the ids of their captures."""
        self._waiting = waiting

    def after(self, visit: Visit, *, committed: bool) -> None:
        """Tell it."""
        if (coming := self._waiting.get(visit.capture_id or "")) is not None:
            _tell(coming, committed)


class RemoteCommitter:
    """The committer of one service for remote workers under one policy."""

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
        self._under_way: dict[str, asyncio.Future[bool]] = {}
        session = database.session()
        self._store = DatabaseStore(
            database,
            data,
            Admission(policy.settings, policy.seeds),
            session=session,
            number=number,
            hooks=[*load_all("hooks").values(), lambda _context: Receipts(self._under_way)],
            limit=RunLimit(RunShare(session, crawl, policy.run, number), policy.settings.crawl.max_urls),
        )
        self._outbox = hook_of(self._store.hooks, OutboxHook)
        self._check = DeliveryCheck(self._store.context.admission, crawl)
        self._lent: dict[Place, dict[int, Task]] = {}
        """What this service lent, by the numbers of URLs."""
        self._unvisited: dict[Place, dict[int, Task]] = {}
        """What of that has not been delivered yet."""
        self._quads = QuadReceiver(self._store.quads, most_unpacked(policy.settings, str(self._store.data)))
        self._lender = Lender(self._store.context, crawl, lease_filter, self._store.limit)
        self._held: dict[Place, HeldLease] = {}
        self._heard: dict[Place, float] = {}
        self._releasing: dict[HeldLease, list[asyncio.Future[bool]]] = {}
        self._place_of: WeakKeyDictionary[asyncio.Future[bool], Place] = WeakKeyDictionary()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Open the store and start the tasks, before anything is delivered."""
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
        """Commit deliveries; if that fails, fail all waiting workers, which then deliver again."""
        try:
            await self._store.run(self._committed)
        except Exception as error:  # noqa: BLE001 (told to the workers, and in the log)
            _log.error("what workers deliver cannot be committed: %s", error)
            self.broken = True
            for coming in (*self._under_way.values(), *chain.from_iterable(self._releasing.values())):
                _fail(coming, error)

    async def lend(self, worker: int, hosts: int, per_host: int, seconds: float) -> list[Lent]:
        """Hosts with due URLs, without what only a worker with a database can visit."""
        thread, lent = self._store.thread, list[Lent]()
        if self._outbox is not None:
            await thread.run(self._outbox.refresh)
        for lease in await thread.run(self._lender.lease, worker, hosts, per_host, seconds):
            without_tasks = bare(lease)
            wanted = [task for task in lease.tasks if not await self._settled(without_tasks, task)]
            near = self._store.context.admission.forgotten.near(task.url for task in wanted)
            lent += [Lent(without_tasks, task, {} if at else near) for at, task in enumerate(wanted)]
            self._lent[_place(lease)] = {task.uid: task for task in wanted}
            self._unvisited[_place(lease)] = dict(self._lent[_place(lease)])
            if not wanted:
                self._release(self._holding(without_tasks))
        return lent

    async def renew(self, leases: list[Lease], seconds: float) -> list[Lease]:
        """The leases that go on."""
        return await self._store.renew(leases, seconds) or []

    async def note_death(self, worker: int, analysed: list[DocumentPlace]) -> None:
        """A worker is dead: its hosts are free, and the documents it died over are known for that."""
        frontier = self._store.context.frontier
        for place in [place for place in self._unvisited if place[2] >> 32 == worker]:
            self._give_back(place)

        def note() -> None:
            for place in analysed:
                frontier.count_death(*place)
            frontier.give_back([worker])

        await self._store.thread.run(note)

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Return the answer of a method of the store to what a worker may ask."""
        return await getattr(self._store, name)(*self._checked(name, *arguments))

    def _checked(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        """Return the arguments of a call as far as the worker has a right to them. Raises `Untrue`."""
        match name, arguments:
            case "write_robots", (lease, authority, rules, status, seconds):
                self._check.place(authority, lease)
                return lease, authority, rules, status, min(max(0, seconds), LONGEST_CACHED)
            case (("is_site_open" | "open_site"), (lease, crawl, authority, _)):
                self._check.site(lease, crawl, authority)
            case "put", (items,):
                blocked, made = self._store.context.admission.blocked, self._check.items(items)
                return ([item for item in made if blocked(item.url, kind_of(item.tags)) is None],)
            case "put_links", (reference,):
                return (self._check.links(reference),)
        return arguments

    async def accept(
        self, name: str, visit: DeliveredVisit, quads: BinaryIO, *, again: bool
    ) -> "asyncio.Future[bool]":
        """Takes a visit; what comes tells whether it was committed. `again`: it may be already.

        It is cancelled if that takes a node of the database that is away.
        """
        if not _UUID.fullmatch(name):
            raise UsageError(f"the id of a visit is a UUID, not {name[:100]!r}")
        if (coming := self._under_way.get(name)) is None:
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
                    await self._take(name, visit, quads)
            except NodeAway:
                coming.cancel()
            except asyncio.CancelledError:
                coming.cancel()  # the call has ended before the visit was handed over: it comes again
                raise
            except Exception as error:
                _fail(coming, error)
                raise
        return coming

    def are_stranded(self, comings: "Iterable[asyncio.Future[bool]]") -> bool:
        """Tell if all of these wait for a node of the database that is away."""
        places = set(map(_place, self._store.stranded()))
        return all(self._place_of.get(coming) in places for coming in comings)

    def released(self, release: Released) -> "asyncio.Future[bool]":
        """Gives a host back; what comes tells that it is done."""
        held, now = self._holding(release.lease), self._store.now()
        held.delay_ms = min(max(0, release.delay_ms), LONGEST_WAIT_MS)
        held.blocked_until = until(release.blocked_until, now)
        held.visits, held.earned = release.visits, release.earned
        held.touched = release.touched
        if release.alike is not None:
            held.alike, held.alike_changed = unpacked_alike(release.alike), True
        held.news |= self._check.news(release.news, held.lease, now)
        return self._release(held)

    async def _take(self, name: str, delivered: DeliveredVisit, quads: BinaryIO) -> None:
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
        if visit.due is None:
            self._unvisited.get(_place(held.lease), {}).pop(visit.task.uid, None)
        await self._store.commit(visit)

    async def _received(self, delivered: DeliveredVisit, held: HeldLease, quads: BinaryIO) -> Visit:
        """Return the delivered visit without what was forgotten meanwhile. Raises `Damaged`."""
        forgotten = self._store.context.admission.forgotten
        await self._store.thread.run(partial(forgotten.refresh, self._store.thread.session, now=True))
        capture = delivered.capture
        permitted = forgotten.without_body(capture)
        reason = next(filter(None, map(forgotten.refuse, (capture.url, capture.final_url))), None)
        if reason is not None:
            permitted = _unasked(capture.url, Outcome.REFUSED, reason, capture.ended_at)
        if permitted is not capture:
            return Visit(delivered.task, held, permitted)
        settings = self._store.context.settings
        naming = Naming(capture.final_url, "", graphs=Graphs(settings.sinks.graphs))
        found = delivered.found
        found.extent, found.quads = await self._quads.receive(quads, naming)
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

    async def _lent_task(self, lease: Lease, named: Task) -> Task | None:
        """Return the task that was lent by any service; None if the host is no longer lent.

        Raises `Untrue` where another URL was.
        """
        if (known := self._lent.get(_place(lease))) is not None:
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
        """Settle a URL that needs no request; return if it was one."""
        covering = await self._store.context.coverage.of(task, lease)
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
        later = covering is not None and not covering.is_copied
        visit = Visit(task, self._holding(lease), capture, put_off=later, covering=covering)
        await self._store.commit(visit)
        return True

    def _holding(self, lease: Lease) -> HeldLease:
        """Return the one `HeldLease` that stands for a lease."""
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
            place = _place(held.lease)
            self._held.pop(place, None)
            self._lent.pop(place, None)
            self._give_back(place)
            for coming in self._releasing.pop(held, []):
                _tell(coming, True)

    def _is_known(self, bucket: int, name: str) -> bool:
        parameters = {"bucket": bucket, "captures": [UUID(name)]}
        return bool(
            self._store.thread.session.transact(
                lambda cursor: cursor.execute(_SQL["known_captures"].text, parameters).fetchall(), bucket
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
                self._give_back(place)

    def _give_back(self, place: Place) -> None:
        """Let others visit what a worker leased and did not visit."""
        for task in self._unvisited.pop(place, {}).values():
            self._store.limit.give_back(task)


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
