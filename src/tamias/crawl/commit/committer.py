"""The order of a commit: quads durable, links put, then one transaction for all that became true.

Visits hand over what they did; many of them are committed together, in a thread of its own.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec

from tamias.archive.blobs import Prepared, insert_blobs
from tamias.archive.captures import Durable, commit_segments, insert_captures
from tamias.archive.versions.resources import promise_visits
from tamias.crawl.commit.bulk_copies import Coverage
from tamias.crawl.commit.listing import SitemapPuts
from tamias.crawl.commit.segment_pool import SegmentPool
from tamias.crawl.plan.admit import Admission, Reference
from tamias.crawl.revisit.archiver import SEEN, ArchiveResult
from tamias.crawl.revisit.continuing import (
    ContinuousSchedule,
    FinishedVisit,
    PlannedVisit,
    write_planned,
)
from tamias.crawl.store.held_lease import HeldLease, ParkedVisit
from tamias.crawl.store.steps import step
from tamias.crawl.store.worker_store import After, Sinks, Tally
from tamias.crawl.strategy.links import Sourced
from tamias.crawl.strategy.strategist import Strategist
from tamias.database.connect import Cursor, Session
from tamias.database.threads import SessionThread
from tamias.frontier.due.make_due import make_due_known
from tamias.frontier.due.waiting import WAITING
from tamias.frontier.keys import bucket_of, hash64, host_hash
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.service.state import WATCH
from tamias.model.capture import CaptureRecord, Outcome
from tamias.model.cut import WIDENED
from tamias.model.errors import DatabaseUnavailable, DiskFull
from tamias.model.faults import reached
from tamias.model.item import NEVER, Item
from tamias.model.kind import AUXILIARY, kind_of
from tamias.model.lease import Done, Return
from tamias.settings import Settings
from tamias.sinks.outbox import enqueue, enqueue_metadata

_log = logging.getLogger(__name__)

# Visits that end within it share one sync and one transaction.
GATHER_SECONDS = 0.05
PUT_BATCH = 1000
MOST_INVITED = 100
"""Visits that the links of one host can earn another one."""
_MOST_PAIRS = 100_000
MOST_WAITING = 4000
# No visit is to blame, so committing each by itself would fail in the same way.
_NOBODYS_FAULT = (DatabaseUnavailable, DiskFull)


class Visited(msgspec.Struct, frozen=True, kw_only=True):
    """What one visit brought."""

    held: HeldLease
    done: Done
    record: CaptureRecord | None = None
    """None when nothing was tried: the task is only put off."""
    parked: ParkedVisit | None = None
    """Where the host was given back before the document was read."""
    references: tuple[Reference, ...] = ()
    items: tuple[Item, ...] = ()
    """To be put as they are, such as where redirects led: known from now on, and not to be visited again."""
    prepared: Prepared | None = None
    """A body for the archive, written and soon durable; its row comes before all that refers to it."""
    archived: ArchiveResult | None = None
    """What the archive made of it."""
    planned: PlannedVisit | None = None
    """When it is visited again, in a crawl that goes on."""
    also: Callable[[Cursor], None] | None = None
    """What else becomes true in the same transaction."""
    afterwards: Callable[[bool], None] | None = None
    """Told after it whether the visit was committed; nothing that matters, for a death may come first."""


def count_visit(tally: Tally, visited: Visited) -> None:
    """One more. What nobody asked for does not count: well-known addresses, and the contexts of documents."""
    if visited.record is None or kind_of(visited.done.task.tags) in AUXILIARY:
        return
    tally.bytes += visited.record.bytes or 0
    if visited.done.task.reopened and not visited.done.task.cut & WIDENED:
        tally.again += 1
        return
    tally.quads += visited.record.quads
    if visited.planned is not None and visited.done.task.status is not Outcome.NEW:
        tally.revisited += 1
    if visited.done.due < NEVER and visited.planned is None and not _seen_under_watch(visited.done):
        tally.put_off += 1
    else:
        record = visited.record
        tally.count_outcome(record.outcome, record.reason, visited.done.task.url)


def _seen_under_watch(done: Done) -> bool:
    """A resource under watch is always due again; that is no attempt that failed."""
    return done.task.crawl == WATCH and not done.fails


class Invitations:
    """Counts the URLs of each host that documents of other hosts named: they earn it visits."""

    def __init__(self) -> None:
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._news: Counter[str] = Counter()

    def note(self, source: str, items: Iterable[Item]) -> None:
        """What a document of `source` named. Two hosts cannot earn each other more than so much."""
        if not source:
            return
        for item in items:
            if item.host != source and self._pairs[source, item.host] < MOST_INVITED:
                self._pairs[source, item.host] += 1
                self._news[item.host] += 1
        if len(self._pairs) > _MOST_PAIRS:
            self._pairs.clear()

    def take(self) -> Counter[str]:
        """What was counted since this was last asked."""
        news, self._news = self._news, Counter()
        return news


class CommitContext(msgspec.Struct, frozen=True, kw_only=True):
    """One for each process that commits visits: a worker, or the service that others deliver to."""

    thread: SessionThread
    frontier: PostgresFrontier
    admission: Admission
    settings: Settings
    segments: SegmentPool
    coverage: Coverage
    sinks: Sinks = Sinks()

    @property
    def session(self) -> Session:
        """For the thread's own functions."""
        return self.thread.session

    def now(self) -> int:
        """The frontier's time."""
        return self.thread.session.time()


