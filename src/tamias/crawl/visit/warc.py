"""Responses in WARC files: on where a crawl names the sink `warc`."""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from tamias.archive.file_store import FileUpload
from tamias.archive.moments import first_millisecond
from tamias.archive.stored_files import StoredFile, commit_files, warc_file
from tamias.archive.warc_index import insert_records, unindexed_files
from tamias.content.formats import accept_header
from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.commit.recover import warc_prefix
from tamias.crawl.commit.segment_pool import OpenFile
from tamias.crawl.plan.fetch_options import user_agent
from tamias.crawl.store.hooks import CommitBatch, CommitHook, hook_of
from tamias.crawl.store.visit import Visit
from tamias.crawl.visit.stages import Place, StageContext, request_for
from tamias.database.connect import Cursor, Session
from tamias.model.errors import UsageError
from tamias.model.warc import WarcExtent
from tamias.sinks.warc.cdxj import CdxjFields, entries
from tamias.sinks.warc.warc_files import WarcPart, warc_parts
from tamias.sinks.warc.warc_writer import OPEN, WarcWriter


class WarcHook(CommitHook):
    """Make WARC files durable, and commit how long they are and where each response stands."""

    is_for_every_visit = True

    def __init__(self, context: CommitContext) -> None:
        folder, settings = context.data / "warc", context.settings
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.writer = WarcWriter(
            folder,
            warc_prefix(context.number),
            agent=user_agent(settings),
            accept=accept_header(),
            robots="obey" if settings.permit.robots else "ignore",
        )
        self._number = context.number
        self._session = context.session
        self._store = context.segments.store
        self.is_elsewhere = self._store.is_elsewhere
        self._open: dict[str, OpenFile] = {}
        self._durable: list[StoredFile] = []

    def prepare(self, visits: Sequence[Visit]) -> None:
        """Sync what was written, and send it where there is a store."""
        self._durable = []
        for synced in self.writer.sync():
            file = self._open.get(synced.name)
            if file is None:
                stored = warc_file(synced.name, self._number, in_store=self._store.in_store)
                file = self._open[synced.name] = OpenFile(stored, FileUpload(self._store, stored.key))
            if synced.complete:
                del self._open[synced.name]
            self._durable.append(file.send(synced.path, synced.length, sealed=synced.complete))

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Commit the lengths of files, and index the responses of visits."""
        commit_files(cursor, self._durable)
        found = [
            msgspec.structs.replace(extent, crawl=visit.task.crawl, capture=visit.record.id)
            for visit, extent in batch.extras(WarcExtent)
            if visit.record is not None
        ]
        insert_records(cursor, found)

    def close(self) -> None:
        """Complete the last file."""
        self.writer.close()
        self.prepare(())
        self._session.transact(lambda cursor: commit_files(cursor, self._durable))


class WarcStage:
    """Write the responses of a visit to a WARC file, before they are read."""

    place: Place = "response"

    def __init__(self, writer: WarcWriter) -> None:
        self._writer = writer

    async def run(self, visit: Visit) -> bool:
        visit.extras += await asyncio.to_thread(self._writer.write, visit.capture, request_for(visit.task))
        return True


def warc_stage(context: StageContext) -> WarcStage | None:
    """Return the stage; None if the hook is off."""
    hook = hook_of(context.store.hooks, WarcHook)
    return WarcStage(hook.writer) if hook is not None else None


def warc_hook(context: CommitContext) -> WarcHook | None:
    """Return the hook of a crawl; None if it does not name the sink."""
    return WarcHook(context) if "warc" in context.settings.crawl.sinks else None


AT_ONCE = 5000
_REVISIT = "warc/revisit"


def index_warcs(session: Session, folder: Path) -> int:
    """Indexes complete files of which no record is known; returns how many. May be done twice."""
    parts = {part.name: part for part in warc_parts(folder) if not part.path.name.endswith(OPEN)}
    wanted = unindexed_files(session, list(parts)) if parts else []
    for name in wanted:
        # One transaction: a file of which some records are known counts as indexed.
        session.transact(partial(_index, part=parts[name]))
    return len(wanted)


def _index(cursor: Cursor, part: WarcPart) -> None:
    extents = _extents(part)
    while some := list(islice(extents, AT_ONCE)):
        insert_records(cursor, some)


def _extents(part: WarcPart) -> Iterator[WarcExtent]:
    for stamp, entry in entries(part.index):
        try:
            yield _extent(stamp, entry)
        except (ValueError, UsageError):  # a line that is damaged; `tamias check` tells
            continue


def _extent(stamp: str, entry: CdxjFields) -> WarcExtent:
    return WarcExtent(
        file=entry.filename,
        position=int(entry.offset),
        length=int(entry.length),
        url=entry.url,
        captured_at=first_millisecond(stamp),
        status=int(entry.status or 0),
        sha256=entry.digest.partition(":")[2] or None,
        revisit=entry.mime == _REVISIT,
        declared_type=None if entry.mime == _REVISIT else entry.mime or None,
    )
