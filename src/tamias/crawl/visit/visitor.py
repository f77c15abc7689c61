"""Work through leases: each URL goes through the stages of a visit, which is then handed to the store."""

import asyncio
import errno
import logging
import time
from collections import Counter, deque
from collections.abc import Coroutine
from functools import partial
from typing import Any

import msgspec

from tamias.content.containers.documents import discard
from tamias.crawl.commit.database_store import DatabaseStore
from tamias.crawl.request.gate import given_up_words
from tamias.crawl.store.held_lease import HeldLease, NotNow
from tamias.crawl.store.visit import Visit
from tamias.crawl.visit.stages import (
    CheckScope,
    CoveredByCopies,
    DeadlyDocuments,
    Extract,
    Fetch,
    KeepContext,
    KeepResponses,
    KeepWellKnown,
    LeaveTraps,
    OpenSite,
    Place,
    PlacedStage,
    Probe,
    RobotsFile,
    StageContext,
    VisitStage,
    is_harvested,
)
from tamias.model.capture import Capture, Outcome
from tamias.model.errors import DiskFull, TamiasError
from tamias.model.kind import CONTEXT, PROBE, ROBOTS, kind_of
from tamias.model.lease import Task, Unreachable
from tamias.model.url import without_password
from tamias.plugins import load_all

PATIENCE = 0.25
"""Seconds that a host is held for the sake of a document: most are read within that."""
MOST_OF_HOST = 3
"""A host with more documents that wait is held until one of them was read."""
MOST_DOCUMENTS = 500
MOST_BYTES = 1 << 30
"""Of the bodies that wait on the disk."""


class Parking:
    """Keeps a worker's visits that are only being read any more. For the event loop's thread."""

    def __init__(self, store: DatabaseStore | None) -> None:
        """Hold hosts until their documents are read if there is no store."""
        self._store = store
        self._lease_ms = int(store.context.settings.frontier.lease * 1000) if store else 0
        self._parked: dict[asyncio.Task[None], Visit] = {}
        self._hosts: Counter[int] = Counter()
        self._bytes = 0
        self.trouble: Exception | None = None
        """What the worker cannot go on after."""

    def __len__(self) -> int:
        return len(self._parked)

    async def wait(self, reading: Coroutine[Any, Any, None], visit: Visit) -> bool:
        """Wait for the reading; return False if it goes on in the background and is committed by itself."""
        store = self._store
        if store is None:
            await reading
            return True
        work = asyncio.create_task(reading)
        held, size = visit.held, visit.capture.body.size if visit.capture.body else 0
        try:
            await asyncio.wait([work], timeout=PATIENCE)
            if work.done() or not self._has_room(held.lease.qid, size):
                await work
                return True
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait([work])
            raise
        visit.parked_until = store.now() + self._lease_ms
        # The next visit to this host must not take over the note on robots.txt that belongs to this one.
        granted, held.granted = held.granted, None
        # Another visit for the frontier, whose host is still held: this one goes on.
        await store.commit(Visit(visit.task, held, visit.capture, put_off=True, due=visit.parked_until))
        finishing = asyncio.create_task(self._finish(store, work, visit, granted))
        self._parked[finishing] = visit
        self._hosts[held.lease.qid] += 1
        self._bytes += size
        finishing.add_done_callback(partial(self._leave, size=size))
        return False

    def stop(self) -> None:
        """The worker ends: what is not read yet is due again at once."""
        for finishing in self._parked:
            finishing.cancel()

    def _has_room(self, qid: int, size: int) -> bool:
        return (
            self._hosts[qid] < MOST_OF_HOST
            and len(self._parked) < MOST_DOCUMENTS
            and self._bytes + size <= MOST_BYTES
        )

    async def renew(self) -> None:
        """Keeps others away from the URLs whose documents are still being read."""
        if self._store is not None:
            await self._store.renew_parked([*self._parked.values()], self._store.now() + self._lease_ms)

    async def _finish(
        self, store: DatabaseStore, work: asyncio.Task[None], visit: Visit, granted: str | None
    ) -> None:
        try:
            await work
            visit.held.granted = granted
            await store.commit(visit)
        except (asyncio.CancelledError, NotNow):
            await asyncio.wait([work])
            visit.put_off, visit.due = True, store.now()
            await store.commit(visit)
        except TamiasError as error:
            self.trouble = error

    def _leave(self, finishing: asyncio.Task[None], size: int) -> None:
        qid = self._parked.pop(finishing).held.lease.qid
        self._hosts[qid] -= 1
        if not self._hosts[qid]:
            del self._hosts[qid]
        self._bytes -= size


