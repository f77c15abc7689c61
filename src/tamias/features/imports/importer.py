"""Commits the captures of other crawlers as documents and versions, some at a time, without a request.

Each batch is one transaction, and what is there already is passed over: an import can be killed and repeated.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import msgspec

from tamias.archive.blobs import BlobWriter, Prepared, insert_blobs
from tamias.archive.blobs.store import packs_of
from tamias.archive.captures import Attempt, insert_captures, known_captures
from tamias.archive.moments import shown
from tamias.archive.stored_files import StoredFile, commit_files
from tamias.archive.tombstones import Tombstone, tombstones_of
from tamias.archive.versions.resources import put_resources, read_watched
from tamias.content.containers.documents import discard
from tamias.content.formats import type_with_charset
from tamias.crawl.analysis.analysers import ROUNDS, ContextCache
from tamias.crawl.analysis.extractor import Extraction, Extractor, Wanting, is_small
from tamias.crawl.commit.database_store import DatabaseStore, worker_number
from tamias.crawl.plan.admit import Admission
from tamias.crawl.plan.policy import CRAWL
from tamias.crawl.sandbox.pool import SandboxPool, Turn
from tamias.crawl.visit.reader import is_plain, is_read_at_once
from tamias.database.connect import Cursor, Database
from tamias.database.disk import alone
from tamias.database.threads import run_uncancelled
from tamias.features.archive.canonical.content_digest import Stored, content_digest, fingerprint_of
from tamias.features.imports.captures import (
    CaptureReader,
    ImportedCapture,
    ImportedRecord,
    capture_key,
)
from tamias.features.imports.inputs import WarcInput, warc_inputs
from tamias.features.imports.merge import SQL, LateVersions, VisitedUrl, merge_late
from tamias.features.imports.record_copier import RecordCopier, RecordCopies
from tamias.frontier.keys import bucket_of, hash64, host_hash
from tamias.frontier.service import make_crawl
from tamias.model.capture import CaptureRecord, Outcome, capture_id_of
from tamias.model.document import NotAtOnce
from tamias.model.errors import TamiasError
from tamias.model.faults import reached
from tamias.model.item import WATCH
from tamias.model.lease import Lease, Task
from tamias.model.resource import Resource, Version, resource_id
from tamias.model.url import host
from tamias.permit.signals import signals_of
from tamias.settings import Settings
from tamias.sinks.outbox import enqueue, enqueue_metadata, sink_numbers

_log = logging.getLogger(__name__)

MOST_AT_ONCE = 500
BYTES_AT_ONCE = 32 << 20
"""Of bodies that are held in memory, or wait in files, until they are committed."""
MOST_PROBLEMS = 100
"""That are told one by one; the others are counted."""
WORKER = "import"


class ImportProblem(msgspec.Struct, frozen=True):
    """A problem of an import, and where it is."""

    file: str
    offset: int
    problem: str


class ImportResult(msgspec.Struct, kw_only=True):
    """The result of an import."""

    files: int = 0
    records: int = 0
    """New ones, of any kind, kept as they are."""
    known_records: int = 0
    captures: int = 0
    """New ones."""
    known: int = 0
    """That were there already."""
    excluded: int = 0
    """By filters or block lists."""
    forgotten: int = 0
    """That tombstones keep out."""
    documents: int = 0
    """That hold something else now."""
    versions: int = 0
    """New ones of watched resources."""
    outcomes: dict[str, int] = msgspec.field(default_factory=dict)
    bytes: int = 0
    """Of the bodies, as they were decoded."""
    file_bytes: int = 0
    """Of the files."""
    seconds: float = 0.0
    not_taken: list[str] = msgspec.field(default_factory=list)
    """Files of a folder or a WACZ of which nothing was read, each with the reason."""
    problems: int = 0
    shown: list[ImportProblem] = msgspec.field(default_factory=list, name="told")
    """The first problems."""

    def tell(self, file: str, offset: int, problem: str) -> None:
        """Add a problem."""
        self.problems += 1
        if len(self.shown) < MOST_PROBLEMS:
            self.shown.append(ImportProblem(file, offset, problem))


class _Imported(msgspec.Struct):
    """A capture on its way."""

    item: ImportedCapture
    lease: Lease
    task: Task
    record: CaptureRecord
    resource: str
    found: Extraction = msgspec.field(default_factory=Extraction)
    body: Version | None = None
    prepared: Prepared | None = None

    @property
    def is_damaged(self) -> bool:
        """Return whether it has a body that is known not to be what the server sent."""
        return self.record.outcome is Outcome.SKIPPED

    @property
    def attempt(self) -> Attempt:
        """Return the attempt as it is committed."""
        return self.lease, self.task, self.record


async def import_captures(
    database: Database,
    data: Path,
    settings: Settings,
    paths: Sequence[Path],
    *,
    crawl: str = "",
    archive: bool,
) -> ImportResult:
    """Imports what stands in files; with `archive` every body becomes a version, not only watched ones.

    Raises `UsageError` for a path that is nothing to import.
    """
    with alone(data / "import.lock", math.inf):
        importer = CaptureImporter(database, data, settings, crawl, archive=archive)
        await importer.open()
        try:
            await importer.run(paths)
        finally:
            await importer.close()
    return importer.result


class CaptureImporter:
    """Reads files and commits what stands in them."""

    def __init__(
        self, database: Database, data: Path, settings: Settings, crawl: str, *, archive: bool
    ) -> None:
        self.result = ImportResult()
        self._settings = settings
        self._admission = Admission(settings, ())
        self._archive = archive
        self._store = DatabaseStore(database, data, self._admission, number=worker_number(database))
        session = self._store.thread.session
        self._queues = make_crawl(session, crawl)
        self._crawls = tuple(sorted({CRAWL, WATCH, self._queues.crawl}))
        self._buckets = self._store.context.frontier.buckets
        self._packs = packs_of(session, data, settings.archive.patience)
        self._writer = BlobWriter(self._packs, session)
        self._contexts = ContextCache()
        self._extractor = Extractor(settings, self._contexts)
        self._sandboxes = SandboxPool(settings, self._contexts) if settings.sandbox.use != "never" else None
        self.spool = data / "spool" / str(self._store.number)  # as a worker's, so that it is cleaned up
        self._copier = RecordCopier(self._store, self._admission)

    async def open(self) -> None:
        """Makes everything ready."""
        self.spool.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._packs.probe()
        await self._store.open()

    async def close(self) -> None:
        """Lets go of everything."""
        if self._sandboxes is not None:
            self._sandboxes.close()
        await self._store.thread.run(self._copier.close)
        await self._store.thread.run(self._writer.close)
        await self._store.close()
        for left in self.spool.glob("*"):
            left.unlink()
        self.spool.rmdir()

    async def run(self, paths: Sequence[Path]) -> None:
        """Imports all files."""
        begun = time.monotonic()
        await self._store.thread.run(self._copier.cut_files)
        max_bytes = self._settings.fetch.max_bytes
        reader = CaptureReader(str(self.spool), max_bytes, self._store.now(), self.result.tell)
        report = partial(self.result.tell, "", 0)
        leave = self.result.not_taken.append
        inputs = [
            each for path in paths for each in warc_inputs(path, report, leave, self._store.data.absolute())
        ]
        postponed: list[WarcInput] = []
        for source in inputs:
            if not await self._import(source, reader):
                self.result.not_taken.append(f"{source.name}: no record could be read")
            self.result.files += 1
            self.result.file_bytes += source.size
            if reader.has_postponed:
                postponed.append(source)
            self.result.seconds = time.monotonic() - begun
        for source in postponed:
            await self._import(source, reader, postponed=True)

    async def _import(self, source: WarcInput, reader: CaptureReader, *, postponed: bool = False) -> bool:
        """Import a file; return whether there was a record."""
        is_read = False
        with closing(_batches(reader.records(source, postponed=postponed))) as batches:
            while (batch := await run_uncancelled(partial(next, batches, None))) is not None:
                await self.take(source.name, [each.capture for each in batch if each.capture], batch)
                is_read = True
        return is_read

    async def take(
        self, name: str, captures: Sequence[ImportedCapture], records: Sequence[ImportedRecord] = ()
    ) -> None:
        """Commit captures from a place of this name with their records, and delete what is spooled."""
        try:
            await self._take(name, captures, records)
        finally:
            for each in captures:
                discard(each.capture.body)
            for record in records:
                discard(record.member)

    async def standing(self, url: str) -> tuple[str | None, set[int]]:
        """Return why captures of a URL are not taken, if so, and the times of those that are there."""
        return await self._store.thread.run(self._standing, url)

    def _standing(self, url: str) -> tuple[str | None, set[int]]:
        session = self._store.thread.session
        self._admission.forgotten.refresh(session, now=True)
        lease, uid = self._place(url, self._admission.key(url))
        values = {"bucket": lease.bucket, "qid": lease.qid, "uid": uid, "worker": WORKER}
        known = session.fetch_all(SQL["imported_times"], values)
        return self._admission.refusal(url, 0), {at for (at,) in known}

    async def _take(
        self, name: str, captures: Sequence[ImportedCapture], records: Sequence[ImportedRecord]
    ) -> None:
        wanted = [self._imported(each) for each in captures if self._admits(each)]
        wanted = await self._store.thread.run(self._without_forgotten, wanted)
        taken = {id(each.item): each.record.id for each in wanted}
        copied = await self._store.thread.run(self._copier.choose, records, taken)
        known = await self._store.thread.run(
            known_captures, self._store.thread.session, [each.attempt for each in wanted], self._crawls
        )
        new = list({each.record.id: each for at, each in enumerate(wanted) if at not in known}.values())
        self.result.known += len(wanted) - len(new)
        await asyncio.gather(*(self._read(each) for each in new))
        for each in new:
            for problem in each.item.problems:
                self.result.tell(name, each.item.offset, problem)
        await self._store.thread.run(self._commit, new, copied)

    def _admits(self, item: ImportedCapture) -> bool:
        refusal = self._admission.refusal(item.capture.url, 0)
        self.result.excluded += refusal is not None
        return refusal is None

    def _without_forgotten(self, wanted: list[_Imported]) -> list[_Imported]:
        """Leave out what a tombstone covers by its URL, its time or its body."""
        session, forgotten = self._store.thread.session, self._admission.forgotten
        forgotten.refresh(session, now=True)
        of_resource: dict[str, list[Tombstone]] = {}
        for tombstone in tombstones_of(session, [each.resource for each in wanted]):
            of_resource.setdefault(tombstone.resource, []).append(tombstone)
        left = [
            each
            for each in wanted
            if forgotten.without_body(each.item.capture) is each.item.capture
            and not any(
                known.covers(0, each.record.started_at) for known in of_resource.get(each.resource, ())
            )
        ]
        self.result.forgotten += len(wanted) - len(left)
        return left

    def _imported(self, item: ImportedCapture) -> _Imported:
        capture = item.capture
        key = self._admission.key(capture.url)
        lease, uid = self._place(capture.url, key)
        task = Task(uid=uid, url=capture.url, crawl=self._queues.crawl, depth=0, score=0.0)
        record = shown(
            CaptureRecord,
            capture,
            id=str(capture_id_of(capture.started_at, capture_key(capture))),
            crawl=self._queues.crawl,
            depth=0,
            final_url=capture.url,
            bytes=capture.body.size if capture.body else None,
            sha256=capture.body.sha256 if capture.body else None,
            problems=tuple(item.problems),
            worker=WORKER,
            agent=item.agent,
        )
        return _Imported(item, lease, task, record, resource_id(key))

    def _place(self, url: str, key: str) -> tuple[Lease, int]:
        """Return the queue of a URL, and its number there."""
        queue = self._queues.host(self._admission.queue(url))
        qid = host_hash(queue)
        bucket = bucket_of(qid, self._buckets)
        lease = Lease(host=queue, qid=qid, bucket=bucket, token=0, ends_at=0, delay_ms=0, tasks=())
        return lease, hash64(key)

    async def _read(self, each: _Imported) -> None:
        """Read the body as a crawl does; contexts only where they are at hand.

        A body that is damaged is not read: it must not replace what an intact one said.
        """
        capture, body = each.item.capture, each.item.capture.body
        if body is not None and not each.is_damaged:
            try:
                each.found = await self._extract_in_contexts(each)
            except (TamiasError, OSError):
                raise
            except Exception as error:  # noqa: BLE001 (a fault of ours is that of one capture, as in a crawl)
                _log.exception("import of %s", capture.url)
                each.found = Extraction(limit=f"internal error: {type(error).__name__}: {error}")
        found = each.found
        headers = capture.hops[-1].headers
        outcome, reason = each.record.outcome, each.record.reason
        if found.limit is not None:
            outcome, reason = Outcome.FAILED, f"{found.limit}; {reason}"
        each.record = msgspec.structs.replace(
            each.record,
            outcome=outcome,
            reason=reason,
            found_type=found.media_type,
            read=found.read,
            quads=found.quads,
            links=found.links,
            problems=(*each.record.problems, *found.problems),
            extent=found.extent,
            renamed_graphs=found.renamed_graphs,
            signals=signals_of(headers, found.metas, (), url=capture.url),
        )

    async def _extract_in_contexts(self, each: _Imported) -> Extraction:
        for _ in range(ROUNDS):
            try:
                return await self._extract(each)
            except Wanting as wanting:
                held = await self._store.read_contexts(wanting.addresses, 0)
                for address in wanting.addresses:
                    self._contexts.put(address, held.get(address))
        return Extraction(limit=f"its contexts name each other more than {ROUNDS} times")

    async def _extract(self, each: _Imported) -> Extraction:
        capture, body = each.item.capture, each.item.capture.body
        assert body is not None
        quads = self._store.quads
        if is_small(body) if self._sandboxes is None else self._is_harmless(each):
            with suppress(NotAtOnce):
                return self._extractor.extract(
                    capture, body, quads.small_document, _follow_nothing, at_once=True
                )
        if self._sandboxes is None:
            async with quads.one_large_at_a_time:
                return await asyncio.to_thread(
                    self._extractor.extract, capture, body, quads.large_document, _follow_nothing
                )
        turn = Turn(each.lease.host, body.size, not is_plain(body))
        return await self._sandboxes.read(
            turn,
            lambda sandbox, _given_up: sandbox.extract(
                capture, body, quads.large_document, _follow_nothing, None
            ),
        )

    def _is_harmless(self, each: _Imported) -> bool:
        assert self._sandboxes is not None
        assert each.item.capture.body is not None
        return not self._sandboxes.takes_all and is_read_at_once(each.item.capture, each.item.capture.body)

    def _commit(self, new: list[_Imported], copied: Sequence[ImportedRecord]) -> None:
        """Bytes first, then one transaction; for the database's thread."""
        copies = self._copier.copy(copied)
        late = self._versions(new)
        self._store.quads.reserve()
        durable = self._store.quads.sync()
        self._writer.sync()
        session = self._store.thread.session
        sinks = sink_numbers(session)

        try:
            documents, versions = session.transact(
                lambda cursor: self._write(cursor, new, late, durable, sinks, copies)
            )
        finally:
            self._writer.settled()
        self.result.records += len(copied)
        self.result.known_records = self._copier.known
        self.result.captures += len(new)
        self.result.documents += documents
        self.result.versions += versions
        self.result.bytes += sum(each.record.bytes or 0 for each in new)
        outcomes = Counter(self.result.outcomes)
        outcomes.update(each.record.outcome.word for each in new)
        self.result.outcomes = dict(outcomes)

    def _write(
        self,
        cursor: Cursor,
        new: list[_Imported],
        late: list[LateVersions],
        durable: Sequence[StoredFile],
        sinks: Sequence[int],
        copies: RecordCopies,
    ) -> tuple[int, int]:
        self._copier.write(cursor, copies)
        attempts = [each.attempt for each in new]
        changed = insert_captures(cursor, attempts)
        enqueue(cursor, [(lease.bucket, record) for lease, _, record in changed], sinks)
        enqueue_metadata(cursor, [(lease.bucket, record) for lease, _, record in attempts], sinks)
        commit_files(cursor, durable)
        insert_blobs(cursor, [each.prepared for each in new if each.prepared is not None])
        if self._archive:
            resources = {each.resource: each for each in new if each.body is not None}
            put_resources(
                cursor,
                [
                    (Resource(id=name, url=each.task.url, added_at=self._store.now()), host(each.task.url))
                    for name, each in resources.items()
                ],
                self._store.now(),
            )
        versions = merge_late(cursor, late)
        reached("captures-imported")
        return len(changed), versions

    def _versions(self, new: list[_Imported]) -> list[LateVersions]:
        """The bodies of resources whose versions are kept, written and to be put into their histories."""
        bodies = [
            each
            for each in new
            if each.item.capture.body and (each.record.outcome is Outcome.OK or each.is_damaged)
        ]
        watched, _ = read_watched(self._store.thread.session, {each.resource for each in bodies}, ())
        chosen = [each for each in bodies if self._archive or each.resource in watched]
        late = self._late_versions(chosen, {name: each.known.sha256 for name, each in watched.items()})
        for each in new:
            if each.body is None:  # headers are kept where a version is
                hops = tuple(msgspec.structs.replace(hop, headers=()) for hop in each.record.hops)
                each.record = msgspec.structs.replace(each.record, hops=hops)
        return list(late.values())

    def _late_versions(
        self, chosen: Sequence[_Imported], stored: Mapping[str, str | None]
    ) -> dict[str, LateVersions]:
        """Write the bodies, each as a difference to the one before, or to what is `stored`."""
        chains = self._writer.chains(
            (body, stored.get(each.resource))
            for each in chosen
            if (body := each.item.capture.body) is not None
        )
        late: dict[str, LateVersions] = {}
        for each in sorted(chosen, key=lambda one: one.record.started_at):
            body = each.item.capture.body
            assert body is not None
            before = late[each.resource].bodies[-1].sha256 if each.resource in late else None
            like = before or stored.get(each.resource)
            each.prepared = self._writer.prepare(body, like, chains if before is None else None)
            each.body = self._version(each)
            url = VisitedUrl(each.lease.bucket, each.lease.qid, each.task.uid, self._crawls)
            late.setdefault(each.resource, LateVersions(each.resource, url, [])).bodies.append(each.body)
        return late

    def _version(self, each: _Imported) -> Version:
        capture, body, record = each.item.capture, each.item.capture.body, each.record
        assert body is not None
        media_type = self._extractor.found_type(capture)
        source = Path(body.path) if body.path is not None else body.data or b""
        typed = type_with_charset(media_type, record.declared_type)
        content = content_digest(Stored(source=source, media_type=typed, base=capture.url))
        return Version(
            resource=each.resource,
            captured_at=record.started_at,
            sha256=body.sha256,
            byte_size=body.size,
            media_type=media_type,
            declared_type=record.declared_type,
            fingerprint=fingerprint_of(content),
            items=content.items if content else None,
            noise=None,
            suspicious=record.reason if each.is_damaged else None,
            capture=record.id,
        )


def _batches(records: Iterable[ImportedRecord]) -> Generator[list[ImportedRecord], None, None]:
    batch: list[ImportedRecord] = []
    size = 0
    for each in records:
        batch.append(each)
        bodies = each.member, each.capture.capture.body if each.capture else None
        size += sum(body.size for body in bodies if body is not None)
        if len(batch) >= MOST_AT_ONCE or size >= BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _follow_nothing(_references: Sequence[str], _base: str, _kind: str | None) -> None:
    """An import makes no request, now or later."""
