"""Runs harvesters: many polite requests for one address, saved step by step, committed as one document."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from pyoxigraph import BlankNode, Quad

from tamias.archive.sources.catalogues import (
    count_present,
    note_listed,
    note_whole,
    put_portal,
)
from tamias.archive.sources.harvests import (
    HarvestKey,
    HarvestMemory,
    HarvestProgress,
    harvest_key,
    read_harvest,
    save_harvest,
)
from tamias.archive.sources.source_records import keep_records, present_records
from tamias.content.blank_labels import Labels, rename_blank_nodes
from tamias.content.containers.documents import discard, start_of
from tamias.crawl.analysis.extractor import Extraction
from tamias.crawl.commit.database_store import DatabaseStore
from tamias.crawl.plan.admit import Reference
from tamias.crawl.revisit.change_hints import describe, said_by_catalogue
from tamias.crawl.revisit.watches import wanted_of
from tamias.crawl.store.held_lease import NotNow
from tamias.crawl.store.visit import Visit, hook_of
from tamias.crawl.visit.progress_files import HarvestEnded, ProgressFiles
from tamias.crawl.visit.stages import Place, StageContext, harvesters
from tamias.database.connect import Cursor
from tamias.database.threads import run_uncancelled
from tamias.features.harvests.jobs import (
    STOPPED,
    HarvestJob,
    JobEnded,
    JobsHook,
    begin_job,
    note_step,
)
from tamias.features.harvests.sources import FINDER, Sources
from tamias.model.capture import Capture, Hop, Outcome, Request
from tamias.model.cut import TRAP
from tamias.model.finding import (
    Datasets,
    Deleted,
    Finding,
    Harvest,
    HarvestEnd,
    HarvestStep,
    Links,
    Present,
    Problem,
    Quads,
    SourceRecord,
    SourceRecords,
)
from tamias.model.item import DESCRIBED, NEVER, TRUSTED, WATCH
from tamias.model.kind import kind_of
from tamias.model.lease import Task
from tamias.model.url import is_address

LONGEST_PAUSE = 60.0
"""Seconds. A harvest whose host wants a longer pause gives the host back meanwhile."""
PAUSES = 5
"""Pauses for one request, one after another, before the harvest is given back and goes on later."""
TOO_MANY_REQUESTS = 429


class HarvestClient:
    """Carry out `protocols.PoliteClient` for one harvest: each request waits for its turn."""

    def __init__(
        self, context: StageContext, visit: Visit, count_held: Callable[[], Coroutine[Any, Any, int]]
    ) -> None:
        self._context = context
        self._visit = visit
        self._kind = kind_of(visit.task.tags)
        self._keepers = [each for each in context.store.hooks if each.keeps_responses]
        self.bytes = self.requests = 0
        self.last: Capture | None = None
        self.records_held = count_held

    async def ask(self, request: Request) -> Capture:
        """Send a request. Wait for a pause that the server asks for, and send the request again."""
        capture = await self._ask_once(request)
        for _ in range(PAUSES):
            if capture.retry_after_ms is None or not await self._pause(capture.retry_after_ms):
                break
            capture = await self._ask_once(request)
        return capture

    async def _ask_once(self, request: Request) -> Capture:
        self.step_ends()
        self.requests += 1
        capture = await self._fetch(request)
        if capture.status == TOO_MANY_REQUESTS and capture.retry_after_ms is None:
            usual = int(self._context.settings.crawl.retry_wait * 1000)
            capture = msgspec.structs.replace(capture, retry_after_ms=usual)
        self.bytes += capture.body.size if capture.body else 0
        self.last = capture
        for hook in self._keepers:
            self._visit.written += await asyncio.to_thread(hook.keep_response, capture, request)
        discard(capture.error_body)
        return capture

    async def _fetch(self, request: Request) -> Capture:
        """Send one request; it counts as a visit, because an endpoint may have no end either."""
        context, held = self._context, self._visit.held
        if (trap := context.traps.refusal(request.url, held)) is not None:
            return context.fetcher.gate.unasked(request.url, Outcome.SKIPPED, trap, TRAP)
        held.visits += 1
        if self._keepers:
            request = msgspec.structs.replace(request, keeps_errors=True)
        fetched = await context.fetcher.fetch(request, self._visit.task, held)
        capture = context.without_forgotten(fetched)
        if self._kind not in EARNING_BY_STEPS:
            context.traps.earn(capture, held, quads=1)
        return capture

    async def _pause(self, wait_ms: int) -> bool:
        """Leave the host alone as long as it asks for; false where its queue is to be given back."""
        if wait_ms > min(LONGEST_PAUSE, self._context.settings.crawl.max_wait) * 1000:
            return False
        held = self._visit.held
        held.blocked_until = self._context.store.now() + wait_ms  # for the next worker, should this one stop
        await asyncio.sleep(wait_ms / 1000)
        held.blocked_until = None
        return True

    def body(self, capture: Capture, most: int) -> bytes:
        return start_of(capture.body, most) if capture.body else b""

    def read(self, capture: Capture) -> Iterator[Finding]:
        # No other answer uses these labels, and every run gives the same ones.
        digest = capture.body.sha256 if capture.body else ""
        source = blake2b(f"{capture.final_url}\n{digest}".encode(), digest_size=8)
        labels = Labels("p" + source.hexdigest())
        for finding in self._context.reader.extractor.findings(capture):
            if isinstance(finding, Quads):
                finding = Quads([labels.quad(quad) for quad in finding.quads])  # noqa: PLW2901
            yield finding

    def step_ends(self) -> None:
        """Delete the last response from disk."""
        if self.last is not None:
            discard(self.last.body)

    def end_step(self, progress: HarvestProgress) -> None:
        """The same; note what the last response was."""
        self.step_ends()
        progress.bytes = self.bytes
        if self.last is not None:
            progress.cut |= self.last.cut & TRAP
            for hop in self.last.hops[-1:]:
                progress.status, progress.address = hop.status, hop.address


def without_records(
    findings: Sequence[Finding], refuse: Callable[[SourceRecord], str | None]
) -> Sequence[Finding]:
    """The findings of a step without what forgotten records say, and no other record of the step."""
    records = [each for found in findings if isinstance(found, SourceRecords) for each in found.records]
    gone = [each for each in records if refuse(each) is not None]
    if not gone:
        return findings
    names = {each.record for each in gone}
    others = (each for each in records if each.record not in names)
    said = {*_statements(gone)}.difference(_statements(others))
    return [_without(finding, names, said) for finding in findings]


def _without(finding: Finding, names: set[str], said: set[Quad]) -> Finding:
    if isinstance(finding, Quads):
        return Quads([quad for quad in finding.quads if quad not in said])
    if isinstance(finding, SourceRecords):
        return SourceRecords([each for each in finding.records if each.record not in names])
    if isinstance(finding, Datasets):
        return Datasets([each for each in finding.datasets if each.record not in names])
    return finding


def _statements(records: Iterable[SourceRecord]) -> list[Quad]:
    """Return the quads that the records map to, record by record."""
    from tamias.features.dcat.datasets.mapping import map_again  # pages do not need it

    return [quad for record in records for quad in map_again(record)]


MOST_PROBLEMS = 20
MOST_PAUSES = 20
"""Times that a harvest is given back for a pause, one after another without a step between them."""
MOST_FAILURES = 50
"""Of one harvest in all; only those since its last step count against the retries of its URL."""
MOST_RENAMED = 1000
DATA = frozenset({"sparql", "ldes"})
"""Kinds that bring data, whose IRIs are followed. A catalogue's harvester names its links itself."""
EARNING_BY_STEPS = frozenset({"sparql"})
"""Kinds whose steps say what they have earned: new words in the answers of an endpoint show nothing."""