_log = logging.getLogger(__name__)


class StageLists:
    """The stages of visits by kind of address: those of the request, and those of what came."""

    def __init__(self, context: StageContext) -> None:
        self._context = context
        self._keepers = [each for each in context.store.hooks if each.keeps_responses]
        made = (make(context) for make in load_all("stages").values())
        self._placed: list[PlacedStage] = [each for each in made if each is not None]
        self._made: dict[str | None, tuple[list[VisitStage], list[VisitStage]]] = {}
        self.of(None)

    def of(self, kind: str | None) -> tuple[list[VisitStage], list[VisitStage]]:
        """Return the stages up to the response, and those after it."""
        if kind not in self._made:
            self._made[kind] = self._request(kind), self._response(kind)
        return self._made[kind]

    def _request(self, kind: str | None) -> list[VisitStage]:
        context, scope = self._context, CheckScope(self._context)
        if kind == ROBOTS:
            return [scope, RobotsFile(context)]
        seeds, robots = context.settings.seeds, context.settings.permit.robots
        opens = kind is None and robots and (seeds.sitemaps or seeds.probe)
        first = [scope, *([OpenSite(context)] if opens else ()), DeadlyDocuments(context)]
        if kind is not None and is_harvested(kind):
            return [*first, *self._at("harvest")]
        store = context.store
        if isinstance(store, DatabaseStore):  # a service looks at that before it lends
            first.append(CoveredByCopies(context, store.context.coverage))
        fetch = Fetch(context, keeps_errors=bool(self._keepers))
        return [*first, LeaveTraps(context), *self._at("request"), fetch]

    def _response(self, kind: str | None) -> list[VisitStage]:
        keeps = [KeepResponses(self._keepers)] if self._keepers else []
        before, after = [*keeps, *self._at("response")], self._at("document")
        if kind == CONTEXT:
            return [*before, KeepContext(self._context)]
        extract = Extract(self._context)
        if kind == PROBE:
            return [*before, Probe(self._context), extract, KeepWellKnown(), *after]
        return [*before, extract, *after]

    def _at(self, place: Place) -> list[PlacedStage]:
        return [each for each in self._placed if each.place == place]


