"""The stages of a visit: each has one method, which adds to the visit and says whether the next one follows.

The lists are made once, from the settings (`visit/visitor.py`). What is off is not in a list.
"""

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Literal, Protocol

import msgspec

from tamias.content.formats import media_type_of
from tamias.crawl.analysis.analysers import ACCEPT_CONTEXT, MAX_CONTEXT
from tamias.crawl.analysis.extractor import discard, start_of, whole
from tamias.crawl.commit.bulk_copies import Coverage
from tamias.crawl.plan.admit import Admission, Reference
from tamias.crawl.request.robots import PoliteFetcher, RobotsDelayed, postponed
from tamias.crawl.store.held_lease import HeldLease, NotNow
from tamias.crawl.store.visit import CommitHook, Visit
from tamias.crawl.store.worker_store import WorkerStore
from tamias.crawl.visit.reader import Reader
from tamias.crawl.visit.site import SitemapDiscovery, UsageSignals
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.cut import TRAP
from tamias.model.item import DESCRIBED
from tamias.model.kind import CONTEXT, DUMP, PROBE, REQUISITE, ROBOTS, SITEMAP, format_in, kind_of
from tamias.model.lease import Task
from tamias.permit.traps import LOOKED_AT, Traps
from tamias.plugins import load_all
from tamias.protocols import Harvester
from tamias.seeds.well_known import USAGE_FILES, kind_there
from tamias.settings import Settings

DEATHS_ALLOWED = 1
READ_BEFORE = (Outcome.OK, Outcome.UNCHANGED)
"""How the last visit ended where the body of the version that is known was read."""

Place = Literal["request", "response", "document", "harvest"]
"""Where a stage of a feature stands: before the request, before or after the response is read, or instead."""

ONE_REQUEST = frozenset({SITEMAP, PROBE, CONTEXT, ROBOTS, DUMP})
"""Kinds of addresses that are asked for once, as a page is."""


class VisitStage(Protocol):
    """A step of a visit."""

    async def run(self, visit: Visit) -> bool:
        """Add to a visit; return whether the next stage follows, else the visit is committed as it is."""
        ...


class PlacedStage(VisitStage, Protocol):
    """A stage of a feature, which says where it stands."""

    place: Place


class StageContext(msgspec.Struct, frozen=True):
    """The shared objects of a worker's stages."""

    settings: Settings
    store: WorkerStore
    admission: Admission
    fetcher: PoliteFetcher
    reader: Reader
    traps: "HostTraps"
    usage: UsageSignals

    def without_forgotten(self, capture: Capture) -> Capture:
        """Return a capture as if its body had not come, if that was forgotten for its URL."""
        permitted = self.admission.forgotten.without_body(capture)
        if permitted.body is None:
            discard(capture.body)
        return permitted


class HostTraps:
    """Count what hosts bring against what they cost, so that an endless site is left."""

    def __init__(self, settings: Settings) -> None:
        permit = settings.permit
        self.pages = Traps(permit.host_visits, permit.monotony, permit.host_budget)

    def refusal(self, url: str, held: HeldLease) -> str | None:
        """Return why a URL is not to be requested."""
        lease = held.lease
        visits, earned = lease.visits + held.visits, lease.earned + held.earned
        refusal = self.pages.refusal(lease.host, url, visits, earned, held.alike)
        return None if refusal is None else f"trap: {refusal}"

    def earn(self, capture: Capture, held: HeldLease, quads: int) -> None:
        """Credit a host with what a response brought."""
        if capture.body is not None and self.pages.looks(held.lease.visits + held.visits):
            start = start_of(capture.body, LOOKED_AT)
            held.earned += self.pages.earned(held.lease.host, start, quads)


class _CoreStage:
    def __init__(self, context: StageContext) -> None:
        self._context = context
        self._gate = context.fetcher.gate


