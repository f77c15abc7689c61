"""The path of one URL through a worker: permit, fetch, open, analyse, hand over to be committed."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence

import msgspec

from tamias.crawl.admit import Admission, Reference
from tamias.crawl.commit import Committer, Visited
from tamias.crawl.marker import Marker
from tamias.crawl.pace import LONGEST_TURN, Held, NotNow
from tamias.crawl.robots import AskedToWait, RobotsDesk
from tamias.crawl.shelf import Shelf
from tamias.crawl.steps import Steps
from tamias.crawl.study import Found, Study, discard, is_small
from tamias.model.capture import Capture, Request, Stop
from tamias.model.capture_id import new_capture_id
from tamias.model.errors import TamiasError
from tamias.model.item import NEVER, Item
from tamias.model.lease import Done, Task
from tamias.model.outcome import Outcome
from tamias.model.record import CaptureRecord, HopRecord
from tamias.protocols import Fetcher
from tamias.settings import Settings
from tamias.sinks.warc import WarcWriter

_log = logging.getLogger(__name__)

DEATHS_ALLOWED = 1


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
        if self._left is not None and task.fails == 0:
            self._left -= 1
        return True

    def give_back(self, task: Task) -> None:
        """The visit came to nothing."""
        if self._left is not None and task.fails == 0:
            self._left += 1


class Visitor:
    """Works through leases, one URL after another."""

    def __init__(
        self,
        settings: Settings,
        *,
        allowance: Allowance,
        fetchers: dict[str, Fetcher],
        robots: RobotsDesk,
        admission: Admission,
        study: Study,
        shelf: Shelf,
        committer: Committer,
        marker: Marker,
        warc: WarcWriter | None,
        steps: Steps,
        now: Callable[[], int],
        worker: str,
        agent: str,
    ) -> None:
        self._settings = settings
        self._allowance = allowance
        self._fetchers = fetchers
        self._robots = robots
        self._admission = admission
        self._study = study
        self._shelf = shelf
        self._committer = committer
        self._marker = marker
        self._warc = warc
        self._steps = steps
        self._now = now
        self._worker = worker
        self._agent = agent
        self._large = asyncio.Lock()

    async def work(self, held: Held) -> None:
        """Visits the lease's URLs until they are done, the lease is over, or the host wants a pause."""
        for task in held.lease.tasks:
            if held.over or held.blocked_until is not None or not self._allowance.take(task):
                break
            try:
                await self._visit(task, held)
            except NotNow:
                self._allowance.give_back(task)
                break
            except BaseException:
                self._allowance.give_back(task)
                raise
        self._committer.release(held)

    async def _visit(self, task: Task, held: Held) -> None:
        references: list[Reference] = []
        found = Found()
        try:
            capture = await self._fetch(task, held)
            try:
                if self._warc is not None:
                    await asyncio.to_thread(self._warc.write, capture, _request(task))
                if capture.body is not None:
                    found = await self._studied(capture, task, held, references)
            finally:
                discard(capture.body)
        except (TamiasError, NotNow):
            raise
        except Exception as error:  # noqa: BLE001 (the last line of defence)
            # A fault of ours, not of the document: told as such, and the crawl goes on.
            _log.exception("visit of %s", task.url)
            capture = self._unasked(task, Outcome.FAILED, f"internal error: {type(error).__name__}: {error}")
        if found.limit is not None:
            capture = msgspec.structs.replace(capture, outcome=Outcome.FAILED, reason=found.limit)
        references += self._redirect_links(capture, task)
        await self._committer.add(
            Visited(
                held=held,
                done=self._done(task, capture, held),
                record=self._record(task, capture, found),
                references=tuple(references),
                reached=self._reached(capture, task),
            )
        )

    async def _fetch(self, task: Task, held: Held) -> Capture:
        if task.deaths > DEATHS_ALLOWED:
            return self._unasked(task, Outcome.FAILED, "set aside: its analysis ended the worker twice")
        scheme = task.url.partition(":")[0]
        fetcher = self._fetchers.get(scheme)
        if fetcher is None:
            return self._unasked(task, Outcome.SKIPPED, f"no fetcher for {scheme} addresses")
        try:
            refusal = await self._robots.refusal(task.url, held)
        except AskedToWait as wait:
            return msgspec.structs.replace(
                wait.capture, url=task.url, hops=(), reason=f"robots.txt: {wait.capture.reason}"
            )
        if refusal is not None:
            return self._unasked(task, Outcome.REFUSED, refusal)
        await held.turn()
        try:
            return await fetcher.fetch(_request(task), lambda target: self._follow(target, task, held))
        finally:
            held.asked()

    async def _follow(self, target: str, task: Task, held: Held) -> Stop | None:
        """Within its own queue a redirect is followed; one that leads out is a link for another queue."""
        held.asked()
        refusal = self._admission.refusal(target, task.depth)
        if refusal is not None:
            return Stop(Outcome.SKIPPED, f"redirects to {target}, which is not wanted: {refusal}")
        if self._admission.item(target, task.depth, task.crawl).host != held.lease.host:
            return Stop(Outcome.OK, f"redirects to {target}, which is visited in its own queue")
        try:
            refusal = await self._robots.refusal(target, held)
        except AskedToWait as wait:
            held.blocked_until = self._now() + (wait.capture.retry_after_ms or 0)
            return Stop(Outcome.FAILED, f"redirects to {target}; robots.txt there: {wait}")
        if refusal is not None:
            return Stop(Outcome.REFUSED, f"redirects to {target}, refused by {refusal}")
        if held.wait > LONGEST_TURN:
            return Stop(Outcome.OK, f"redirects to {target}, which is visited in its turn")
        await held.turn()
        return None

    async def _studied(self, capture: Capture, task: Task, held: Held, references: list[Reference]) -> Found:
        body = capture.body
        assert body is not None
        if is_small(body):
            take = self._collect(task, references)
            with self._marker.studying(held.lease, task), self._steps.step("study"):
                return self._study.study(capture, body, self._shelf.small_document, take)
        async with self._large:
            with self._marker.studying(held.lease, task):
                return await self._study_aside(capture, task)

    async def _study_aside(self, capture: Capture, task: Task) -> Found:
        """In a thread, which is waited for even when the visit is cancelled: there is one writer only."""
        given_up = threading.Event()
        work = asyncio.create_task(asyncio.to_thread(self._study_large, capture, task, given_up))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            given_up.set()
            await asyncio.wait([work])
            work.exception()  # seen, and of no interest any more
            raise

    def _study_large(self, capture: Capture, task: Task, given_up: threading.Event) -> Found:
        """Links are put as they come, so memory does not grow with the document."""
        assert capture.body is not None

        def put(found: Sequence[str], base: str) -> None:
            if given_up.is_set():
                raise NotNow
            if found:
                self._committer.put_now(Reference(found, base, task.depth + 1, task.crawl))

        with self._steps.step("study"):
            return self._study.study(capture, capture.body, self._shelf.large_document, put)

    def _collect(self, task: Task, references: list[Reference]) -> Callable[[Sequence[str], str], None]:
        def take(found: Sequence[str], base: str) -> None:
            if found:
                references.append(Reference(found, base, task.depth + 1, task.crawl))

        return take

    def _redirect_links(self, capture: Capture, task: Task) -> list[Reference]:
        """Where the last redirect leads, if it was not followed: as deep as the URL itself."""
        last = capture.hops[-1] if capture.hops else None
        if last is None or last.location is None or capture.outcome is not Outcome.OK:
            return []
        return [Reference((last.location,), last.url, task.depth, task.crawl)]

    def _reached(self, capture: Capture, task: Task) -> tuple[Item, ...]:
        """The addresses that redirects led through, their document now being had."""
        if capture.outcome is not Outcome.OK:
            return ()
        items = [self._admission.item(hop.url, task.depth, task.crawl) for hop in capture.hops[1:]]
        return tuple(msgspec.structs.replace(item, due=NEVER) for item in items)

    def _unasked(self, task: Task, outcome: Outcome, reason: str) -> Capture:
        now = self._now()
        return Capture(url=task.url, started_at=now, ended_at=now, outcome=outcome, reason=reason)

    def _done(self, task: Task, capture: Capture, held: Held) -> Done:
        """When the URL is due again: never, unless trying again can help and may."""
        wait = int(self._settings.crawl.retry_wait * 1000) * 2**task.fails
        if capture.retry_after_ms is not None:
            wait = capture.retry_after_ms
            held.blocked_until = self._now() + wait
        if capture.retry and task.fails < self._settings.crawl.retries:
            return Done(task=task, outcome=capture.outcome, due=self._now() + wait, fails=task.fails + 1)
        fails = task.fails if capture.outcome is Outcome.FAILED else 0
        etag, modified = _validators(task, capture)
        return Done(
            task=task, outcome=capture.outcome, due=NEVER, fails=fails, etag=etag, last_modified=modified
        )

    def _record(self, task: Task, capture: Capture, found: Found) -> CaptureRecord:
        return CaptureRecord(
            id=str(new_capture_id(capture.started_at)),
            crawl=task.crawl,
            url=task.url,
            started_at=capture.started_at,
            ended_at=capture.ended_at,
            outcome=capture.outcome,
            reason=capture.reason,
            depth=task.depth,
            hops=tuple(
                HopRecord(url=h.url, status=h.status, address=h.address, location=h.location)
                for h in capture.hops
            ),
            final_url=capture.final_url,
            status=capture.status,
            told_type=capture.told_type,
            found_type=found.media_type,
            bytes=capture.body.size if capture.body else None,
            sha256=capture.body.sha256 if capture.body else None,
            quads=found.quads,
            links=found.links,
            problems=tuple(found.problems),
            extent=found.extent,
            renamed_graphs=found.renamed_graphs,
            worker=self._worker,
            agent=self._agent,
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


def _request(task: Task) -> Request:
    return Request(url=task.url, etag=task.etag, last_modified=task.last_modified)