class NoHarvest:
    """Give back what takes a harvest: nothing of that is lent to a worker without a database."""

    place: Place = "harvest"

    async def run(self, visit: Visit) -> bool:
        raise NotNow


class HarvestStage:
    """Harvest a source with its installed harvester, and make one document of it."""

    place: Place = "harvest"

    def __init__(self, context: StageContext, store: DatabaseStore, files: ProgressFiles) -> None:
        self._context = context
        self._retries = context.settings.crawl.retries
        self._files = files
        self._extractor = context.reader.extractor
        self._store = store
        self._session = store.thread.session
        self._loop = asyncio.get_running_loop()
        context_of_store = store.context
        self._jobs: JobsHook | None = None
        self._sources = Sources(self._session, context_of_store.frontier, context_of_store.admission)
        self._watcher = self._sources.watcher

    async def run(self, visit: Visit) -> bool:
        count_held = partial(self._store.thread.run, self._held, visit.task.url)
        client = HarvestClient(self._context, visit, count_held)
        job: HarvestJob | None = None
        if (task := visit.task).crawl == WATCH:
            job = await self._store.thread.run(
                begin_job, self._session, task.url, kind_of(task.tags), self._store.now()
            )
            if job is None:
                visit.put_off, visit.due = True, NEVER
                return False
            if self._jobs is None:  # commits of a worker that harvests nothing do without
                self._jobs = JobsHook(self._store.context)
                self._store.hooks.append(self._jobs)
        # Given back between two requests, a harvest would begin its step again.
        visit.held.patience = float("inf")
        try:
            await self._harvest(visit, client, job)
        finally:
            client.step_ends()
        if kind_of(visit.task.tags) == "sparql" and visit.capture.outcome is Outcome.OK:
            self._context.traps.pages.note_endpoint(visit.task.url, visit.held.alike)
            visit.held.alike_changed = True
        return False

    async def _harvest(self, visit: Visit, client: HarvestClient, job: HarvestJob | None) -> None:
        """Harvest to the end, from where an earlier attempt came to.

        Failures count since the last step that was saved, and pauses that the server asked for do not. After
        too many of either, what was found counts, even if the harvest could go on later.
        """
        task, held = visit.task, visit.held
        kind = kind_of(task.tags)
        assert kind is not None
        place = harvest_key(held.lease, task)
        path = self._files.path(place)
        memory: HarvestMemory = await self._store.thread.run(read_harvest, self._session, place)
        # A bookmark of records is worth nothing without the document that was made of them.
        bookmark = memory.bookmark if kind in DATA or memory.document_at is not None else None
        progress = await asyncio.to_thread(self._files.sound, path, memory.progress) or HarvestProgress(
            started_at=self._store.now()
        )
        before, client.bytes = progress.steps, progress.bytes
        if progress.end is None:
            harvest = Harvest(
                url=task.url, kind=kind, state=progress.state, bookmark=bookmark, trusted=TRUSTED in task.tags
            )
            async with aclosing(harvesters()[kind].harvest(harvest, client)) as steps:  # type: ignore[type-var]
                async for step in steps:
                    client.end_step(progress)
                    held.earned += step.earned
                    await run_uncancelled(partial(self._keep, path, place, progress, step, task, kind))
                    if await self._is_over(job, client, progress):
                        break
        if progress.end is None:
            progress.end = HarvestEnd(outcome=Outcome.FAILED, reason="internal error: the harvest has no end")
        if progress.end.changes_only and progress.end.outcome is Outcome.OK:
            progress.end = await run_uncancelled(partial(self._apply, path, progress, task, memory))
        if progress.steps > before + 1:  # the last one is the end
            visit.task, progress.pauses = msgspec.structs.replace(task, fails=0), 0
        await self._conclude(visit, place, progress, progress.end, later=bookmark is not None)
        if job is not None:
            job.requests, job.failed = client.requests, progress.faults
            self._note_job(visit, job, progress.started_at)

    async def _is_over(
        self, job: HarvestJob | None, client: HarvestClient, progress: HarvestProgress
    ) -> bool:
        """Return whether a harvest has ended, by itself or as its user has stopped it meanwhile."""
        if job is not None:
            job.requests, job.failed = client.requests, progress.faults
            state: str = await self._store.thread.run(note_step, self._session, job)
            if state == "removed":
                await self._store.thread.run(self._sources.stop_files, job.url)
            if state != "active" and progress.end is None:
                progress.end = HarvestEnd(outcome=Outcome.SKIPPED, reason=STOPPED)
        return progress.end is not None

    def _note_job(self, visit: Visit, job: HarvestJob, harvest: int) -> None:
        """Write into the visit how a harvest ended, and when the next one is due."""
        capture, now = visit.capture, self._store.now()
        if capture.outcome is Outcome.OK and kind_of(visit.task.tags) == FINDER:
            visit.next_due = NEVER
        elif job.every is not None:
            visit.next_due = now + job.every
        visit.extras.append(JobEnded(job, harvest, capture.outcome.value, capture.reason, now))

    async def _conclude(
        self, visit: Visit, place: HarvestKey, progress: HarvestProgress, end: HarvestEnd, *, later: bool
    ) -> None:
        """Write into the visit what the harvest brought, and whether it goes on later."""
        task, kind = visit.task, kind_of(visit.task.tags)
        assert kind is not None
        pause = end.retry_after_ms if progress.pauses < MOST_PAUSES else None
        if end.retry:
            await self._note_trouble(place, progress, paused=pause is not None)
        may_try = task.fails < self._retries and progress.failures < MOST_FAILURES
        capture = _capture(task, kind, progress, self._store.now(), later=later)
        if pause is None and not may_try:
            capture = msgspec.structs.replace(capture, retry=False)
        stopped = capture.outcome is Outcome.SKIPPED
        no_document = stopped or (end.changes_only and capture.outcome is not Outcome.OK)
        visit.capture = capture
        if capture.retry and pause is not None:
            visit.due = self._store.now() + pause
        visit.found = await self._found(
            self._files.path(place), progress, shelve=not (no_document or capture.retry)
        )
        if not capture.retry:
            unchanged = capture.outcome is Outcome.UNCHANGED
            visit.extras.append(HarvestEnded(place, task.url, progress, unchanged))

    async def _note_trouble(self, place: HarvestKey, progress: HarvestProgress, *, paused: bool) -> None:
        """Save how often a harvest had to stop; what its last step brought is not saved."""
        progress.pauses += paused
        progress.failures += not paused
        saved: HarvestMemory = await self._store.thread.run(read_harvest, self._session, place)
        counted = saved.progress or HarvestProgress(started_at=progress.started_at)
        counted.pauses, counted.failures = progress.pauses, progress.failures
        await self._store.thread.run(save_harvest, self._session, place, counted)

    def _held(self, url: str) -> int:
        return self._session.transact(lambda cursor: count_present(cursor, url))[0]

    def _apply(self, path: Path, progress: HarvestProgress, task: Task, memory: HarvestMemory) -> HarvestEnd:
        """The end of a harvest of changes: the document is written again if there were any. For a thread.

        Whether there were is asked of what is kept, not of the steps: a killed attempt may have kept some.
        """
        end = progress.end
        assert end is not None

        def latest(cursor: Cursor) -> tuple[int, int | None]:
            if end.complete:
                note_whole(cursor, task.url, progress.started_at)
            return count_present(cursor, task.url)

        present, changed_at = self._store.thread.wait(lambda: self._session.transact(latest))
        made_at = memory.document_at
        if made_at is not None and (changed_at or 0) <= made_at and present == memory.document_records:
            return msgspec.structs.replace(
                end, outcome=Outcome.UNCHANGED, reason=f"{end.reason}; nothing changed"
            )
        self._write_again(path, progress, task)
        return end

    def _write_again(self, path: Path, progress: HarvestProgress, task: Task) -> None:
        """The whole document: what the harvest said of the catalogue, then every record that is present."""
        naming, after = self._extractor.harvest_naming(task.url, TRUSTED in task.tags), ""
        while True:
            query = partial(present_records, self._session, task.url, after)
            records, after = self._store.thread.wait(query)
            if not records:
                break
            quads = [_labelled(quad) for quad in _statements(records)]
            progress.quads += len(quads)
            self._files.append(path, progress, naming.nquads(quads))
        progress.quads -= naming.left_out

    def _keep(
        self,
        path: Path,
        place: HarvestKey,
        progress: HarvestProgress,
        step: HarvestStep,
        task: Task,
        kind: str,
    ) -> None:
        """Makes a step durable: links, rows and quads first, then how far it is. For a thread."""
        lines, sent = b"".join(self._taken_in(step, progress, task, kind)), progress.written
        if lines:
            self._files.append(path, progress, lines)
        progress.state = step.state
        progress.steps += 1
        progress.end = step.end
        # An end that is to be retried is not saved, or the next try would find the harvest ended.
        if step.end is None or not step.end.retry:
            self._files.save(path, place, progress, sent)

    def _taken_in(
        self, step: HarvestStep, progress: HarvestProgress, task: Task, kind: str
    ) -> Iterator[bytes]:
        """The N-Quads of a step; all else it found is put where it belongs."""
        naming = self._extractor.harvest_naming(task.url, TRUSTED in task.tags)
        forgotten = self._store.context.admission.forgotten
        for finding in without_records(step.findings, forgotten.refuse_record):
            if isinstance(finding, Quads):
                progress.quads += len(finding.quads)
                yield naming.nquads([_labelled(quad) for quad in finding.quads])
                if kind in DATA:
                    found = [link for link in self._extractor.links_of(finding.quads) if link != task.url]
                    self._put(found, task.url, None, task, progress)
            elif isinstance(finding, Links):
                self._put(finding.references, finding.base, finding.kind, task, progress)
            elif isinstance(finding, SourceRecords):
                keep = partial(_keep_records, task=task, kind=kind, progress=progress, found=finding)
                self._store.thread.wait(partial(self._session.transact, keep))
            elif isinstance(finding, Present | Deleted):
                note = partial(note_listed, portal=task.url, harvest=progress.started_at, found=finding)
                self._store.thread.wait(partial(self._session.transact, note))
            elif isinstance(finding, Datasets):
                self._store.thread.wait(partial(self._note, task, kind, progress, finding))
            elif isinstance(finding, Problem):
                progress.faults += 1
                progress.problems = [*progress.problems, finding.what][:MOST_PROBLEMS]
        progress.quads -= naming.left_out
        progress.renamed.update(list(naming.renamed.items())[: MOST_RENAMED - len(progress.renamed)])

    def _put(
        self, found: Sequence[str], base: str, kind: str | None, task: Task, progress: HarvestProgress
    ) -> None:
        progress.links += len(found)
        if kind_of(task.tags) == FINDER and task.crawl == WATCH:
            hand_over = partial(self._sources.hand_over, task.url, kind, found)
            self._store.thread.wait(hand_over)
        elif found and (task.crawl != WATCH or kind is not None):
            depth = task.depth if task.crawl == WATCH else task.depth + 1
            tags = (TRUSTED,) if task.crawl == WATCH and TRUSTED in task.tags else ()
            tags = (DESCRIBED,) if kind_of(task.tags) == "sparql" and kind is None else tags
            reference = Reference(found, base, depth, task.crawl, kind, tags)
            put = asyncio.run_coroutine_threadsafe(self._store.put_links(reference), self._loop)
            progress.cut |= put.result()

    def _note(self, task: Task, kind: str, progress: HarvestProgress, found: Datasets) -> None:
        """Store the datasets of a catalogue; if it is watched, watch their distributions too."""
        harvest = progress.started_at
        self._session.transact(lambda cursor: describe(cursor, task.url, kind, harvest, found.datasets))
        if task.crawl == WATCH:
            offered = [each for dataset in found.datasets for each in wanted_of(dataset, task.url)]
            self._watcher.add(each for each in offered if is_address(each.url))
        self._store.hints.take(said_by_catalogue(found.datasets))

    async def _found(self, path: Path, progress: HarvestProgress, *, shelve: bool) -> Extraction:
        """Return the results of the harvest, with its quads moved to a segment."""
        found = Extraction(
            media_type=None,
            quads=progress.quads if shelve else 0,
            links=progress.links,
            cut=progress.cut,
            problems=progress.problems,
            bytes=progress.bytes,
            read=progress.end is not None and progress.end.outcome is Outcome.OK,
            renamed_graphs=tuple(progress.renamed.items()),
        )
        if progress.written and shelve:
            async with self._store.quads.one_large_at_a_time:
                found.extent = await run_uncancelled(partial(self._files.shelve, path))
        return found


