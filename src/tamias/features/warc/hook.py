"""Responses in WARC files: on where a crawl names the sink `warc`."""

from collections.abc import Sequence

import msgspec

from tamias.archive.file_store import FileUpload
from tamias.archive.stored_files import StoredFile, commit_files, warc_file
from tamias.archive.tombstones import blocks_mark
from tamias.content.formats import accept_header
from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.commit.segment_pool import OpenFile
from tamias.crawl.plan.fetch_options import user_agent
from tamias.crawl.store.visit import CommitBatch, CommitHook, Visit
from tamias.database.connect import Cursor
from tamias.features.warc.index import WarcExtent, insert_records, newest_bodies
from tamias.features.warc.warc_files import prefix_of
from tamias.features.warc.warc_writer import WarcWriter
from tamias.model.capture import Body, Capture, Request


class WarcHook(CommitHook):
    """Make WARC files durable, and commit how long they are and where each response stands."""

    is_for_every_visit = True
    keeps_responses = True

    def __init__(self, context: CommitContext, kind: str = "") -> None:
        """Write files with names of a kind."""
        folder, settings = context.data / "warc", context.settings
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._writer = WarcWriter(
            folder,
            prefix_of(context.number) + kind,
            agent=user_agent(settings),
            accept=accept_header(),
            robots="obey" if settings.permit.robots else "ignore",
        )
        keeps_all = settings.archive.keep == "all" and not settings.archive.keep_for
        if keeps_all and not kind:
            self._writer.earlier = newest_bodies(context.session)
        self._number = context.number
        self._session = context.session
        self._store = context.segments.store
        self.is_elsewhere = self._store.is_elsewhere
        self._open: dict[str, OpenFile] = {}
        self._durable: list[StoredFile] = []
        self._mark = blocks_mark(context.session)
        """Changes when something is forgotten, which no later record may refer to."""

    def keep_response(self, capture: Capture, request: Request) -> Sequence[WarcExtent]:
        """Write the records of a response."""
        return self._writer.write(capture, request)

    def prepare(self, visits: Sequence[Visit]) -> None:
        """Sync what was written, and send it where there is a store."""
        if (mark := blocks_mark(self._session)) != self._mark:
            self._mark = mark
            self._writer.forget_bodies()
        self._durable = []
        for synced in self._writer.sync():
            file = self._open.get(synced.name)
            if file is None:
                stored = warc_file(synced.name, self._number, in_store=self._store.in_store)
                file = self._open[synced.name] = OpenFile(stored, FileUpload(self._store, stored.key))
            if synced.complete:
                del self._open[synced.name]
            self._durable.append(file.send(synced.path, synced.length, sealed=synced.complete))

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Commit the lengths of files, and index the responses of visits."""
        found = [
            msgspec.structs.replace(
                extent,
                crawl=visit.task.crawl,
                # robots.txt was requested before
                capture=visit.record.id if extent.captured_at == visit.record.started_at else None,
            )
            for visit, extent in batch.extras(WarcExtent)
            if visit.record is not None
        ]
        self.write_records(cursor, found)

    def copy_record(self, member: Body, response: WarcExtent | None) -> WarcExtent | None:
        """Write a record of another crawler as it is."""
        return self._writer.copy(member, response, self._session.now())

    def write_records(self, cursor: Cursor, found: Sequence[WarcExtent]) -> None:
        """Commit the lengths of files, and index responses."""
        commit_files(cursor, self._durable)
        insert_records(cursor, found)

    def close(self) -> None:
        """Complete the last file."""
        self._writer.close()
        self.prepare(())
        self._session.transact(lambda cursor: commit_files(cursor, self._durable))
