"""The path of one URL through a worker: result, judged, handed over to be committed."""

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Protocol

import msgspec

from tamias.analyse.link_header import alternates
from tamias.archive.contexts import keep_context
from tamias.crawl.admit import Admission, Reference
from tamias.crawl.analysing.extractor import Extraction
from tamias.crawl.commit.bulk_copies import PART, WAIT_MS, Also, BulkCopies, News
from tamias.crawl.commit.committer import Committer, Visited
from tamias.crawl.commit.records import Recorder
from tamias.crawl.commit.tagging import PageTags, tagged
from tamias.crawl.held_lease import Apart, HeldLease, NotNow
from tamias.crawl.revisit.archiver import WATCH, Archiver, ArchiveResult
from tamias.crawl.revisit.change_hints import ChangeHints, said_by_sitemap
from tamias.crawl.revisit.describing import describe
from tamias.crawl.visit.parking import Parking
from tamias.crawl.visit.runner import VisitResult
from tamias.database.connect import Cursor
from tamias.model.capture import Capture
from tamias.model.capture_id import new_capture_id
from tamias.model.cut import BELOW, LISTED
from tamias.model.errors import DiskFull, TamiasError
from tamias.model.item import NEVER, Item
from tamias.model.kind import AUXILIARY, DUMP, ROBOTS, kind_key, kind_of
from tamias.model.lease import Done, Task
from tamias.model.outcome import Outcome
from tamias.model.url import authority, without_password
from tamias.settings import SeedsSettings, Settings

_log = logging.getLogger(__name__)


class Allowance:
    """How many more URLs may be visited. A repeated attempt is free: its URL has been counted."""

    def __init__(self, urls: int | None) -> None:
        self._left = urls

    @property
    def used_up(self) -> bool:
        """Whether no visit may begin any more."""
        return self._left is not None and self._left <= 0

    def take(self, task: Task) -> bool:
        """Whether this visit may begin; if so, it is counted."""
        if self.used_up:
            return False
        if self._left is not None and _counts(task):
            self._left -= 1
        return True

    def give_back(self, task: Task) -> None:
        """The visit came to nothing."""
        if self._left is not None and _counts(task):
            self._left += 1


def _counts(task: Task) -> bool:
    return task.fails == 0 and not task.reopened and kind_of(task.tags) not in AUXILIARY


class Sees(Protocol):
    """Tells what an address brings: by asking for it, or because somebody else did."""

    def unasked(self, url: str, outcome: Outcome, reason: str) -> Capture:
        """An attempt that ended before any request."""
        ...

    async def run(self, task: Task, held: HeldLease) -> VisitResult:
        """What the address brings; `NotNow` when that must wait."""
        ...