class Committer:
    """Gathers visits and commits them in groups. What it has not committed did not happen."""

    def __init__(self, context: CommitContext) -> None:
        settings, session = context.settings, context.session
        self._frontier = context.frontier
        self._admission = context.admission
        self._segments = context.segments
        self._coverage = context.coverage
        self._sinks = context.sinks
        self._thread = context.thread
        self._listing = SitemapPuts(session, self._admission, self._frontier.buckets, settings.seeds)
        self._strategist = Strategist(
            session, self._frontier, self._admission, settings.strategy, not_of=[WATCH]
        )
        continuous = settings.crawl.continuous
        self._schedule = ContinuousSchedule(session, settings) if continuous else None
        self._new_wait = continuous and settings.crawl.budget is not None
        self._visited: list[Visited] = []
        self._released: list[HeldLease] = []
        self._news = asyncio.Event()
        self._room = asyncio.Condition()
        self._ending = False
        self.tally = Tally()
        self.invitations = Invitations()

    async def add(self, visited: Visited) -> None:
        """Hands a visit over; waits when too many are waiting."""
        async with self._room:
            await self._room.wait_for(lambda: len(self._visited) < MOST_WAITING)
        self._visited.append(visited)
        self._news.set()

    def release(self, held: HeldLease) -> None:
        """The host is to be given back with the next commit."""
        self._released.append(held)
        self._news.set()

    async def run(self, after: After) -> None:
        """Commits until `end`, and then what has been handed over by then."""
        while not self._ending:
            await self._news.wait()
            if not self._ending:
                await asyncio.sleep(GATHER_SECONDS)
                await self._flush(after)
        await self._flush(after)

    def end(self) -> None:
        """Lets `run` come to its end."""
        self._ending = True
        self._news.set()

    async def _flush(self, after: After) -> None:
        self._news.clear()
        handed_over, self._visited = self._visited, []
        released, self._released = self._released, []
        if self._schedule is not None and handed_over:
            handed_over = await self._thread.run(self._planned, self._schedule, handed_over)
        ours = _newest([*(each.held for each in handed_over if each.parked is None), *released])
        committed: list[Visited] = []
        parked = [each for each in handed_over if each.parked is not None]
        if ours or parked:
            visited = [each for each in handed_over if each.parked is None and each.held in ours]
            given_back = [held for held in released if held in ours]
            committed = await self._thread.run(self._commit_all, visited, given_back, parked)
        for each in committed:
            count_visit(self.tally, each)
        there = set(map(id, committed))
        for each in handed_over:
            if each.afterwards is not None:
                each.afterwards(id(each) in there)
        late = [each.done.task for each in handed_over if each.record and id(each) not in there]
        after(released, late)
        async with self._room:
            self._room.notify_all()

    async def put_links(self, reference: Reference) -> int:
        """Puts links before their visit is committed; returns what kept others out (`tamias.model.cut`)."""
        if reference.listed:
            return await self._thread.run(self._put_listed, reference)
        return (await self._thread.run(self._put_references, [Sourced(reference, reference.base)]))[0]

    async def put(self, items: list[Item]) -> None:
        """Puts items as they are."""
        await self._thread.run(self._put, items)

    def _put_references(self, links: Sequence[Sourced], items: Iterable[Item] = ()) -> list[int]:
        """Returns for each what kept links out."""
        with step("admit"):
            admitted = [self._admission.admit(self._coverage.without_own(each.reference)) for each in links]
            found = [item for items, _ in admitted for item in items]
            for each, (items_of, _) in zip(links, admitted, strict=True):
                self.invitations.note(each.host, items_of)
        with step("score"):
            found = self._strategist.scored(found, links)
        with step("put"):
            self._put([*found, *items])
        with step("score"):
            self._strategist.keep()
        return [cut for _, cut in admitted]

    def _put_listed(self, reference: Reference) -> int:
        """The addresses of a sitemap, as many new ones as those of its host may add."""
        items, cut = self._admission.admit(reference)
        items = self._strategist.scored(items, [Sourced(reference, reference.base)])
        cut |= self._listing.put(reference, items, self._put)
        self._strategist.keep()
        return cut

    def _commit_all(
        self, visited: list[Visited], released: list[HeldLease], parked: list[Visited]
    ) -> list[Visited]:
        """Returns what became true. A visit that cannot be committed must not stop the others."""
        with step("sync"):
            durable = self._segments.sync()
            reached("segments-synced")
            if self._sinks.archiver is not None:
                self._sinks.archiver.sync()
            reached("blobs-synced")
        try:
            committed = self._commit(visited, released, durable)
        except _NOBODYS_FAULT:
            raise
        except Exception:  # noqa: BLE001 (told, and looked at one by one)
            _log.exception("a commit failed; now each visit is committed alone")
            committed = [kept for each in visited for kept in self._commit_alone(each, durable)]
            committed += self._commit([], released, durable)
        return committed + [each for each in parked if self._commit_parked(each, durable)]

    def _commit_parked(self, visited: Visited, durable: list[Durable]) -> bool:
        """Whether a visit became true whose host was given back before."""
        try:
            return self._finish_parked(visited, durable)
        except _NOBODYS_FAULT:
            raise
        except Exception as error:
            _log.exception("a commit failed")
            if visited.record is None:
                raise
            return self._finish_parked(_faulty(visited, error), durable)

    def _finish_parked(self, visited: Visited, durable: list[Durable]) -> bool:
        assert visited.parked is not None
        assert visited.parked.until is not None
        links = [_sourced(each, visited) for each in visited.references]
        done = _noting(visited, self._put_references(links, visited.items)).done
        reached("links-put")

        def record(cursor: Any, held: frozenset[int]) -> None:
            self._record(cursor, [visited] if held else [], durable)

        with step("finish"):
            return self._frontier.finish_apart(visited.held.lease, done, visited.parked.until, record)

    def _commit_alone(self, visited: Visited, durable: list[Durable]) -> list[Visited]:
        try:
            return self._commit([visited], [], durable)
        except _NOBODYS_FAULT:
            raise
        except Exception as error:  # noqa: BLE001 (told in the record)
            return self._commit([_faulty(visited, error)] if visited.record else [], [], durable)

    def _commit(
        self, visited: list[Visited], released: list[HeldLease], durable: list[Durable]
    ) -> list[Visited]:
        """Returns the visits to hosts that were still ours; what was done on others is dropped."""
        # Links first: putting them twice does no harm, but if we died after recording the visit they would
        # be lost.
        cuts = iter(
            self._put_references(
                [_sourced(reference, each) for each in visited for reference in each.references],
                (item for each in visited for item in each.items),
            )
        )
        noted = [_noting(each, list(islice(cuts, len(each.references)))) for each in visited]
        reached("links-put")

        def record(cursor: Any, held: frozenset[int]) -> None:
            self._record(cursor, [each for each in visited if each.held.lease.qid in held], durable)

        with step("finish"):
            held = self._frontier.finish(_returns(noted, released), record)
        reached("after-commit")
        return [each for each in visited if each.held.lease.qid in held]

    def _planned(self, schedule: ContinuousSchedule, visited: list[Visited]) -> list[Visited]:
        """With their next visits, in a crawl that goes on."""
        ended = [each for each in visited if each.record is not None]
        plans = iter(schedule.plan([_finished(each) for each in ended]))
        planned = [each if each.record is None else _with_plan(each, next(plans)) for each in visited]
        for each in planned:
            self._make_targets_due(each)
        return planned

    def _make_targets_due(self, visited: Visited) -> None:
        """Where an address moved to for good may be known only as the end of a redirect."""
        if visited.planned is None or visited.planned.moved_due is None or visited.record is None:
            return
        for item in visited.items:
            if item.url == visited.record.final_url:
                qid, uid = host_hash(item.host), hash64(item.key)
                bucket = bucket_of(qid, self._frontier.buckets)
                make_due_known(self._thread.session, self._frontier, bucket, [(qid, item.crawl, uid)])

    def _record(self, cursor: Any, kept: list[Visited], durable: Sequence[Durable] = ()) -> None:
        """What visits brought, in the transaction that makes it true."""
        tried = [(each.held.lease, each.done.task, each.record) for each in kept if each.record]
        changed = insert_captures(cursor, tried)
        enqueue(cursor, [(lease.bucket, record) for lease, _, record in changed], self._sinks.outside)
        enqueue_metadata(cursor, [(lease.bucket, record) for lease, _, record in tried], self._sinks.outside)
        commit_segments(cursor, durable)
        reached("captures-inserted")
        # Before `also`: versions refer to the rows of blobs.
        insert_blobs(cursor, [each.prepared for each in kept if each.prepared is not None])
        for each in kept:
            if each.also is not None:
                each.also(cursor)
        if planned := [each for each in kept if each.planned is not None]:
            write_planned(cursor, [each.planned for each in planned if each.planned is not None])
            promise_visits(
                cursor, {each.archived.watched.id: each.done.due for each in planned if each.archived}
            )
        reached("before-commit")

    def _put(self, items: list[Item]) -> int:
        """Returns how many were new."""
        nearest: dict[tuple[int, str], Item] = {}
        for item in map(_waiting, items) if self._new_wait else items:
            other = nearest.get((item.crawl, item.key))
            # Of equals the last: redirects' targets come after links and are not to be visited again.
            if other is None or item.depth <= other.depth:
                nearest[item.crawl, item.key] = item
        unique, new = list(nearest.values()), 0
        for start in range(0, len(unique), PUT_BATCH):
            batch = unique[start : start + PUT_BATCH]
            new += self._frontier.put(batch).new
            self._admission.remember(batch)
        return new


