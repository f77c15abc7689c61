"""What an address brings, by the way that its kind asks for: one request and an analysis, or a harvest."""

import asyncio
import time
from functools import partial

import msgspec

from tamias.archive.versions.judgement import AttemptMeaning, Judgement
from tamias.content.formats import media_type_of
from tamias.crawl.analysing.contexts import ACCEPT_CONTEXT, MAX_CONTEXT
from tamias.crawl.analysing.extractor import discard, start_of, whole
from tamias.crawl.plan.admit import Admission, Reference
from tamias.crawl.request.polite import PoliteFetcher, asked_to_wait
from tamias.crawl.request.reach import given_up_words
from tamias.crawl.request.robots import AskedToWait
from tamias.crawl.revisit.archiver import Archiver
from tamias.crawl.store.held_lease import HeldLease, NotNow
from tamias.crawl.store.visit import Visit
from tamias.crawl.store.worker_store import WorkerStore
from tamias.crawl.visit.harvest_client import HarvestClient
from tamias.crawl.visit.harvesting import EARNING_BY_STEPS, HarvestRunner, is_harvested
from tamias.crawl.visit.reader import Reader
from tamias.crawl.visit.sitemaps import SitemapDiscovery
from tamias.crawl.visit.usage import UsageSignals
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.cut import TRAP
from tamias.model.item import DESCRIBED
from tamias.model.kind import CONTEXT, PROBE, REQUISITE, ROBOTS, format_in, kind_of
from tamias.model.lease import Task, Unreachable
from tamias.model.warc import WarcExtent
from tamias.permit.traps import LOOKED_AT, Traps
from tamias.seeds.well_known import USAGE_FILES, kind_there

DEATHS_ALLOWED = 1
LONGEST_PAUSE = 60.0
"""Seconds. A harvest whose host wants a longer pause gives the host back meanwhile."""
_READ = (Outcome.OK, Outcome.UNCHANGED)
"""How the last visit ended where the body of the version that is known was read."""


