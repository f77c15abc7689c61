"""Doubt about readings: a document that lost its statements at once stays as it was read before."""

from collections.abc import Sequence

import msgspec

from tamias.archive.captures import HeldBefore, read_held
from tamias.archive.versions.judgement import PAGES, AttemptMeaning, Judgement
from tamias.content.formats import is_rdf
from tamias.crawl.revisit.archiver import Archiver
from tamias.crawl.store.visit import Visit
from tamias.database.connect import Session
from tamias.model.capture import CaptureRecord, Outcome
from tamias.model.kind import kind_of

SHRUNK = 10
"""A page whose size fell below one part of so many, and whose structured data is gone, is suspicious."""
_READ = (Outcome.OK, Outcome.UNCHANGED)


def may_have_lost(visit: Visit) -> bool:
    """Tell whether a visit read a document again and found a fault, or a page without structured data."""
    record, task = visit.record, visit.task
    if record is None or record.outcome is not Outcome.OK or not record.read or record.sha256 is None:
        return False
    if kind_of(task.tags) is not None or task.status is Outcome.NEW or task.reopened:
        return False
    if record.found_type in PAGES:
        return record.quads == 0
    return bool(record.problems) and is_rdf(record.found_type)


def doubt_readings(session: Session, visits: Sequence[Visit], archiver: Archiver | None) -> None:
    """Make suspicious what visits read of documents that said more before.

    What stays so is accepted at the next visit; of a watched resource, after the patience of the archive.
    """
    patience_ms = archiver.patience_ms if archiver is not None else None
    records = [(each, each.record) for each in visits if each.record is not None]
    held = read_held(session, [(each.held.lease.bucket, record.final_url) for each, record in records])
    for visit, record in records:
        before = held.get(record.final_url)
        reason = None if before is None else _doubt(record, before)
        if reason is not None and not _is_accepted(visit, record, patience_ms):
            _keep_before(visit, record, reason)


def _doubt(record: CaptureRecord, before: HeldBefore) -> str | None:
    if record.found_type in PAGES:
        if (record.bytes or 0) * SHRUNK >= before.bytes:
            return None
        return f"its structured data is gone, and {record.bytes:,} of {before.bytes:,} bytes are left"
    if record.quads >= before.quads:
        return None
    return f"{record.quads:,} statements could be read, {before.quads:,} before: {record.problems[0]}"


def _is_accepted(visit: Visit, record: CaptureRecord, patience_ms: int | None) -> bool:
    """Tell whether it has been so for long enough to be what the document has become."""
    if visit.archived is None:
        return visit.task.status not in _READ
    since = visit.archived.watched.known.suspicious_since
    return patience_ms is not None and since is not None and record.ended_at - since >= patience_ms


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
