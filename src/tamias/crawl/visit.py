"""The path of one URL through a worker: permit, fetch, open, analyse, hand over to be committed."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from tamias.crawl.admit import Admission, Reference
from tamias.crawl.commit import Committer, Visited
from tamias.crawl.marker import Marker
from tamias.crawl.pace import Held
from tamias.crawl.robots import RobotsDesk
from tamias.crawl.shelf import Shelf
from tamias.crawl.steps import Steps
from tamias.crawl.study import Found, Study, discard
from tamias.model.capture import Capture, Request, Stop
from tamias.model.capture_id import new_capture_id
from tamias.model.errors import TamiasError
from tamias.model.item import NEVER
from tamias.model.lease import Done, Task
from tamias.model.outcome import Outcome
from tamias.model.record import CaptureRecord, HopRecord
from tamias.protocols import Fetcher
from tamias.settings import Settings

_log = logging.getLogger(__name__)

SMALL_BODY = 256 * 1024
DEATHS_ALLOWED = 1


class Visitor:
    """Works through leases, one URL after another."""

    def __init__(
        self,
        settings: Settings,
        *,
        fetchers: dict[str, Fetcher],
        robots: RobotsDesk,
        admission: Admission,
        study: Study,
        shelf: Shelf,
        committer: Committer,
        marker: Marker,
        steps: Steps,
        now: Callable[[], int],
        worker: str,
        agent: str,
    ) -> None:
        self._settings = settings
        self._fetchers = fetchers
        self._robots = robots
        self._admission = admission
        self._study = study
        self._shelf = shelf
        self._committer = committer
        self._marker = marker
        self._steps = steps
        self._now = now
        self._worker = worker
        self._agent = agent
        self._large = asyncio.Lock()

    async def work(self, held: Held, may_go_on: Callable[[], bool]) -> None:
        """Visits the lease's URLs until they are done, the lease is over, or the host wants a pause."""
        for task in held.lease.tasks:
            if held.over or held.blocked_until is not None or not may_go_on():
                break
            await self._visit(task, held)
        self._committer.release(held)

    async def _visit(self, task: Task, held: Held) -> None:
        references: list[Reference] = []
        found = Found()
        try:
            capture = await self._fetch(task, held)
            try:
                if capture.body is not None:
                    found = await self._studied(capture, task, held, references)
            finally:
                discard(capture.body)
        except TamiasError:
            raise
        except Exception as error:  # noqa: BLE001 (the last line of defence)
            # A fault of ours, not of the document: told as such, and the crawl goes on.
            _log.exception("visit of %s", task.url)
            capture = self._unasked(task, Outcome.FAILED, f"internal error: {type(error).__name__}: {error}")
        references += self._redirect_links(capture, task)
        done = self._done(task, capture, held)
        record = self._record(task, capture, found)
        await self._committer.add(Visited(held=held, done=done, record=record, references=tuple(references)))

    async def _fetch(self, task: Task, held: Held) -> Capture:
        if task.deaths > DEATHS_ALLOWED:
            return self._unasked(task, Outcome.FAILED, "set aside: its analysis ended the worker twice")
        refusal = await self._robots.refusal(task.url, held)
        if refusal is not None:
            return self._unasked(task, Outcome.REFUSED, refusal)
        request = Request(url=task.url, etag=task.etag, last_modified=task.last_modified)
        fetcher = self._fetchers.get(task.url.partition(":")[0])
        if fetcher is None:
            return self._unasked(
                task, Outcome.SKIPPED, f"no fetcher for {task.url.partition(':')[0]} addresses"
            )
        await held.turn()
        try:
            return await fetcher.fetch(request, lambda target: self._follow(target, task, held))
        finally:
            held.asked()

    async def _follow(self, target: str, task: Task, held: Held) -> Stop | None:
        """A redirect within the queue is a hop; one that leads out of it is a link for another queue."""
        held.asked()
        refusal = self._admission.refusal(target, task.depth)
        if refusal is not None:
            return Stop(Outcome.SKIPPED, f"redirects to {target}, which is not wanted: {refusal}")
        if self._admission.item(target, task.depth, task.crawl).host != held.lease.host:
            return Stop(Outcome.OK, f"redirects to {target}, which is visited in its own queue")
        refusal = await self._robots.refusal(target, held)
        if refusal is not None:
            return Stop(Outcome.REFUSED, f"redirects to {target}, refused by {refusal}")
        await held.turn()
        return None

    async def _studied(self, capture: Capture, task: Task, held: Held, references: list[Reference]) -> Found:
        body = capture.body
        assert body is not None
        with self._marker.studying(held.lease, task):
            if body.size <= SMALL_BODY:
                with self._steps.step("study"):
                    return self._study.study(
                        capture, body, self._shelf.small_document, self._collect(task, references)
                    )
            async with self._large:
                return await asyncio.to_thread(self._study_large, capture, task)

    def _study_large(self, capture: Capture, task: Task) -> Found:
        """In a thread of its own: links are put as they come, so memory does not grow with the document."""
        assert capture.body is not None

        def put(found: Sequence[str], base: str) -> None:
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

    def _unasked(self, task: Task, outcome: Outcome, reason: str) -> Capture:
        now = self._now()
        return Capture(url=task.url, started_at=now, ended_at=now, outcome=outcome, reason=reason)

    def _done(self, task: Task, capture: Capture, held: Held) -> Done:
        """When the URL is due again: never, unless trying again can help and may."""
        if not capture.retry or task.fails >= self._settings.crawl.retries:
            etag = capture.hops[-1].header("etag") if capture.hops else None
            modified = capture.hops[-1].header("last-modified") if capture.hops else None
            if capture.outcome is Outcome.UNCHANGED:
                etag, modified = etag or task.etag, modified or task.last_modified
            fails = task.fails if capture.outcome is Outcome.FAILED else 0
            return Done(
                task=task, outcome=capture.outcome, due=NEVER, fails=fails, etag=etag, last_modified=modified
            )
        wait = int(self._settings.crawl.retry_wait * 1000) * 2**task.fails
        if capture.retry_after_ms is not None:
            wait = max(capture.retry_after_ms, 0)
            held.blocked_until = self._now() + wait
        due = self._now() + wait
        return Done(task=task, outcome=capture.outcome, due=due, fails=task.fails + 1)

    def _record(self, task: Task, capture: Capture, found: Found) -> CaptureRecord:
        outcome, reason = capture.outcome, capture.reason
        if found.limit is not None:
            outcome, reason = Outcome.FAILED, found.limit
        return CaptureRecord(
            id=str(new_capture_id(capture.started_at)),
            crawl=task.crawl,
            url=task.url,
            started_at=capture.started_at,
            ended_at=capture.ended_at,
            outcome=outcome,
            reason=reason,
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
