"""The order of a commit: quads durable, links put, then one transaction for all that became true.

Visits hand over what they did; many of them are committed together, in a thread of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import islice
from operator import attrgetter, or_
from typing import Any

import msgspec

from tamias.archive.captures import insert_captures
from tamias.archive.stored_files import StoredFile, commit_files
from tamias.content.formats import format_of
from tamias.crawl.commit.link_put import CommitContext, LinkPut
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.progress import Tally, count_share, step
from tamias.crawl.store.visit import After, CommitBatch, CommitHook, Visit
from tamias.model.capture import CaptureRecord, Outcome
from tamias.model.cut import WIDENED
from tamias.model.errors import DatabaseUnavailable, DiskFull, NodeAway
from tamias.model.faults import reached
from tamias.model.item import NEVER, WATCH
from tamias.model.kind import AUXILIARY, kind_of
from tamias.model.lease import Done, Lease, Return, Task
from tamias.model.log_lines import log_fields, loggable

_log = logging.getLogger(__name__)
_visits = logging.getLogger("tamias.visits")

# Visits share one sync and one transaction with those that end during the commit before. As long as a round
# brings many more, and few hosts wait for them, some rounds do; else they would only be longer at risk.
GATHER_SECONDS = 0.02
GATHER_ROUNDS = 10
MANY_VISITS = 2
MOST_WAITING = 4000
LOOK_SECONDS = 1.0
"""How often it is looked whether a node that visits wait for is back."""
# No visit is to blame, so committing each by itself would fail in the same way.
_NOBODYS_FAULT = (DatabaseUnavailable, DiskFull)


def count_visit(tally: Tally, visit: Visit) -> None:
    """Count a visit, unless its URL is auxiliary: a well-known address or the context of a document."""
    task, record, done = visit.task, visit.record, visit.settled
    if record is None or kind_of(task.tags) in AUXILIARY:
        return
    tally.bytes += record.bytes or 0
    if visit.covering is not None and done.due == NEVER and visit.covering.compared is not None:
        count_share(tally.shares, visit.covering.sitemap, described=not visit.covering.lacks)
    if task.reopened and not task.cut & WIDENED:
        tally.again += 1
        return
    tally.quads += record.quads
    if (unread := _unread_type(record)) is not None:
        tally.unread[unread] = tally.unread.get(unread, 0) + 1
    if visit.planned is not None and task.status is not Outcome.NEW:
        tally.revisited += 1
    if done.due < NEVER and visit.planned is None and not _seen_under_watch(done, record.outcome):
        tally.put_off += 1
    else:
        tally.count_outcome(record.outcome, record.reason, task.url)


def _unread_type(record: CaptureRecord) -> str | None:
    """Return the type of a document that is neither read nor data of a known form; None for any other."""
    if (
        record.outcome is not Outcome.OK
        or not record.read
        or record.quads
        or record.links
        or not record.sha256
    ):
        return None
    known = format_of(record.found_type)
    if known is not None and (known.analyser or known.form):
        return None
    return record.found_type or "unknown type"


def _seen_under_watch(done: Done, outcome: Outcome) -> bool:
    """A watched resource is always due again, gone or moved too: that is no attempt that failed."""
    return done.task.crawl == WATCH and (not done.fails or outcome is not Outcome.FAILED)


class Stranded:
    """Visits and hosts that cannot be committed before a node of the database is back."""

    def __init__(self) -> None:
        self.visits: list[Visit] = []
        self.released: list[HeldLease] = []
        self.away: frozenset[tuple[str, str]] = frozenset()
        """The nodes that were away when they were last tried."""

    def __bool__(self) -> bool:
        return bool(self.visits or self.released)

    def held(self) -> list[HeldLease]:
        """Return the leases of all stranded visits and hosts."""
        return [*self.released, *(each.held for each in self.visits)]

    def take(self, visits: list[Visit], released: list[HeldLease], away: frozenset[tuple[str, str]]) -> None:
        """Has all of them tried again, before what came after them."""
        visits[:0], released[:0] = self.visits, self.released
        self.visits, self.released, self.away = [], [], away


class Committer:
    """Gathers visits and commits them in groups. What it has not committed did not happen."""

    def __init__(self, context: CommitContext, hooks: Sequence[CommitHook]) -> None:
        self._frontier = context.frontier
        self._segments = context.segments
        self._hooks = hooks
        self._thread = context.thread
        self.links = LinkPut(context)
        self._waiting: list[Visit] = []
        self._released: list[HeldLease] = []
        self._stranded = Stranded()
        self._news = asyncio.Event()
        self._room = asyncio.Condition()
        self._ending = False
        self.tally = Tally()

    async def add(self, visit: Visit) -> None:
        """Hands a settled visit over; waits when too many are waiting."""
        if len(self._waiting) >= MOST_WAITING:
            async with self._room:
                await self._room.wait_for(lambda: len(self._waiting) < MOST_WAITING)
        self._waiting.append(visit)
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
                await self._gather()
                await self._flush(after)
        await self._flush(after)

    async def _gather(self) -> None:
        """Let visits come together while many come, until half of their hosts wait to be given back."""
        known = 0
        for _ in range(GATHER_ROUNDS):
            if len(self._waiting) - known < MANY_VISITS:
                return
            known = len(self._waiting)
            await asyncio.sleep(GATHER_SECONDS)
            if self._ending or 2 * len(self._released) >= len({each.held for each in self._waiting}):
                return

    def end(self) -> None:
        """Lets `run` come to its end."""
        self._ending = True
        self._news.set()

    def stranded(self) -> list[Lease]:
        """Leases whose visits wait for a node of the database that is away."""
        return list({id(each.lease): each.lease for each in self._stranded.held()}.values())

    async def _flush(self, after: After) -> None:
        """Commit what was handed over, and tell the hooks and the worker what became of it."""
        self._news.clear()
        visits, self._waiting = self._waiting, []
        released, self._released = self._released, []
        nodes = self._thread.session.nodes
        if nodes is not None and self._stranded.away != nodes.away:
            self._stranded.take(visits, released, nodes.away)
        committed = await self._commit_ours(visits, released)
        if self._stranded:
            asyncio.get_running_loop().call_later(LOOK_SECONDS, self._news.set)
            visits = [each for each in visits if each not in self._stranded.visits]
            released = [each for each in released if each not in self._stranded.released]
        after(released, self._report(visits, committed))
        async with self._room:
            self._room.notify_all()

    async def _commit_ours(self, visits: list[Visit], released: list[HeldLease]) -> list[Visit]:
        """Commit the visits to hosts that may still be ours; returns those that became true."""
        sent = await self._sync_elsewhere(visits)
        # A parked visit has no lease to lose: `finish_apart` sees whether its URL is still put off for it.
        parked = [each for each in visits if each.parked_until is not None]
        held = [each for each in visits if each.parked_until is None] if parked else visits
        ours = _newest([*map(attrgetter("held"), held), *released])
        if not ours and not parked:
            return []
        held = [each for each in held if each.held in ours]
        given_back = [each for each in released if each in ours]
        return await self._thread.run(self._commit_all, held, given_back, parked, sent)

    def _report(self, visits: list[Visit], committed: list[Visit]) -> list[Task]:
        """Count and log what was committed, and tell the hooks; returns tasks whose visits came too late."""
        for each in committed:
            count_visit(self.tally, each)
        if _visits.isEnabledFor(logging.INFO):
            for each in committed:
                _log_visit(each)
        # By identity: where a visit could not be written, another one is committed that says so.
        there = set(map(id, committed))
        for hook in self._hooks:
            for each in visits:
                hook.after(each, committed=id(each) in there)
        return [each.task for each in visits if each.record and id(each) not in there]

    async def _sync_elsewhere(self, visits: list[Visit]) -> list[StoredFile]:
        """Send bytes to a store; returns what is there of the segments.

        The store may have to be waited for, and leases must be renewed meanwhile.
        """
        for hook in self._hooks:
            if hook.is_elsewhere:
                await asyncio.to_thread(hook.prepare, visits)
        return await asyncio.to_thread(self._segments.sync) if self._segments.store.is_elsewhere else []

    def _commit_all(
        self, visits: list[Visit], released: list[HeldLease], parked: list[Visit], sent: list[StoredFile]
    ) -> list[Visit]:
        """Returns what became true. A visit that cannot be committed must not stop the others."""
        # Bytes first: a row that is committed must not refer to any that a crash can take away.
        with step("sync"):
            self._segments.reserve()
            durable = sent if self._segments.store.is_elsewhere else self._segments.sync()
            reached("segments-synced")
            for hook in self._hooks:
                if not hook.is_elsewhere:
                    hook.prepare([*visits, *parked])
            reached("blobs-synced")
        try:
            committed = self._commit(visits, released, durable)
        except NodeAway:
            committed = self._commit_each(visits, released, durable)
        except _NOBODYS_FAULT:
            raise
        except Exception:  # noqa: BLE001 (told, and looked at one by one)
            _log.exception("a commit failed; now each visit is committed alone")
            committed = self._commit_each(visits, released, durable)
        for each in parked:
            committed += self._commit_alone(each, lambda one: self._finish_parked(one, durable))
        return committed

    def _commit_each(
        self, visits: list[Visit], released: list[HeldLease], durable: list[StoredFile]
    ) -> list[Visit]:
        """Commit visits one by one. What leads to a node that is away waits for it, and so do its hosts."""
        committed: list[Visit] = []
        for each in visits:
            committed += self._commit_alone(each, lambda one: self._commit([one], [], durable))
        waiting = {each.held for each in self._stranded.visits}
        self._stranded.released += [each for each in released if each in waiting]
        return committed + self._commit([], [each for each in released if each not in waiting], durable)

    def _commit_alone(self, visit: Visit, commit: Callable[[Visit], list[Visit]]) -> list[Visit]:
        """Commit a visit, or in its place one that says why it cannot be written."""
        try:
            return commit(visit)
        except NodeAway:
            self._stranded.visits.append(visit)
            return []
        except _NOBODYS_FAULT:
            raise
        except Exception as error:  # noqa: BLE001 (told in the record)
            _log.exception("a commit failed")
            return commit(_faulty(visit, error)) if visit.record else []

    def _finish_parked(self, visit: Visit, durable: list[StoredFile]) -> list[Visit]:
        """Commit a visit whose host was given back before, unless its URL was lent again since."""
        assert visit.parked_until is not None
        self._put_links([visit])
        reached("links-put")

        def record(cursor: Any, held: frozenset[int]) -> None:
            self._record(cursor, [visit] if held else [], durable, in_bucket=self._are_in_bucket([visit]))

        with step("finish"):
            args = visit.held.lease, visit.settled, visit.parked_until, record
            return [visit] if self._frontier.finish_apart(*args) else []

    def _commit(
        self, visits: list[Visit], released: list[HeldLease], durable: list[StoredFile]
    ) -> list[Visit]:
        """Returns the visits to hosts that were still ours; what was done on others is dropped."""
        self._put_links(visits)
        reached("links-put")

        # What a transaction writes outside of its bucket takes all of a cluster to commit.
        in_bucket = self._are_in_bucket(visits)
        is_apart = in_bucket and self._thread.session.nodes is not None
        if is_apart and durable:
            self._thread.session.transact(lambda cursor: commit_files(cursor, durable))

        def record(cursor: Any, held: frozenset[int]) -> None:
            held_visits = [each for each in visits if each.held.lease.qid in held]
            self._record(cursor, held_visits, [] if is_apart else durable, in_bucket=in_bucket)

        with step("finish"):
            away: set[int] = set()
            returns = _returns(visits, released)
            held = self._frontier.finish(returns, record, in_bucket=is_apart, away=away)
            if away:
                self._stranded.visits += [each for each in visits if each.held.lease.bucket in away]
                self._stranded.released += [each for each in released if each.lease.bucket in away]
        reached("after-commit")
        return [each for each in visits if each.held.lease.qid in held]

    def _put_links(self, visits: list[Visit]) -> None:
        """Put links, before visits are recorded: twice does no harm, but lost ones are not found again."""
        cuts = iter(
            self.links.put_found(
                [(reference, each) for each in visits for reference in each.references],
                [item for each in visits for item in each.items],
            )
        )
        for each in visits:
            _note_cuts(each, islice(cuts, len(each.references)))

    def _are_in_bucket(self, visits: list[Visit]) -> bool:
        """Tell whether all rows of visits are in the buckets of their hosts, but for the lengths of files."""
        for each in visits:
            if each.archived or each.extras or each.written or each.planned:
                return False
        return not any(map(attrgetter("is_for_every_visit"), self._hooks))

    def _record(
        self, cursor: Any, visits: list[Visit], durable: Sequence[StoredFile], *, in_bucket: bool
    ) -> None:
        """Write what visits brought, in the transaction that makes it true."""
        tried = [(each.held.lease, each.task, each.record) for each in visits if each.record]
        changed = insert_captures(cursor, tried)
        commit_files(cursor, durable)
        reached("captures-inserted")
        if not in_bucket:
            batch = CommitBatch(visits, changed)
            for hook in self._hooks:
                hook.write(cursor, batch)
        reached("before-commit")


def _log_visit(visit: Visit) -> None:
    """Log one line for a committed visit."""
    record = visit.record
    if record is None:
        return
    url, outcome = loggable(record.url), record.outcome.word
    fields: dict[str, object] = {"url": url, "outcome": outcome, "status": record.status}
    fields |= {
        "milliseconds": record.ended_at - record.started_at,
        "bytes": record.bytes,
        "quads": record.quads,
    }
    why = loggable(record.reason) if record.reason else None
    log_fields(
        _visits,
        "%s %s %s, %d ms, %d bytes, %d quads%s",
        outcome,
        record.status or "-",
        url,
        fields["milliseconds"],
        record.bytes or 0,
        record.quads,
        f": {why}" if why else "",
        **fields,
        reason=why,
    )


def _note_cuts(visit: Visit, cuts: Iterable[int]) -> None:
    """Add the reasons why links of the visit were cut."""
    if cut := reduce(or_, cuts, 0):
        done = visit.settled
        visit.done = msgspec.structs.replace(done, cut=(done.cut or 0) | cut)


def _faulty(visit: Visit, error: Exception) -> Visit:
    """Return a failed visit to commit in place of one that cannot be written."""
    task, record, done = visit.task, visit.record, visit.settled
    assert record is not None
    failed = CaptureRecord(
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
    return Visit(
        task,
        visit.held,
        visit.capture,
        parked_until=visit.parked_until,
        done=Done(task=task, outcome=Outcome.FAILED, due=done.due, fails=done.fails),
        record=failed,
    )


def _newest(held: Iterable[HeldLease]) -> set[HeldLease]:
    """Return the leases that may still be ours: of each host the latest, if it is not lost."""
    latest: dict[int, HeldLease] = {}
    for each in sorted(held, key=attrgetter("lease.ends_at")):
        latest[each.lease.qid] = each
    return {each for each in latest.values() if not each.lost}


def _returns(visits: list[Visit], released: list[HeldLease]) -> list[Return]:
    """Return one `Return` for each lease: all its results, and if the host is released."""
    done: dict[HeldLease, list[Done]] = {held: [] for held in released}
    for each in visits:
        done.setdefault(each.held, []).append(each.settled)
    gone = set(released)
    return [
        Return(
            lease=held.lease,
            done=tuple(news),
            release=held in gone,
            delay_ms=held.delay_ms,
            blocked_until=held.blocked_until,
            touched=held.touched,
            visits=held.visits if held in gone else 0,
            earned=held.earned if held in gone else 0.0,
            alike=held.alike_news if held in gone else None,
            unreachable=tuple([state for state in held.news.values() if state is not None]),
            reached=tuple([place for place, state in held.news.items() if state is None]),
        )
        for held, news in done.items()
    ]