class VisitRunner:
    """Visits one address after another, in hosts that are held."""

    def __init__(
        self,
        store: WorkerStore,
        fetcher: PoliteFetcher,
        reader: Reader,
        admission: Admission,
        harvests: HarvestRunner | None = None,
    ) -> None:
        """Without `harvests` no address is lent to the worker that takes one."""
        settings = admission.settings
        self._store = store
        self._fetcher = fetcher
        self._robots = fetcher.robots
        self.reach = fetcher.reach
        """Who can be reached."""
        self._reader = reader
        self._harvests = harvests
        self._sites = SitemapDiscovery(settings, fetcher.robots, store, admission)
        self._usage = UsageSignals(fetcher.robots, store, probed=settings.seeds.probe)
        self._warc = store.sinks.warc
        self._archiver = store.sinks.archiver
        self._forgotten = admission.forgotten
        self._crawl = settings.crawl
        permit = settings.permit
        self._traps = Traps(permit.host_visits, permit.monotony, permit.host_budget)

    def stop(self) -> None:
        """The worker is told to end: if it dies from here on, no document is to blame."""
        self._reader.stop()

    async def close(self) -> None:
        """Lets go of connections and sandboxes."""
        await self._fetcher.close()
        self._reader.close()

    def unasked(self, url: str, outcome: Outcome, reason: str) -> Capture:
        """An attempt that ended before any request."""
        return self._fetcher.unasked(url, outcome, reason)

    async def run(self, task: Task, held: HeldLease) -> Visit:
        """What the address brings; if nobody can be reached there, when it is tried again."""
        if kind_of(task.tags) == ROBOTS:  # others wait for it: it is tried as often as any URL, not for a day
            return await self._look(task, held)
        with self.reach.retrying(task.url, held):
            state = self.reach.waiting(task.url, held)
            if state is not None:
                return self._unreached(task, state, held)
            visit = await self._look(task, held)
        # The visit itself may have found out that nobody can be reached.
        state = self.reach.waiting(task.url, held)
        if state is None or not (visit.capture.retry or visit.capture.unreached):
            return visit
        if state.given_up:
            visit.capture = msgspec.structs.replace(visit.capture, retry=False, reason=given_up_words(state))
        else:
            visit.due = state.next_at
        return visit

    def _unreached(self, task: Task, state: Unreachable, held: HeldLease) -> Visit:
        """Without a request: it is too early to try the place again."""
        reason = given_up_words(state)
        visit = Visit(task, held, self._fetcher.unasked(task.url, Outcome.FAILED, reason))
        if state.given_up:
            held.unreached(state)  # what became known of the place since then fails with this URL
        else:
            visit.put_off, visit.due = True, state.next_at
        return visit

    async def _look(self, task: Task, held: HeldLease) -> Visit:
        """What the address brings, by the way that its kind asks for."""
        kind = kind_of(task.tags)
        if (refused := self._fetcher.refused(task.url, held, kind)) is not None:
            return Visit(task, held, refused)
        if kind == ROBOTS:
            return await self._robots_elsewhere(task, held)
        try:
            if await self._sites.open_site(task, held):
                # Its sitemaps were put just now and come first: the next lease of the host brings them.
                raise NotNow
        except AskedToWait as wait:
            return Visit(task, held, asked_to_wait(task.url, wait))
        return await self._run_kind(kind, task, held)

    async def _robots_elsewhere(self, task: Task, held: HeldLease) -> Visit:
        """What a robots.txt of another queue redirects to: its rules are kept for those who wait for them."""
        capture, rules = await self._robots.visit(task.url, held)
        return Visit(task, held, capture, is_context=True, context=msgspec.msgpack.encode(rules))

    async def _run_kind(self, kind: str | None, task: Task, held: HeldLease) -> Visit:
        # After the first death it was read in a sandbox; there is nothing safer to try.
        if task.deaths > DEATHS_ALLOWED:
            reason = "set aside: its analysis ended the worker twice"
            return Visit(task, held, self._fetcher.unasked(task.url, Outcome.FAILED, reason))
        if kind is not None and is_harvested(kind):
            return await self._harvest(kind, task, held)
        covering = await self._store.covering(task, held.lease)
        if covering is not None and not covering.lacks:
            skipped = self._fetcher.unasked(task.url, Outcome.SKIPPED, covering.reason)
            return Visit(task, held, skipped, put_off=not covering.had, covering=covering)
        # A seed is never a trap: a user named it.
        if task.depth and not _is_revisit(task) and (trap := self._trap(task.url, held)) is not None:
            skipped = self._fetcher.unasked(task.url, Outcome.SKIPPED, f"trap: {trap}", TRAP)
            return Visit(task, held, skipped)
        described = DESCRIBED in task.tags
        if held.alike and task.depth:
            copied = self._traps.copied(task.url, held.alike, described=described)
            if copied is not None:
                return Visit(task, held, self._fetcher.unasked(task.url, Outcome.SKIPPED, copied))
        held.visits += _is_first(task, kind)
        request = _request(task, kind, keeps_errors=self._warc is not None)
        capture = await self._reader.fetched(task, held) if self._reader.interrupted else None
        if capture is None:
            capture = await self._fetcher.fetch(request, task, held)
        if described and capture.outcome in (Outcome.OK, Outcome.GONE):
            found = capture.outcome is Outcome.OK
            held.alike_changed |= self._traps.note_described(task.url, found=found, alike=held.alike)
        visit = Visit(task, held, capture, covering=covering)
        state = self.reach.waiting(task.url, held)
        if capture.unreached is not None and state is not None and not state.given_up:
            visit.is_context = kind == CONTEXT  # that could not be had
            return visit
        visit.at_once = capture.body is None or kind == CONTEXT or self._reader.is_read_at_once(capture, task)
        if visit.at_once:
            await self.digest(visit)
        return visit

    async def digest(self, visit: Visit) -> None:
        """Keeps and reads what came, and measures how long that takes."""
        begun, came = time.monotonic(), visit.capture.body is not None
        await self._keep_and_read(visit)
        if came:
            visit.found.saving_ms = int((time.monotonic() - begun) * 1000)

    async def _keep_and_read(self, visit: Visit) -> None:
        kind = kind_of(visit.task.tags)
        capture = visit.capture = self._without_forgotten(visit.capture)
        try:
            if self._warc is not None:
                visit.warc = await asyncio.to_thread(self._warc.write, capture, _request(visit.task, kind))
            if self._archiver is not None and self._archiver.wants(visit.task):
                await self._archive(visit, self._archiver)
            elif kind == CONTEXT:
                _keep_context(visit)
            elif capture.body is None:
                visit.found.signals = await self._usage.signals(capture, ())
            elif kind == PROBE and not self._reader.extractor.stands_there(capture):
                visit.capture = nothing_there(capture)
            else:
                await self._read(visit)
                if kind == PROBE:
                    _keep_well_known(visit)
        finally:
            discard(capture.body)
            discard(capture.error_body)

    def _without_forgotten(self, capture: Capture) -> Capture:
        """A body that was forgotten for its URL is as if it had not come."""
        kept = self._forgotten.without_body(capture)
        if kept.body is None:
            discard(capture.body)
        return kept

    async def _archive(self, visit: Visit, archiver: Archiver) -> None:
        """Archives it, and reads it unless it is suspicious or read already."""
        task, capture = visit.task, visit.capture
        evidence = capture
        if capture.outcome is Outcome.REFUSED and capture.error_body is not None:
            evidence = msgspec.structs.replace(capture, body=capture.error_body)
        visit.found.media_type = self._reader.extractor.found_type(evidence)
        visit.archived = archived = await archiver.keep(task, evidence, visit.found.media_type)
        if archived.judgement.reason is not None and capture.outcome is Outcome.OK:
            visit.capture = suspicious(capture, archived.judgement.reason)
        # Known bytes are not read again: their quads are there, unless the last visit could not read them.
        elif capture.body is not None and (
            archived.prepared is not None or task.reopened or task.status not in _READ
        ):
            try:
                await self._read(visit)
            except BaseException:
                archiver.settle(archived)  # the visit is given up, or goes on without it
                raise
            if visit.found.overblown:
                archived.judgement = Judgement(AttemptMeaning.SUSPECT, visit.found.limit)

    async def _read(self, visit: Visit) -> None:
        capture, held = visit.capture, visit.held
        await self._reader.read(visit, partial(self._context_here, task=visit.task, held=held))
        body = capture.body.data if capture.body else None
        held.alike_changed |= self._traps.read(visit.task.url, body, visit.found.quads, held.alike)
        self._earn(capture, held, visit.found.quads)
        visit.found.signals = await self._usage.signals(capture, visit.found.metas)

    async def _harvest(self, kind: str, task: Task, held: HeldLease) -> Visit:
        if self._harvests is None:
            raise NotNow
        written: list[WarcExtent] = []
        client = HarvestClient(
            partial(self._ask_of_harvest, kind=kind, task=task, held=held),
            partial(self._pause, held=held),
            int(self._crawl.retry_wait * 1000),
            self._reader.extractor,
            partial(self._to_warc, written),
        )
        held.patience = float("inf")  # given back between two requests, a harvest would begin its step again
        try:
            visit = await self._harvests.harvest(kind, task, held, client, retries=self._crawl.retries)
            visit.warc = written
            if kind == "sparql" and visit.capture.outcome is Outcome.OK:
                self._traps.note_endpoint(task.url, held.alike)
                held.alike_changed = True
            return visit
        finally:
            client.step_ends()

    async def _ask_of_harvest(self, request: Request, kind: str, task: Task, held: HeldLease) -> Capture:
        """Each request of a harvest counts as a visit: an endpoint may have no end either."""
        if (trap := self._trap(request.url, held)) is not None:
            return self._fetcher.unasked(request.url, Outcome.SKIPPED, f"trap: {trap}", TRAP)
        held.visits += 1
        if self._warc is not None:
            request = msgspec.structs.replace(request, keeps_errors=True)
        capture = self._without_forgotten(await self._fetcher.fetch(request, task, held))
        if kind not in EARNING_BY_STEPS:
            self._earn(capture, held, quads=1)
        return capture

    async def _pause(self, wait_ms: int, held: HeldLease) -> bool:
        """Leaves the host alone as long as it asked for; false where its queue is to be given back."""
        if wait_ms > min(LONGEST_PAUSE, self._crawl.max_wait) * 1000:
            return False
        held.blocked_until = self._store.now() + wait_ms  # for the next worker, should this one be stopped
        await asyncio.sleep(wait_ms / 1000)
        held.blocked_until = None
        return True

    def _trap(self, url: str, held: HeldLease) -> str | None:
        lease = held.lease
        visits, earned = lease.visits + held.visits, lease.earned + held.earned
        return self._traps.refusal(lease.host, url, visits, earned, held.alike)

    def _earn(self, capture: Capture, held: HeldLease, quads: int) -> None:
        if capture.body is not None and self._traps.looks(held.lease.visits + held.visits):
            start = start_of(capture.body, LOOKED_AT)
            held.earned += self._traps.earned(held.lease.host, start, quads)

    async def _context_here(self, address: str, task: Task, held: HeldLease) -> bytes | None:
        """A context of the queue that is held anyway."""
        request = Request(url=address, accept=ACCEPT_CONTEXT)
        context = self._without_forgotten(await self._fetcher.fetch(request, task, held))
        try:
            return whole(context.body, MAX_CONTEXT) if context.outcome is Outcome.OK else None
        finally:
            discard(context.body)

    async def _to_warc(self, written: list[WarcExtent], capture: Capture, request: Request) -> None:
        if self._warc is not None:
            written += await asyncio.to_thread(self._warc.write, capture, request)
        discard(capture.error_body)