class Visitor:
    """Visit the URLs of leased hosts, one after another."""

    def __init__(self, context: StageContext, parking: Parking) -> None:
        """`parking` keeps documents that take long."""
        self._context = context
        self._gate = context.fetcher.gate
        self._reader = context.reader
        self._store = context.store
        self.parking = parking
        self._stages = StageLists(context)
        self.reach = context.fetcher.reach
        """Which places can be reached."""

    async def work(self, held: HeldLease) -> None:
        """Visits the lease's URLs until they are done, the lease is over, or the host wants a pause."""
        left = deque(held.lease.tasks)
        try:
            while left and not held.over and held.blocked_until is None and self._store.limit.may_visit:
                if not await self.visit(left[0], held):
                    self._store.limit.give_back(left[0])
                left.popleft()
                # A Semantic Sitemap may cover the other URLs of the host: that is known once it is committed.
                if held.awaits_commit:
                    break
        except NotNow:
            pass
        finally:
            for task in left:
                self._store.limit.give_back(task)
        self._store.release(held)

    async def visit(self, task: Task, held: HeldLease) -> bool:
        """Visit a URL and commit it; a long reading goes on and is committed by itself.

        Whether it counts: false if it is only tried again later, because nobody could be reached.
        """
        visit = Visit(task, held)
        try:
            await self._request(visit)
        except Exception as error:  # noqa: BLE001 (what is not ours is raised again)
            visit = Visit(task, held, self._fault(error, task))
        if not visit.at_once and not await self.parking.wait(self._digest(visit), visit):
            return True
        held.awaits_commit = held.awaits_commit or bool(visit.found.semantic)
        await self._store.commit(visit)
        return visit.due is None

    async def _request(self, visit: Visit) -> None:
        """Request a URL, unless it is too early to try its place again; read at once what is read soon."""
        task, held = visit.task, visit.held
        if kind_of(task.tags) == ROBOTS:  # others wait for it: it is tried as often as any URL, not for a day
            await self._run_stages(visit)
            return
        with self.reach.retrying(task.url, held):
            state = self.reach.waiting(task.url, held)
            if state is not None:
                self._put_off(visit, state)
                return
            await self._run_stages(visit)
        # The visit itself may have found out that nobody can be reached.
        state = self.reach.waiting(task.url, held)
        if state is None or not (visit.capture.retry or visit.capture.unreached):
            return
        if state.given_up:
            visit.capture = msgspec.structs.replace(visit.capture, retry=False, reason=given_up_words(state))
        else:
            visit.due = state.next_at

    def _put_off(self, visit: Visit, state: Unreachable) -> None:
        """End a visit without a request."""
        visit.capture = self._gate.unasked(visit.task.url, Outcome.FAILED, given_up_words(state))
        if state.given_up:
            visit.held.unreached(state)  # what became known of the place since then fails with this URL
        else:
            visit.put_off, visit.due = True, state.next_at

    async def _run_stages(self, visit: Visit) -> None:
        """Run the stages up to the response, and the others if that is read at once."""
        kind = kind_of(visit.task.tags)
        for stage in self._stages.of(kind)[0]:
            if not await stage.run(visit):
                return
        capture = visit.capture
        state = self.reach.waiting(visit.task.url, visit.held)
        if capture.unreached is not None and state is not None and not state.given_up:
            visit.is_context = kind == CONTEXT  # that could not be fetched
            return
        visit.at_once = (
            capture.body is None or kind == CONTEXT or self._reader.is_read_at_once(capture, visit.task)
        )
        if visit.at_once:
            await self._keep_and_read(visit)

    async def _keep_and_read(self, visit: Visit) -> None:
        """Run the stages of a response, and measure how long that takes."""
        begun, has_body = time.monotonic(), visit.capture.body is not None
        capture = visit.capture = self._context.without_forgotten(visit.capture)
        try:
            for stage in self._stages.of(kind_of(visit.task.tags))[1]:
                if not await stage.run(visit):
                    break
        except BaseException:  # the visit is given up, or goes on without what was found
            for hook in self._store.hooks:
                hook.after(visit, committed=False)
            raise
        finally:
            discard(capture.body)
            discard(capture.error_body)
        if has_body:
            visit.found.saving_ms = int((time.monotonic() - begun) * 1000)

    def stop(self) -> None:
        """The worker is told to end: if it dies from here on, no document is to blame."""
        self.parking.stop()
        self._reader.stop()

    async def close(self) -> None:
        """Lets go of connections and sandboxes."""
        await self._gate.close()
        self._reader.close()

    async def _digest(self, visit: Visit) -> None:
        try:
            await self._keep_and_read(visit)
        except Exception as error:  # noqa: BLE001 (what is not ours is raised again)
            visit.fail(self._fault(error, visit.task))

    def _fault(self, error: Exception, task: Task) -> Capture:
        """A fault of ours becomes the result of the visit, and the crawl goes on; other errors are raised."""
        if isinstance(error, TamiasError | NotNow):
            raise error
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no disk space left ({error}); free some space and continue") from error
        _log.error("visit of %s", without_password(task.url), exc_info=error)
        reason = f"internal error: {type(error).__name__}: {error}"
        return self._gate.unasked(task.url, Outcome.FAILED, reason)
