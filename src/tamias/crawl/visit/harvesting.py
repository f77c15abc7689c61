"""Runs harvesters: many polite requests for one address, saved step by step, committed as one document."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from functools import cache, partial
from pathlib import Path

import msgspec
from pyoxigraph import BlankNode, Quad

from tamias.archive.sources.catalogues import (
    count_present,
    note_harvested,
    note_listed,
    note_whole,
    put_portal,
)
from tamias.archive.sources.harvests import (
    HarvestKey,
    HarvestMemory,
    HarvestProgress,
    end_harvest,
    harvest_key,
    read_harvest,
    save_harvest,
)
from tamias.archive.sources.source_records import keep_records, present_records
from tamias.content.blank_labels import rename_blank_nodes
from tamias.crawl.analysing.extractor import Extraction, Extractor
from tamias.crawl.plan.admit import Reference
from tamias.crawl.revisit.change_hints import describe, said_by_catalogue
from tamias.crawl.revisit.watching import Watcher, wanted_of
from tamias.crawl.store.held_lease import HeldLease
from tamias.crawl.store.visit import Visit
from tamias.crawl.visit.forgotten_records import without_records
from tamias.crawl.visit.harvest_client import HarvestClient
from tamias.crawl.visit.progress_files import ProgressFiles
from tamias.database.connect import Cursor
from tamias.database.threads import run_uncancelled
from tamias.frontier.service.state import WATCH
from tamias.model.capture import Capture, Hop, Outcome
from tamias.model.cut import TRAP
from tamias.model.finding import (
    Datasets,
    Deleted,
    Harvest,
    HarvestEnd,
    HarvestStep,
    Links,
    Present,
    Problem,
    Quads,
    SourceRecords,
)
from tamias.model.item import DESCRIBED, TRUSTED
from tamias.model.kind import CONTEXT, DUMP, PROBE, ROBOTS, SITEMAP, kind_of
from tamias.model.lease import Task
from tamias.model.url import is_address
from tamias.plugins import load_all
from tamias.protocols import Harvester

_log = logging.getLogger(__name__)
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


ONE_REQUEST = frozenset({SITEMAP, PROBE, CONTEXT, ROBOTS, DUMP})
"""Kinds of addresses that are asked for once, as a page is."""


class HarvestRunner:
    """Runs the installed harvesters."""

    def __init__(
        self,
        extractor: Extractor,
        files: ProgressFiles,
    ) -> None:
        store = files.store
        self._files = files
        self._extractor = extractor
        self._store = store
        self._session = store.thread.session
        self._loop = asyncio.get_running_loop()
        self._watcher = Watcher(self._session, store.context.frontier, store.context.admission)

    async def harvest(
        self, kind: str, task: Task, held: HeldLease, client: HarvestClient, *, retries: int
    ) -> Visit:
        """Harvests to the end, from where an earlier attempt came to.

        Failures count since the last step that was saved, and pauses that the server asked for do not. After
        too many of either, what was had counts, even if the harvest could go on later.
        """
        place = harvest_key(held.lease, task)
        path = self._files.path(place)
        memory: HarvestMemory = await self._store.thread.run(read_harvest, self._session, place)
        # A bookmark of records is worth nothing without the document that was made of them.
        bookmark = memory.bookmark if kind in DATA or memory.document_at is not None else None
        progress = await asyncio.to_thread(self._files.sound, path, memory.progress) or HarvestProgress(
            started_at=self._store.now()
        )
        trusted = TRUSTED in task.tags
        client.count_held = partial(self._store.thread.run, self._held, task.url)
        before = progress.steps
        if progress.end is None:
            harvest = Harvest(
                url=task.url, kind=kind, state=progress.state, bookmark=bookmark, trusted=trusted
            )
            async with aclosing(harvesters()[kind].harvest(harvest, client)) as steps:  # type: ignore[type-var]
                async for step in steps:
                    client.step_ends()
                    held.earned += step.earned
                    progress.bytes += client.bytes_since()
                    if client.last is not None and client.last.hops:
                        hop = client.last.hops[-1]
                        progress.status, progress.address = hop.status, hop.address
                    if client.last is not None:
                        progress.cut |= client.last.cut & TRAP
                    await run_uncancelled(partial(self._keep, path, place, progress, step, task, kind))
                    if step.end is not None:
                        break
        if progress.end is None:
            progress.end = HarvestEnd(outcome=Outcome.FAILED, reason="internal error: the harvest has no end")
        if progress.end.changes_only and progress.end.outcome is Outcome.OK:
            progress.end = await run_uncancelled(partial(self._apply, path, progress, task, memory))
        if progress.steps > before + 1:  # the last one is the end
            task, progress.pauses = msgspec.structs.replace(task, fails=0), 0
        pause = progress.end.retry_after_ms if progress.pauses < MOST_PAUSES else None
        if progress.end.retry:
            await self._note_trouble(place, progress, paused=pause is not None)
        may_go_on = pause is not None or (task.fails < retries and progress.failures < MOST_FAILURES)
        capture = _capture(task, kind, progress, self._store.now(), later=bookmark is not None)
        if not may_go_on:
            capture = msgspec.structs.replace(capture, retry=False)
        no_document = progress.end.changes_only and capture.outcome is not Outcome.OK
        visit = Visit(task, held, capture)
        if capture.retry and pause is not None:
            visit.due = self._store.now() + pause
        visit.found = await self._found(path, progress, shelve=not (no_document or capture.retry))
        if not capture.retry:
            unchanged = capture.outcome is Outcome.UNCHANGED
            visit.also.append(
                partial(_end, place=place, url=task.url, progress=progress, unchanged=unchanged)
            )
            visit.afterwards = partial(self._files.clear, path, progress)
        return visit

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
        from tamias.harvesters.portals.mappings import map_again

        naming, after = self._extractor.harvest_naming(task.url, TRUSTED in task.tags), ""
        while True:
            query = partial(present_records, self._session, task.url, after)
            records, after = self._store.thread.wait(query)
            if not records:
                break
            quads = [_labelled(quad) for record in records for quad in map_again(record)]
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
        lines, sent = b"".join(self._taken_in(step, progress, task, kind)), progress.kept
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
                self._store.thread.wait(partial(self._keep_records, task, kind, progress, finding))
            elif isinstance(finding, Present | Deleted):
                note = partial(note_listed, portal=task.url, harvest=progress.started_at, found=finding)
                self._store.thread.wait(partial(self._session.transact, note))
            elif isinstance(finding, Datasets):
                self._store.thread.wait(partial(self._note, task, kind, progress, finding))
            elif isinstance(finding, Problem) and len(progress.problems) < MOST_PROBLEMS:
                progress.problems.append(finding.what)
        progress.quads -= naming.left_out
        progress.renamed.update(list(naming.renamed.items())[: MOST_RENAMED - len(progress.renamed)])

    def _put(
        self, found: Sequence[str], base: str, kind: str | None, task: Task, progress: HarvestProgress
    ) -> None:
        progress.links += len(found)
        if found and (task.crawl != WATCH or kind is not None):
            depth = task.depth if task.crawl == WATCH else task.depth + 1
            tags = (TRUSTED,) if task.crawl == WATCH and TRUSTED in task.tags else ()
            tags = (DESCRIBED,) if kind_of(task.tags) == "sparql" and kind is None else tags
            reference = Reference(found, base, depth, task.crawl, kind, tags)
            put = asyncio.run_coroutine_threadsafe(self._store.put_links(reference), self._loop)
            progress.cut |= put.result()

    def _note(self, task: Task, kind: str, progress: HarvestProgress, found: Datasets) -> None:
        """What a catalogue describes is noted; if the catalogue is under watch, so is what it offers."""
        harvest = progress.started_at
        self._session.transact(lambda cursor: describe(cursor, task.url, kind, harvest, found.datasets))
        if task.crawl == WATCH:
            offered = [each for dataset in found.datasets for each in wanted_of(dataset, task.url)]
            self._watcher.add(each for each in offered if is_address(each.url))
        self._store.hints.take(said_by_catalogue(found.datasets))

    def _keep_records(self, task: Task, kind: str, progress: HarvestProgress, found: SourceRecords) -> None:
        """The records as they came, before anybody relies on what they say."""

        def keep(cursor: Cursor) -> None:
            put_portal(cursor, task.url, kind, progress.started_at)
            keep_records(cursor, task.url, progress.started_at, found.records)

        self._session.transact(keep)

    async def _found(self, path: Path, progress: HarvestProgress, *, shelve: bool) -> Extraction:
        """What the harvest brought, its quads now in a segment."""
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
        if progress.kept and shelve:
            async with self._store.quads.one_large_at_a_time:
                found.extent = await run_uncancelled(partial(self._files.shelve, path))
        return found


def _end(cursor: Cursor, place: HarvestKey, url: str, progress: HarvestProgress, *, unchanged: bool) -> None:
    """Inside the transaction that commits the harvest."""
    end, started_at = progress.end, progress.started_at
    assert end is not None
    if end.complete:
        note_whole(cursor, url, started_at)
    elif end.changes_only:
        note_harvested(cursor, url, started_at)
    of_records = end.changes_only or end.bookmark is not None
    document_at = started_at if of_records else None
    end_harvest(cursor, place, end.bookmark, url=url, document_at=document_at, unchanged=unchanged)


def is_harvested(kind: str) -> bool:
    """Whether an address of a kind takes a harvest. The harvesters are loaded for the first that may."""
    return kind not in ONE_REQUEST and kind in harvesters()


@cache
def harvesters() -> dict[str, Harvester]:
    """The harvester of each kind of address that an installed part can open."""
    made: list[Harvester] = [part() for part in load_all("harvesters").values()]
    return {kind: harvester for harvester in made for kind in harvester.kinds}


def _labelled(quad: Quad) -> Quad:
    """With labels that do not look as if nobody had given them: they mean the same in every step."""
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
    if progress.status:
        url = f"{task.url}#{kind}{since}"
        hops = (Hop(url=url, status=progress.status, headers=(), address=progress.address),)
    came = f"; {progress.quads:,} statements so far" if end.outcome is Outcome.FAILED else ""
    return Capture(
        url=task.url,
        started_at=progress.started_at,
        ended_at=now,
        outcome=end.outcome,
        reason=end.reason + came,
        hops=hops,
        retry=end.retry,
        retry_after_ms=end.retry_after_ms,
    )