def _keep_context(visit: Visit) -> None:
    """A context is kept for those who wait for it, and not read."""
    body = whole(visit.capture.body, MAX_CONTEXT) if visit.capture.outcome is Outcome.OK else None
    visit.is_context, visit.context = True, body


def _keep_well_known(visit: Visit) -> None:
    """Something stands at a well-known address: it is opened, or kept for those who ask for it."""
    task = visit.task
    kind = kind_there(task.url)
    if kind is not None and is_harvested(kind):
        visit.references.append(Reference((task.url,), task.url, task.depth, task.crawl, kind))
    elif kind in USAGE_FILES:
        visit.is_context, visit.context = True, whole(visit.capture.body, MAX_CONTEXT)


def suspicious(capture: Capture, reason: str) -> Capture:
    """The response is stored as suspicious, and the version before stays the current one."""
    return msgspec.structs.replace(capture, outcome=Outcome.SKIPPED, reason=f"suspect: {reason}")


def nothing_there(capture: Capture) -> Capture:
    """A well-known address that answers, but with something else."""
    reason = "not what is looked for at this well-known address"
    return msgspec.structs.replace(capture, outcome=Outcome.SKIPPED, reason=reason)


def _request(task: Task, kind: str | None, *, keeps_errors: bool = False) -> Request:
    accept = ACCEPT_CONTEXT if kind == CONTEXT else "*/*" if REQUISITE in task.tags else None
    expected = media_type_of(format_in(task.tags))
    if task.reopened:
        return Request(url=task.url, accept=accept, expected=expected, keeps_errors=keeps_errors)
    return Request(
        url=task.url,
        accept=accept,
        expected=expected,
        etag=task.etag,
        last_modified=task.last_modified,
        keeps_errors=keeps_errors,
    )


def _is_revisit(task: Task) -> bool:
    """Whether it was read before and is asked again whether it changed: no trap grows by that."""
    return task.status in _READ and not task.reopened


def _is_first(task: Task, kind: str | None) -> bool:
    """Whether a visit counts against the budget of its host: the first one to a URL that a document named."""
    return task.depth > 0 and task.status is Outcome.NEW and not task.fails and kind not in (PROBE, CONTEXT)