def harvest_stage(context: StageContext) -> HarvestStage | NoHarvest:
    """Return the stage that harvests; nothing is harvested by a worker without a database."""
    files = hook_of(context.store.hooks, ProgressFiles)
    if files is None or not isinstance(context.store, DatabaseStore):
        return NoHarvest()
    return HarvestStage(context, context.store, files)


def _keep_records(
    cursor: Cursor, task: Task, kind: str, progress: HarvestProgress, found: SourceRecords
) -> None:
    """Store records as they came, before anybody relies on what they say."""
    put_portal(cursor, task.url, kind, progress.started_at)
    keep_records(cursor, task.url, progress.started_at, found.records)


def _labelled(quad: Quad) -> Quad:
    """Return the quad with labelled blank nodes, which mean the same in every step."""
    return rename_blank_nodes(quad, lambda node: BlankNode("w" + node.value))


def _capture(task: Task, kind: str, progress: HarvestProgress, now: int, *, later: bool) -> Capture:
    """The harvest as one attempt.

    What it brought is a document of its own, beside the page that may stand at the same address; one that
    only adds is a document beside those of earlier harvests.
    """
    end = progress.end
    assert end is not None
    since = f"&since={progress.started_at}" if end.adds and later else ""
    hops: tuple[Hop, ...] = ()
    if progress.status and end.outcome is not Outcome.SKIPPED:
        url = f"{task.url}#{kind}{since}"
        hops = (Hop(url=url, status=progress.status, headers=(), address=progress.address),)
    failed_later = progress.quads and end.outcome is Outcome.FAILED
    so_far = f"; {progress.quads:,} statements so far" if failed_later else ""
    return Capture(
        url=task.url,
        started_at=progress.started_at,
        ended_at=now,
        outcome=end.outcome,
        reason=end.reason + so_far,
        hops=hops,
        retry=end.retry,
        retry_after_ms=end.retry_after_ms,
    )