def _finished(visited: Visited) -> FinishedVisit:
    assert visited.record is not None
    seen = None if visited.archived is None else SEEN[visited.archived.judgement.meaning]
    return FinishedVisit(lease=visited.held.lease, done=visited.done, record=visited.record, seen=seen)


def _with_plan(visited: Visited, planned: PlannedVisit | None) -> Visited:
    """A body that was read before is no news; where an address moved to has its visits from now on."""
    if planned is None:
        return visited
    done, record, items = visited.done, visited.record, visited.items
    assert record is not None
    done = msgspec.structs.replace(done, due=planned.due, fails=0)
    if record.outcome is Outcome.GONE:
        done = msgspec.structs.replace(done, etag=None, last_modified=None)
    elif record.outcome in {Outcome.FAILED, Outcome.REFUSED}:
        task = done.task
        done = msgspec.structs.replace(done, etag=task.etag, last_modified=task.last_modified)
    if planned.same and visited.archived is None:
        record = msgspec.structs.replace(
            record, outcome=Outcome.UNCHANGED, extent=None, read=False, quads=0, reason="same content"
        )
        done = msgspec.structs.replace(done, outcome=Outcome.UNCHANGED)
    if planned.moved_due is not None:
        items = tuple(
            msgspec.structs.replace(item, due=planned.moved_due) if item.url == record.final_url else item
            for item in items
        )
    return msgspec.structs.replace(visited, done=done, record=record, items=items, planned=planned)


