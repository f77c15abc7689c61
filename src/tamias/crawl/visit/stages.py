"""The stages of a visit: each has one method, which adds to the visit and says whether the next one follows.

The lists are made once, from the settings (`visit/visitor.py`). What is off is not in a list. A site is
opened with its sitemaps and its signals about the use of its content.
"""

import asyncio
import time
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple, Protocol

import msgspec

from tamias.content.containers.documents import discard, start_of, whole
from tamias.content.formats import media_type_of
from tamias.crawl.analysis.analysers import ACCEPT_CONTEXT, MAX_CONTEXT
from tamias.crawl.commit.bulk_copies import Coverage
from tamias.crawl.plan.admit import Admission, Reference, first
from tamias.crawl.request.robots import PoliteFetcher, RobotsCache, RobotsDelayed, postponed
from tamias.crawl.store.held_lease import HeldLease, NotNow
from tamias.crawl.store.visit import CommitHook, Visit, WorkerStore
from tamias.crawl.visit.reader import Reader
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.cut import TRAP
from tamias.model.item import DESCRIBED, MOST_DEPTH, WATCH, Item
from tamias.model.kind import CONTEXT, DUMP, PROBE, REQUISITE, ROBOTS, SITEMAP, format_in, kind_of
from tamias.model.lease import Task
from tamias.model.site import Signal
from tamias.model.url import authority
from tamias.model.usage import LICENCE
from tamias.permit.robots import Rules, parse
from tamias.permit.signals import (
    PLACE,
    LicensedContent,
    TdmRule,
    is_licence,
    licensed_content,
    signals_of,
    tdm_rules,
)
from tamias.permit.traps import LOOKED_AT, Traps
from tamias.plugins import load_all
from tamias.protocols import Harvester
from tamias.seeds.well_known import USAGE_FILES, kind_there, well_known_urls
from tamias.settings import Settings


class SitemapDiscovery:
    """Puts sitemaps and well-known addresses before anything else of a place is asked for."""

    def __init__(
        self,
        settings: Settings,
        robots: RobotsCache,
        store: WorkerStore,
        admission: Admission,
    ) -> None:
        self._settings = settings
        self._robots = robots
        self._store = store
        self._admission = admission
        self._open: dict[tuple[int, str], int] = {}
        """How deep the URL was that opened a place in a crawl."""

    async def open_site(self, task: Task, held: HeldLease) -> bool:
        """Put the sitemaps of a new place; return if some must be visited first. Raises `RobotsDelayed`."""
        place = authority(task.url) if self._wanted(task) else None
        if place is None or self._open.get((task.crawl, place), MOST_DEPTH) <= self._counting(task):
            return False
        items = await self._found(task, held, place)
        if items and not await self._is_open(task, held, place):
            await self._store.put(items)
            await self._store.open_site(held.lease, task.crawl, place, task.depth)
        else:
            items = []
        if len(self._open) > _REMEMBERED:
            self._open.clear()
        self._open[task.crawl, place] = task.depth
        return bool(items)

    async def _is_open(self, task: Task, held: HeldLease, place: str) -> bool:
        return await self._store.is_site_open(held.lease, task.crawl, place, self._counting(task))

    def _counting(self, task: Task) -> int:
        """Return the depth that counts for a place; it matters only for seeds and with a limit."""
        return task.depth if task.depth == 0 or self._settings.crawl.depth is not None else MOST_DEPTH - 1

    def _wanted(self, task: Task) -> bool:
        """Tell if sitemaps are wanted; at the depth limit their URLs could not be visited."""
        seeds, limit = self._settings.seeds, self._settings.crawl.depth
        return (
            kind_of(task.tags) is None
            and (limit is None or task.depth < limit)
            and self._settings.permit.robots
            and task.url.startswith(("http://", "https://"))
            and (seeds.sitemaps or (seeds.probe and task.depth == 0))
        )

    async def _found(self, task: Task, held: HeldLease, place: str) -> list[Item]:
        sitemaps = await self._robots.sitemaps(task.url, held)
        if sitemaps is None:
            return []
        wanted = sitemaps if self._settings.seeds.sitemaps else ()
        items = [self._item(url, SITEMAP, task) for url in wanted if self._admits(url, task)]
        licences = licences_in(self._robots.signals(task.url))
        items += [self._item(url, CONTEXT, task) for url in licences if self._admits(url, task)]
        if self._settings.seeds.probe and task.depth == 0 and task.crawl != WATCH:
            places = well_known_urls(place, bool(sitemaps))
            items += [self._item(each.url, PROBE, task) for each in places]
        return items

    def _admits(self, url: str, task: Task) -> bool:
        return self._admission.refusal(url, task.depth) is None

    def _item(self, url: str, kind: str, task: Task) -> Item:
        return first(self._admission, url, kind, task)


