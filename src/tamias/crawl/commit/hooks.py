"""Doubt about readings: a document that lost its statements at once stays as it was read before."""

from collections.abc import Sequence

import msgspec

from tamias.archive.captures import HeldBefore, read_held
from tamias.archive.versions.judgement import PAGES, AttemptMeaning, Judgement
from tamias.content.formats import is_rdf
from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.store.hooks import CommitBatch, CommitHook
from tamias.crawl.store.visit import Visit
from tamias.database.connect import Cursor, Session
from tamias.model.capture import CaptureRecord, Outcome
from tamias.model.kind import kind_of
from tamias.sinks.outbox import enqueue, enqueue_metadata, sink_numbers

SHRUNK = 10
"""A page whose size fell below one part of so many, and whose structured data is gone, is suspicious."""
_READ = (Outcome.OK, Outcome.UNCHANGED)


def _may_have_lost(visit: Visit) -> bool:
    """Tell whether a visit read a document again and found a fault, or a page without structured data."""
    record, task = visit.record, visit.task
    if record is None or record.outcome is not Outcome.OK or not record.read or record.sha256 is None:
        return False
    if kind_of(task.tags) is not None or task.reopened or (task.status is Outcome.NEW and not visit.archived):
        return False
    if record.found_type in PAGES:
        return record.quads == 0
    return bool(record.problems) and is_rdf(record.found_type)


class DoubtReadings(CommitHook):
    """Make suspicious what visits read of documents that said more before.

    What stays so is accepted at the next visit; of a watched resource, after the patience of the archive.
    """

    def __init__(self, session: Session, patience_ms: int) -> None:
        self._session = session
        self._patience_ms = patience_ms

    def prepare(self, visits: Sequence[Visit]) -> None:
        """Look up what doubtful documents said before."""
        records = [(each, each.record) for each in visits if each.record and _may_have_lost(each)]
        if not records:
            return
        places = [(each.held.lease.bucket, record.final_url) for each, record in records]
        held = read_held(self._session, places)
        for visit, record in records:
            before = held.get(record.final_url)
            reason = None if before is None else _doubt(record, before)
            if reason is not None and not _is_accepted(visit, record, self._patience_ms):
                _keep_before(visit, record, reason)


def _doubt(record: CaptureRecord, before: HeldBefore) -> str | None:
    if record.found_type in PAGES:
        if (record.bytes or 0) * SHRUNK >= before.bytes:
            return None
        return f"its structured data is gone, and {record.bytes:,} of {before.bytes:,} bytes are left"
    if record.quads >= before.quads:
        return None
    return f"{record.quads:,} statements could be read, {before.quads:,} before: {record.problems[0]}"


def _is_accepted(visit: Visit, record: CaptureRecord, patience_ms: int) -> bool:
    """Tell whether it has been so for long enough to be what the document has become."""
    if visit.archived is None:
        return visit.task.status not in _READ
    since = visit.archived.watched.known.suspicious_since
    return since is not None and record.ended_at - since >= patience_ms


def _keep_before(visit: Visit, record: CaptureRecord, reason: str) -> None:
    task = visit.task
    visit.record = msgspec.structs.replace(
        record, outcome=Outcome.SKIPPED, reason=f"suspect: {reason}", extent=None, read=False, quads=0
    )
    visit.done = msgspec.structs.replace(
        visit.settled, outcome=Outcome.SKIPPED, etag=task.etag, last_modified=task.last_modified
    )
    visit.references = []
    if visit.archived is not None:
        visit.archived.judgement = Judgement(AttemptMeaning.SUSPECT, reason)


class OutboxHook(CommitHook):
    """Enqueue documents and attempts for the sinks that a crawl names."""

    def __init__(self, session: Session, names: tuple[str, ...]) -> None:
        self._session = session
        self._names = names
        self.refresh()

    def refresh(self) -> None:
        """Read the numbers of the sinks again; for the database's thread."""
        self._sinks = sink_numbers(self._session, self._names)
        self.is_for_every_visit = bool(self._sinks)

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Enqueue documents that changed, and every attempt."""
        if self._sinks:
            enqueue(cursor, [(lease.bucket, record) for lease, _, record in batch.changed], self._sinks)
            tried = [(each.held.lease.bucket, each.record) for each in batch.visits if each.record]
            enqueue_metadata(cursor, tried, self._sinks)


def outbox_hook(context: CommitContext) -> OutboxHook | None:
    """Return the hook of a crawl; None if it names no sink."""
    names = context.settings.crawl.sinks
    return OutboxHook(context.session, names) if names else None