class Visitor:
    """Works through leases, one URL after another."""

    def __init__(
        self,
        settings: Settings,
        *,
        allowance: Allowance,
        runner: Sees,
        admission: Admission,
        bulk_copies: BulkCopies,
        hints: ChangeHints,
        committer: Committer,
        recorder: Recorder,
        archiver: Archiver | None,
        pages: PageTags,
        parking: Parking,
        now: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._parking = parking
        self._pages = pages
        self._allowance = allowance
        self._runner = runner
        self._admission = admission
        self._bulk_copies = bulk_copies
        self._hints = hints
        self._committer = committer
        self._recorder = recorder
        self._archiver = archiver
        self._now = now

    async def work(self, held: HeldLease) -> None:
        """Visits the lease's URLs until they are done, the lease is over, or the host wants a pause."""
        for task in held.lease.tasks:
            if held.over or held.blocked_until is not None or not self._allowance.take(task):
                break
            try:
                if not await self.visit(task, held):
                    self._allowance.give_back(task)
                if held.awaits_commit:
                    break
            except NotNow:
                self._allowance.give_back(task)
                break
            except BaseException:
                self._allowance.give_back(task)
                raise
        self._committer.release(held)

    async def visit(self, task: Task, held: HeldLease) -> bool:
        """One URL: result, judged, handed over; what takes long to read is handed over by itself.

        Whether it counts: false if it is only tried again later, because nobody could be reached.
        """
        result = await self._faults_told(self._runner.run(task, held), task)
        if result.later is not None:
            apart = Apart()
            reading = self._faults_told(result.later(apart), task)
            found = await self._parking.wait(reading, apart, result.capture, task, held, self._hand_over)
            if found is None:
                return True
            result = found
        await self._hand_over(result, task, held, None)
        return result.due is None

    async def _hand_over(self, result: VisitResult, task: Task, held: HeldLease, apart: Apart | None) -> None:
        held.awaits_commit = held.awaits_commit or bool(result.found.semantic)
        if result.found.hints:
            said = said_by_sitemap(result.found.hints)
            await asyncio.to_thread(self._committer.in_thread, partial(self._hints.take, said))
        visited = await self._visited(result, task, held)
        await self._committer.add(msgspec.structs.replace(visited, apart=apart))

    async def _faults_told(self, seeing: Awaitable[VisitResult], task: Task) -> VisitResult:
        try:
            return await seeing
        except (TamiasError, NotNow):
            raise
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFull(f"no room left ({error}); free some space and go on") from error
            return self._faulty(task, error)
        except Exception as error:  # noqa: BLE001 (the last line of defence)
            return self._faulty(task, error)

    def _faulty(self, task: Task, error: Exception) -> VisitResult:
        """A fault of ours, not of the document: told as such, and the crawl goes on."""
        _log.error("visit of %s", without_password(task.url), exc_info=error)
        reason = f"internal error: {type(error).__name__}: {error}"
        return VisitResult(self._runner.unasked(task.url, Outcome.FAILED, reason))

    async def _visited(self, result: VisitResult, task: Task, held: HeldLease) -> Visited:
        """What is to be committed."""
        capture = result.capture
        if result.put_off:
            due = self._now() + WAIT_MS if result.due is None else result.due
            later = Done(task=task, outcome=task.status, due=due, fails=task.fails)
            return Visited(held=held, done=later, afterwards=result.afterwards)
        if choices := _choices(capture):
            reason = f"{capture.reason}: {len(choices)} alternates are visited"
            capture = msgspec.structs.replace(capture, outcome=Outcome.OK, reason=reason)
        if result.found.cut & LISTED:
            result.found.problems.append(_too_many_listed(self._settings.seeds))
        if result.found.limit is not None:
            capture = msgspec.structs.replace(capture, outcome=Outcome.FAILED, reason=result.found.limit)
        capture_id = result.capture_id or str(new_capture_id(capture.started_at))
        told = await self._pages.told(result)
        done = tagged(self._done(task, capture, held, result), told)
        done = msgspec.structs.replace(done, cut=_cut(result, capture))
        news = await self._news(result, task, capture, for_good=done.due == NEVER)
        notes = [capture.reason, *filter(None, (held.granted, news.why))]
        held.granted = None
        capture = msgspec.structs.replace(capture, reason="; ".join(notes))
        return Visited(
            held=held,
            done=done,
            record=self._recorder.record(
                capture_id,
                task,
                capture,
                result.found,
                headers=result.archived is not None,
                deferred=_is_deferred(result, done),
            ),
            references=(
                *self._pages.handed_on(result.references, told),
                *self._redirect_links(capture, task),
            ),
            items=(*result.items, *news.items, *self._reached(capture, task, result.found)),
            prepared=result.archived.prepared if result.archived else None,
            also=_all(
                result.also,
                _context(result, task, settled=done.due == NEVER),
                news.also,
                _described(result.found, capture),
                partial(result.archived.record, capture_id=capture_id) if result.archived else None,
            ),
            afterwards=self._settle(result.archived) or result.afterwards,
        )

    async def _news(self, result: VisitResult, task: Task, capture: Capture, *, for_good: bool) -> News:
        """What the visit means for datasets that are had as a whole."""
        if result.found.semantic:
            return await self._bulk_copies.found(task, capture.final_url, result.found.semantic)
        if PART not in task.tags:
            return News()
        return await self._bulk_copies.visited(task, capture.outcome, result.found, for_good)

    def _redirect_links(self, capture: Capture, task: Task) -> list[Reference]:
        """Where the last redirect leads, if it was not followed, or its choices: as deep as the URL."""
        last = capture.hops[-1] if capture.hops else None
        if last is None or capture.outcome is not Outcome.OK:
            return []
        targets = _choices(capture) if last.location is None else [last.location]
        return [Reference(targets, last.url, task.depth, task.crawl)] if targets else []

    def _reached(self, capture: Capture, task: Task, found: Extraction) -> tuple[Item, ...]:
        """The addresses that redirects led through, their document now being had, as deep as the task."""
        if capture.outcome is not Outcome.OK:
            return ()
        urls = [hop.url for hop in capture.hops[1:]]
        if kind_of(task.tags) == DUMP:
            urls.append(task.url)
        items = [self._admission.item(url, task.depth, task.crawl) for url in urls]
        cut = BELOW if found.links and self._settings.crawl.depth is not None else 0
        return tuple(msgspec.structs.replace(item, due=NEVER, cut=cut) for item in items)

    def _settle(self, archived: ArchiveResult | None) -> Callable[[bool], None] | None:
        archiver = self._archiver
        return None if archived is None or archiver is None else lambda _committed: archiver.settle(archived)

    def _watched_again(self, task: Task, capture: Capture, archived: ArchiveResult) -> Done:
        """When a resource under watch is due again. What is not believed leaves the old validators.

        What is gone leaves none: if it comes back, it is to be read.
        """
        etag, modified = _validators(task, capture) if archived.believed else (task.etag, task.last_modified)
        if capture.outcome is Outcome.GONE:
            etag = modified = None
        return Done(
            task=task,
            outcome=capture.outcome,
            due=archived.next.due_ms,
            fails=archived.next.history.fails,
            etag=etag,
            last_modified=modified,
        )

    def _done(self, task: Task, capture: Capture, held: HeldLease, result: VisitResult) -> Done:
        """When the URL is due again: never, unless it is under watch, or trying again can help and may."""
        if capture.retry_after_ms is not None:
            held.blocked_until = self._now() + capture.retry_after_ms
        if self._settings.frontier.per_address and capture.hops:
            held.address = capture.hops[0].address
        if result.due is not None:
            return Done(
                task=task,
                outcome=capture.outcome,
                due=result.due,
                fails=task.fails,
                etag=task.etag,
                last_modified=task.last_modified,
            )
        if result.archived is not None and task.crawl == WATCH:
            return self._watched_again(task, capture, result.archived)
        wait = int(self._settings.crawl.retry_wait * 1000) * 2**task.fails
        if capture.retry_after_ms is not None:
            wait = capture.retry_after_ms
        if capture.retry and task.fails < self._settings.crawl.retries:
            return Done(task=task, outcome=capture.outcome, due=self._now() + wait, fails=task.fails + 1)
        fails = task.fails if capture.outcome is Outcome.FAILED else 0
        etag, modified = _validators(task, capture)
        due = NEVER
        if task.crawl == WATCH and kind_of(task.tags) not in {*AUXILIARY, DUMP}:
            due = self._now() + int(self._settings.schedule.harvests * 1000)
        return Done(
            task=task, outcome=capture.outcome, due=due, fails=fails, etag=etag, last_modified=modified
        )


def _cut(result: VisitResult, capture: Capture) -> int | None:
    """What cut the links of a visit, as far as is known before they are put; None if nothing was read."""
    if capture.cut:
        return capture.cut
    if capture.outcome in (Outcome.OK, Outcome.GONE) or result.references:
        return result.found.cut
    return None


def _choices(capture: Capture) -> list[str]:
    """What a 300 without a preference offers."""
    last = capture.hops[-1] if capture.hops else None
    if last is None or last.status != HTTPStatus.MULTIPLE_CHOICES or last.location is not None:
        return []
    return alternates(last.headers)


def _too_many_listed(settings: SeedsSettings) -> str:
    return (
        "not all that is listed was added: the sitemaps of a host may add "
        f"seeds.host_sitemaps ({settings.host_sitemaps}) files and "
        f"seeds.host_sitemap_urls ({settings.host_sitemap_urls}) URLs"
    )


def _is_deferred(result: VisitResult, done: Done) -> bool:
    """Whether the attempt is repeated because nobody could be reached."""
    return result.due is not None or (result.capture.unreached is not None and done.due < NEVER)


def _context(result: VisitResult, task: Task, *, settled: bool) -> Also | None:
    """What others wait for; for robots.txt they wait until no further attempt can help."""
    is_robots = kind_of(task.tags) == ROBOTS
    if not result.is_context or (is_robots and not settled):
        return None
    address = kind_key(task.url, ROBOTS) if is_robots else task.url
    return partial(keep_context, address=address, body=result.context, now=result.capture.ended_at)


def _described(found: Extraction, capture: Capture) -> Also | None:
    """What a page says of datasets: its site counts as the catalogue."""
    if not found.datasets:
        return None
    place = authority(capture.final_url) + "/"
    return partial(
        describe, portal=place, kind="schema.org", harvest=capture.started_at, datasets=found.datasets
    )


def _validators(task: Task, capture: Capture) -> tuple[str | None, str | None]:
    """ETag and Last-Modified for the next visit, if they can be kept and sent."""
    last = capture.hops[-1] if capture.hops else None
    etag = last.header("etag") if last else None
    modified = last.header("last-modified") if last else None
    if capture.outcome is Outcome.UNCHANGED:
        etag, modified = etag or task.etag, modified or task.last_modified
    return _printable(etag), _printable(modified)


def _printable(value: str | None) -> str | None:
    return value if value is not None and value.isprintable() else None


def _all(*parts: Also | None) -> Also | None:
    wanted = [part for part in parts if part is not None]

    def do(cursor: Cursor) -> None:
        for part in wanted:
            part(cursor)

    return do if wanted else None
