"""A worker's store on a database: one session, the thread it belongs to, and all that is committed there."""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from tamias.archive.blobs.store import choose_store
from tamias.archive.file_store import file_store
from tamias.archive.sources.harvests import read_contexts
from tamias.archive.sources.host_links import add_host_links
from tamias.archive.sources.sites import open_site, site_is_open
from tamias.archive.stored_files import dead_writers, files_in_parts, note_merged
from tamias.crawl.commit.bulk_copies import BulkCopies, Coverage
from tamias.crawl.commit.committer import LOOK_SECONDS, Committer
from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.commit.recover import recover
from tamias.crawl.commit.segment_pool import SEALED_AFTER_MS, SegmentPool
from tamias.crawl.commit.settlement import DoubtReadings, Settler
from tamias.crawl.plan.admit import Admission, Reference, open_frontier
from tamias.crawl.plan.policy import RunLimit
from tamias.crawl.revisit.change_hints import ChangeHints, dump_hints, said_by_sitemap
from tamias.crawl.revisit.timetable import budget_of
from tamias.crawl.store.disk_space import DiskSpace
from tamias.crawl.store.progress import step, write_steps
from tamias.crawl.store.visit import CommitHook, Visit
from tamias.database.connect import Database, Session
from tamias.database.threads import SessionThread
from tamias.filters.blocked import count_blocked
from tamias.frontier.lease_filter import LeaseFilter
from tamias.model.errors import NodeAway
from tamias.model.faults import reached
from tamias.model.item import WATCH, Item
from tamias.model.kind import DUMP
from tamias.model.lease import Lease
from tamias.model.site import Hint
from tamias.permit.availability import KnownRobots, RobotsStore
from tamias.permit.robots import Rules
from tamias.plugins import load
from tamias.schedule.visit import DAY_MS

T = TypeVar("T")
MakeHook = Callable[[CommitContext], CommitHook | None]
"""Makes a hook of commits; None where it is off."""
RECOVER_SECONDS = 60.0
HOST_LINKS_SECONDS = 20.0
"""A site names the same hosts again and again: the longer they are counted, the fewer rows are written."""
LEFT_AFTER_MS = 2 * SEALED_AFTER_MS
"""A file that is still in parts after so long is a dead worker's."""
DEAD_AFTER_MS = 90_000
"""A worker that has left files and has not been connected for so long is dead."""
MERGED_AT_ONCE = 20


def worker_number(database: Database) -> int:
    """A number of one's own, proven alive by a lock where the database is embedded."""
    return database.embedded.enrol() if database.embedded else secrets.randbelow(2**31 - 1) + 1