class CheckScope(_CoreStage):
    """End visits to addresses that the gate does not let pass."""

    async def run(self, visit: Visit) -> bool:
        refused = self._gate.refusal(visit.task.url, visit.held, kind_of(visit.task.tags))
        if refused is None:
            return True
        visit.capture = refused
        return False


class RobotsFile(_CoreStage):
    """Fetch what a robots.txt of another queue redirects to: its rules are for those who wait for them."""

    async def run(self, visit: Visit) -> bool:
        visit.capture, rules = await self._context.fetcher.robots.visit(visit.task.url, visit.held)
        visit.is_context, visit.context = True, msgspec.msgpack.encode(rules)
        return False


class OpenSite:
    """Put the sitemaps of a new place before anything else of it is requested."""

    def __init__(self, context: StageContext) -> None:
        self._sites = SitemapDiscovery(
            context.settings, context.fetcher.robots, context.store, context.admission
        )

    async def run(self, visit: Visit) -> bool:
        try:
            if await self._sites.open_site(visit.task, visit.held):
                # They come first: the next lease of the host brings them.
                raise NotNow
        except RobotsDelayed as wait:
            visit.capture = postponed(visit.task.url, wait)
            return False
        return True


class DeadlyDocuments(_CoreStage):
    """Give up documents over which workers died: after the first death a sandbox read them in vain."""

    async def run(self, visit: Visit) -> bool:
        if visit.task.deaths <= DEATHS_ALLOWED:
            return True
        reason = "set aside: its analysis ended the worker twice"
        visit.capture = self._gate.unasked(visit.task.url, Outcome.FAILED, reason)
        return False


class CoveredByCopies:
    """Skip what a dataset covers that is had as a whole."""

    def __init__(self, context: StageContext, coverage: Coverage) -> None:
        self._gate = context.fetcher.gate
        self._coverage = coverage

    async def run(self, visit: Visit) -> bool:
        visit.covering = covering = await self._coverage.of(visit.task, visit.held.lease)
        if covering is None or covering.lacks:
            return True
        visit.capture = self._gate.unasked(visit.task.url, Outcome.SKIPPED, covering.reason)
        visit.put_off = not covering.is_copied
        return False


class LeaveTraps(_CoreStage):
    """Skip URLs of hosts that seem to have no end, and pages that only repeat others."""

    async def run(self, visit: Visit) -> bool:
        task, held = visit.task, visit.held
        reason, cut = None, 0
        # A seed is never a trap: a user named it. Nor does one grow by a look whether a document changed.
        if task.depth and (task.status not in READ_BEFORE or task.reopened):
            reason, cut = self._context.traps.refusal(task.url, held), TRAP
        if reason is None and held.alike and task.depth:
            described = DESCRIBED in task.tags
            reason, cut = self._context.traps.pages.copied(task.url, held.alike, described=described), 0
        if reason is None:
            return True
        visit.capture = self._gate.unasked(task.url, Outcome.SKIPPED, reason, cut)
        return False


class KeepResponses:
    """Give a response to the hooks that store it, before it is read."""

    def __init__(self, hooks: Sequence[CommitHook]) -> None:
        self._hooks = hooks

    async def run(self, visit: Visit) -> bool:
        request = request_for(visit.task)
        visit.written += visit.held.written
        visit.held.written = []
        for hook in self._hooks:
            visit.written += await asyncio.to_thread(hook.keep_response, visit.capture, request)
        return True