_REMEMBERED = 10_000
_NONE_SECONDS = 60.0
_MOST_NOTED = 100
AI_TXT_PLACE = "/ai.txt"


class _UsageFiles(NamedTuple):
    tdm: tuple[TdmRule, ...] = ()
    ai: Rules | None = None
    licensed: tuple[LicensedContent, ...] = ()


_NO_FILES = _UsageFiles()


class UsageSignals:
    """Gathers the signals in force for a capture: headers, metas, files of its host, licences."""

    def __init__(
        self,
        robots: RobotsCache,
        store: WorkerStore,
        *,
        probed: bool,
    ) -> None:
        """`probed`: whether tdmrep.json and ai.txt are looked for at all."""
        self._robots = robots
        self._store = store
        self._probed = probed
        self._files: dict[str, tuple[_UsageFiles, float]] = {}
        self._noted: dict[str, bytes] = {}

    def note(self, address: str, body: bytes) -> None:
        """Remember a licence until it is committed."""
        if is_licence(body):
            if len(self._noted) >= _MOST_NOTED:
                self._noted.clear()
            self._noted[address] = body

    async def signals(self, capture: Capture, metas: Sequence[tuple[str, str]]) -> tuple[Signal, ...]:
        """Return all usage signals with their sources."""
        headers, url = capture.hops[-1].headers if capture.hops else (), capture.final_url
        robots_signals = self._robots.signals(url)
        licences = licences_in(robots_signals)
        files = await self._usage_files(url, licences) if self._probed or licences else _NO_FILES
        return signals_of(
            headers, metas, robots_signals, url=url, tdm=files.tdm, ai=files.ai, licensed=files.licensed
        )

    async def _usage_files(self, url: str, licences: Sequence[str]) -> _UsageFiles:
        if not url.startswith(("http://", "https://")):
            return _NO_FILES
        place = authority(url)
        files, until = self._files.get(place, (_NO_FILES, 0.0))
        if until < time.monotonic():
            known = await self._store.read_contexts([place + PLACE, place + AI_TXT_PLACE, *licences], 0)
            files = _files(known.get(place + PLACE), known.get(place + AI_TXT_PLACE))
            bodies = [self._noted.get(each) or known.get(each) or b"" for each in licences]
            licensed = tuple(part for body in bodies for part in licensed_content(body, place))
            files = files._replace(licensed=licensed)
            if len(self._files) >= _REMEMBERED:
                self._files.clear()
            seconds = _NONE_SECONDS if files == _NO_FILES else 3600.0
            self._files[place] = files, time.monotonic() + seconds
        return files


def licences_in(signals: Sequence[tuple[str, str]]) -> list[str]:
    """Return the addresses of the licences among the signals of a robots.txt."""
    return [value for key, value in signals if key == LICENCE]


def _files(tdm: bytes | None, ai: bytes | None) -> _UsageFiles:
    return _UsageFiles(tdm_rules(tdm or b""), parse(ai) if ai else None)


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