class DatabaseStore:
    """Carries out `WorkerStore` on a database and a data directory."""

    def __init__(
        self,
        database: Database,
        data: Path,
        admission: Admission,
        *,
        number: int,
        session: Session | None = None,
        lease_filter: LeaseFilter | None = None,
        hooks: Iterable[MakeHook] = (),
        limit: RunLimit | None = None,
    ) -> None:
        """`lease_filter`: what may be leased; without it anything. A `session` becomes the store's own.

        `hooks` are those of commits beside the store's own. `limit` is used in the thread of the session.
        """
        settings = admission.settings
        self.number = number
        self.data = data
        thread = SessionThread(session or database.session())
        thread.session.show_alive(number)
        choose_store(thread.session, settings.archive.store)
        files = file_store(thread.session, data, settings.archive.patience)
        segments = SegmentPool(files, number, thread, settings.sinks.segments)
        self.context = context = CommitContext(
            thread=thread,
            frontier=open_frontier(thread.session, settings, number, lease_filter),
            admission=admission,
            settings=settings,
            segments=segments,
            coverage=Coverage(thread, files),
            database=database,
            data=data,
            number=number,
            crawls=(lease_filter and lease_filter.crawls) or (),
        )
        self.thread = thread
        self.quads = segments
        # With a connection of its own: a commit is not to wait until a large file is sent.
        self._merging = file_store(thread.session, data, settings.archive.patience)
        copies = BulkCopies(thread, admission)
        self._settler = Settler(context, copies)
        doubt = DoubtReadings(thread.session, round(settings.archive.suspicious_days * DAY_MS))
        self.hooks: list[CommitHook] = [doubt, self._settler, copies]
        self._crawl_hints = None
        if settings.crawl.continuous:
            self.hooks.append(load("continuous", "schedule")(thread.session, context.frontier, settings))
            self._crawl_hints = load("continuous", "hints")(thread.session, context.frontier, admission)
        self.hooks += filter(None, (make(context) for make in hooks))
        self.now = context.now
        self.hints = ChangeHints(thread.session, context.frontier, admission)
        self._budget = budget_of(thread.session, settings, lease_filter)
        self.limit = limit or RunLimit()
        self._database = database
        self._committer = committer = Committer(context, self.hooks)
        self.release, self.run, self.end = committer.release, committer.run, committer.end
        self.stranded = committer.stranded
        self.tally = committer.tally
        self.tally.shares = context.coverage.shares
        self._robots = RobotsStore(thread.session)
        self._space = DiskSpace(data, settings.crawl.room)
        self._recovers_at = float("-inf")
        self._linked_at = time.monotonic()
        self._missing: dict[int, int] = {}
        """Workers that left files and are not connected, and since when."""

    async def open(self) -> None:
        await self.thread.run(self.quads.reserve)
        await self.maintain()

    @property
    def waits_for(self) -> str | None:
        return self._store_words() or self.thread.session.away_words()

    def _store_words(self) -> str | None:
        return self.quads.store.waits_for or next(
            filter(None, map(attrgetter("waits_for"), self.hooks)), None
        )

    async def lease(self, hosts: int, per_host: int, seconds: float) -> list[Lease]:
        if self._store_words() is not None:
            return []
        return await self.thread.run(self._lease, hosts, per_host, seconds)

    async def renew(self, leases: Iterable[Lease], seconds: float) -> list[Lease] | None:
        held = [*leases]
        waiting = [each for each in self._committer.stranded() if each not in held]
        renewed = await self.thread.run(self.context.frontier.renew, [*held, *waiting], seconds)
        others = {each.qid for each in waiting}
        return [each for each in renewed if each.qid not in others]

    async def renew_parked(self, parked: Sequence[Visit], until: int) -> None:
        """Keeps others away from URLs whose documents are still being read."""
        await self.thread.run(self._renew_parked, parked, until)

    async def put(self, items: list[Item]) -> None:
        await self._run_patiently(self._committer.links.put, items)

    async def put_links(self, reference: Reference) -> int:
        return await self._run_patiently(self._committer.links.put_links, reference)

    async def read_robots(self, lease: Lease, authority: str) -> KnownRobots | None:
        return await self._run_patiently(self._robots.read, lease.bucket, lease.qid, authority)

    async def write_robots(
        self, lease: Lease, authority: str, rules: Rules, status: int | None, seconds: int
    ) -> KnownRobots:
        return await self._run_patiently(
            self._robots.write, lease.bucket, lease.qid, authority, rules, status, seconds
        )

    async def read_contexts(self, addresses: list[str], since: int) -> dict[str, bytes | None]:
        return await self.thread.run(read_contexts, self.thread.session, addresses, since)

    async def is_site_open(self, lease: Lease, crawl: int, authority: str, depth: int) -> bool:
        return await self._run_patiently(site_is_open, self.thread.session, lease, crawl, authority, depth)

    async def open_site(self, lease: Lease, crawl: int, authority: str, depth: int) -> None:
        opened = (lease, crawl, authority, self.now(), depth)
        await self._run_patiently(open_site, self.thread.session, *opened)

    async def commit(self, visit: Visit) -> None:
        found, crawl = visit.found, visit.task.crawl
        if found.hints:
            await self._take_hints(found.hints, None, crawl)
        if found.semantic and (hints := dump_hints(found.semantic, visit.capture.final_url)):
            await self._take_hints(hints, DUMP, crawl)
        await self._settler.settle(visit)
        await self._committer.add(visit)

    async def _run_patiently(self, work: Callable[..., T], *words: Any) -> T:
        """Run work of one visit; wait without blocking the thread while its database node is away."""
        while True:
            try:
                return await self.thread.run(work, *words)
            except NodeAway:
                await asyncio.sleep(LOOK_SECONDS)

    async def _take_hints(self, hints: Sequence[Hint], kind: str | None, crawl: int) -> None:
        await self.thread.run(self.hints.take, said_by_sitemap(hints))
        if self._crawl_hints is not None and crawl != WATCH:
            await self.thread.run(self._crawl_hints.take, crawl, hints, kind)

    async def maintain(self) -> None:
        await self.thread.run(self._count)
        if (begun := time.monotonic()) > self._recovers_at:
            frontier = self.context.frontier
            await self.thread.run(partial(recover, self._database, self.thread.session, frontier, self.data))
            await self.thread.run(frontier.sweep)
            await self._merge_files()
            self._recovers_at = begun + RECOVER_SECONDS + 20 * (time.monotonic() - begun)

    def stop(self) -> None:
        pass

    async def close(self) -> None:
        try:
            await self.thread.run(self._count, True)
            await self.thread.run(self.limit.close)
        finally:
            await self._close_files()

    async def _close_files(self) -> None:
        try:
            for hook in self.hooks:
                await self.thread.run(hook.close)
            await self.thread.run(self.quads.close)
            await self._merge_files()
        finally:
            self.thread.close()
            write_steps(self.tally.visited)

    async def _merge_files(self) -> None:
        """Makes one object of each file of ours that is sealed, and of what dead workers left."""
        if not self._merging.is_elsewhere:
            return
        session, now = self.thread.session, self.now()
        missing = await self.thread.run(dead_writers, session, self.number)
        self._missing = {worker: self._missing.get(worker, now) for worker in missing}
        # Whoever only lost its connection is back by then.
        dead = [worker for worker, since in self._missing.items() if now - since > DEAD_AFTER_MS]
        for stored in await self.thread.run(
            files_in_parts, session, self.number, dead, now - LEFT_AFTER_MS, MERGED_AT_ONCE
        ):
            sha256 = await asyncio.to_thread(self._merging.merge, stored)
            if sha256 is None:
                continue
            if await self.thread.run(note_merged, session, stored, sha256):
                reached("parts-unnamed")
                await asyncio.to_thread(self._merging.forget_parts, stored.key, stored.parts)
                self._merging.forget_local(stored)

    def _lease(self, hosts: int, per_host: int, seconds: float) -> list[Lease]:
        self._space.check()
        with step("lease"):
            given = self.context.frontier, self.limit, self._budget
            return self.context.lease(*given, hosts, per_host, seconds)

    def _renew_parked(self, parked: Sequence[Visit], until: int) -> None:
        """Put parked visits off further; runs in the thread of the commits, which need the new times."""
        before = [(each.held.lease, each.task, each.parked_until or 0) for each in parked]
        for each, goes_on in zip(parked, self.context.frontier.put_off_further(before, until), strict=True):
            if goes_on:
                each.parked_until = until

    def _count(self, is_last: bool = False) -> None:
        """Store the counts of block lists and, less often, of links between hosts."""
        count_blocked(self.thread.session, self.context.admission.blocked_counts())
        links, waited = self.context.admission.host_links, time.monotonic() - self._linked_at
        if is_last or links.is_full or waited >= HOST_LINKS_SECONDS:
            self._linked_at = time.monotonic()
            add_host_links(self.thread.session, links.take())
        self.context.frontier.credit(self._committer.links.invitations.take())