def _waiting(item: Item) -> Item:
    """A new URL waits for its share of the budget; what others wait for does not."""
    if item.crawl == WATCH or item.due == NEVER or kind_of(item.tags) is not None:
        return item
    return msgspec.structs.replace(item, due=WAITING)


def _noting(visited: Visited, cuts: list[int]) -> Visited:
    """With what cut its links."""
    done, cut = visited.done, 0
    for each in cuts:
        cut |= each
    if not cut:
        return visited
    return msgspec.structs.replace(visited, done=msgspec.structs.replace(done, cut=(done.cut or 0) | cut))


def _sourced(reference: Reference, visited: Visited) -> Sourced:
    """The links with what a strategy may want to know of the page."""
    task, record = visited.done.task, visited.record
    if record is None:
        return Sourced(reference, task.url, task.score, host=visited.held.lease.host)
    return Sourced(reference, record.final_url, task.score, record.quads, visited.held.lease.host)


def _faulty(visited: Visited, error: Exception) -> Visited:
    """What can be said of a visit whose news we cannot write."""
    task, record = visited.done.task, visited.record
    assert record is not None
    told = CaptureRecord(
        id=record.id,
        crawl=task.crawl,
        url=record.url,
        started_at=record.started_at,
        ended_at=record.ended_at,
        outcome=Outcome.FAILED,
        reason=f"internal error: {type(error).__name__}: {error}",
        depth=task.depth,
        final_url=record.url,
        worker=record.worker,
        agent=record.agent,
    )
    done = Done(task=task, outcome=Outcome.FAILED, due=visited.done.due, fails=visited.done.fails)
    return Visited(
        held=visited.held, done=done, record=told, parked=visited.parked, afterwards=visited.afterwards
    )


def _newest(held: Iterable[HeldLease]) -> set[HeldLease]:
    """Those that may still be ours: a host that was leased anew was lost before."""
    in_order = sorted(held, key=lambda each: each.lease.ends_at)
    return {each for each in {one.lease.qid: one for one in in_order}.values() if not each.lost}


def _returns(visited: list[Visited], released: list[HeldLease]) -> list[Return]:
    """One return for each lease: all its news, and whether the host goes back."""
    done: dict[HeldLease, list[Done]] = {held: [] for held in released}
    for each in visited:
        done.setdefault(each.held, []).append(each.done)
    gone = set(released)
    return [
        Return(
            lease=held.lease,
            done=tuple(news),
            release=held in gone,
            delay_ms=held.delay_ms,
            blocked_until=held.blocked_until,
            address=held.address,
            visits=held.visits if held in gone else 0,
            earned=held.earned if held in gone else 0.0,
            alike=held.alike_news if held in gone else None,
            unreachable=tuple(state for state in held.news.values() if state is not None),
            reached=tuple(place for place, state in held.news.items() if state is None),
        )
        for held, news in done.items()
    ]