class Fetch:
    """Request the URL, or take over what was fetched before a death."""

    def __init__(self, context: StageContext, *, keeps_errors: bool) -> None:
        """`keeps_errors`: whether a stage wants the bodies of refused responses too."""
        self._fetcher = context.fetcher
        self._reader = context.reader
        self._traps = context.traps.pages
        self._keeps_errors = keeps_errors

    async def run(self, visit: Visit) -> bool:
        task, held = visit.task, visit.held
        # The first visit to a URL that a document named counts against the budget of its host.
        is_first = task.depth > 0 and task.status is Outcome.NEW and not task.fails
        held.visits += is_first and kind_of(task.tags) not in (PROBE, CONTEXT)
        capture = await self._reader.fetched(task, held) if self._reader.interrupted else None
        if capture is None:
            request = request_for(task, keeps_errors=self._keeps_errors)
            capture = await self._fetcher.fetch(request, task, held)
        visit.capture = capture
        if DESCRIBED in task.tags and capture.outcome in (Outcome.OK, Outcome.GONE):
            found = capture.outcome is Outcome.OK
            held.alike_changed |= self._traps.note_described(task.url, found=found, alike=held.alike)
        return True


class KeepContext(_CoreStage):
    """Keep a JSON-LD context or a licence for those who wait for it, unread."""

    async def run(self, visit: Visit) -> bool:
        body = whole(visit.capture.body, MAX_CONTEXT) if visit.capture.outcome is Outcome.OK else None
        visit.is_context, visit.context = True, body
        self._context.usage.note(visit.task.url, body or b"")
        return False


class Probe(_CoreStage):
    """End visits to well-known addresses where something else stands."""

    async def run(self, visit: Visit) -> bool:
        if visit.capture.body is None or self._context.reader.extractor.stands_there(visit.capture):
            return True
        reason = "not what is looked for at this well-known address"
        visit.capture = msgspec.structs.replace(visit.capture, outcome=Outcome.SKIPPED, reason=reason)
        return False


class Extract(_CoreStage):
    """Read the body into statements and links, and gather what is said about its use."""

    async def run(self, visit: Visit) -> bool:
        context, held = self._context, visit.held
        body = visit.capture.body
        if body is not None:
            await context.reader.read(visit, self._fetch_context)
            traps, quads = context.traps, visit.found.quads
            held.alike_changed |= traps.pages.read(visit.task.url, body.data, quads, held.alike)
            traps.earn(visit.capture, held, quads)
        visit.found.signals = await context.usage.signals(visit.capture, visit.found.metas)
        return True

    async def _fetch_context(self, visit: Visit, address: str) -> bytes | None:
        """Fetch a context of the queue that the visit holds anyway."""
        request = Request(url=address, accept=ACCEPT_CONTEXT)
        fetched = await self._context.fetcher.fetch(request, visit.task, visit.held)
        context = self._context.without_forgotten(fetched)
        try:
            return whole(context.body, MAX_CONTEXT) if context.outcome is Outcome.OK else None
        finally:
            discard(context.body)


def request_for(task: Task, *, keeps_errors: bool = False) -> Request:
    """Return the request for the document of a task, conditional if it was fetched before."""
    accept = ACCEPT_CONTEXT if kind_of(task.tags) == CONTEXT else "*/*" if REQUISITE in task.tags else None
    return Request(
        url=task.url,
        accept=accept,
        expected=media_type_of(format_in(task.tags)),
        etag=None if task.reopened else task.etag,
        last_modified=None if task.reopened else task.last_modified,
        keeps_errors=keeps_errors,
    )


class KeepWellKnown:
    """Open what stands at a well-known address, or keep it for those who ask for it."""

    async def run(self, visit: Visit) -> bool:
        task = visit.task
        kind = kind_there(task.url) if visit.capture.body is not None else None
        if kind is not None and is_harvested(kind):
            visit.references.append(Reference((task.url,), task.url, task.depth, task.crawl, kind))
        elif kind in USAGE_FILES:
            visit.is_context, visit.context = True, whole(visit.capture.body, MAX_CONTEXT)
        return True


def is_harvested(kind: str) -> bool:
    """Tell if addresses of a kind are harvested."""
    return kind not in ONE_REQUEST and kind in harvesters()


@cache
def harvesters() -> dict[str, Harvester]:
    """The harvester of each kind of address that an installed part can open."""
    made: list[Harvester] = [part() for part in load_all("harvesters").values()]
    return {kind: harvester for harvester in made for kind in harvester.kinds}
