"""Attempts as rows: written with the finish that they belong to, read for export and figures."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any
from uuid import UUID

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.lease import Lease, Task
from tamias.model.outcome import Outcome
from tamias.model.record import CaptureRecord, Extent, HopRecord
from tamias.model.signal import Signal

_SQL = statements("tamias.archive", "captures.sql")

Attempt = tuple[Lease, Task, CaptureRecord]


class OutcomeFigures(msgspec.Struct, frozen=True):
    """How many attempts ended in one way, and what they brought."""

    outcome: str
    attempts: int
    quads: int
    bytes: int


class CorpusFigures(msgspec.Struct, frozen=True):
    """The corpus as figures."""

    outcomes: tuple[OutcomeFigures, ...]
    segments: int
    segment_bytes: int


def insert_captures(cursor: Cursor, attempts: Sequence[Attempt]) -> list[Attempt]:
    """Writes attempts, inside the transaction that settles them; returns those that changed a document."""
    changed: list[Attempt] = []
    ordered = sorted(attempts, key=lambda attempt: attempt[0].bucket)
    for bucket, group in groupby(ordered, key=lambda attempt: attempt[0].bucket):
        listed = list(group)
        cursor.execute(_SQL["insert_captures"].text, {"bucket": bucket, **_columns(listed)})
        changed += _replace_current(cursor, bucket, listed)
    return changed


def _replace_current(cursor: Cursor, bucket: int, attempts: list[Attempt]) -> list[Attempt]:
    """What was last read is what a document holds, until it is read again or gone."""
    told = [attempt for attempt in attempts if attempt[2].tells_content]
    read = [attempt for attempt in told if attempt[2].held is not None]
    ended = [attempt for attempt in told if attempt[2].held is None]
    rows: list[tuple[Any, ...]] = []
    for name, group in (("replace_current", read), ("end_current", ended)):
        if group:
            rows += cursor.execute(_SQL[name].text, {"bucket": bucket, **_current_columns(group)}).fetchall()
    changed = {str(row[0]) for row in rows}
    return [attempt for attempt in told if attempt[2].id in changed]


def current_extents(session: Session) -> list[Extent]:
    """Where the quads stand that documents hold now."""
    return _extents(session, "current_extents")


def all_extents(session: Session) -> list[Extent]:
    """Where the quads of every capture stand."""
    return _extents(session, "all_extents")


def all_captures(session: Session) -> Iterator[CaptureRecord]:
    """Every attempt, oldest first, without holding them all."""
    return map(_record, session.rows(_SQL["all_captures"].text))


def corpus_figures(session: Session) -> CorpusFigures:
    """Attempts by outcome, and the size of the segments."""

    def read(cursor: Cursor) -> CorpusFigures:
        rows = cursor.execute(_SQL["corpus_figures"].text).fetchall()
        outcomes = [OutcomeFigures(Outcome(row[0]).word, row[1], row[2] or 0, row[3] or 0) for row in rows]
        segments = cursor.execute(_SQL["segment_figures"].text).fetchone()
        assert segments is not None
        return CorpusFigures(tuple(outcomes), *segments)

    return session.transact(read)


def _extents(session: Session, name: str) -> list[Extent]:
    rows = session.transact(lambda cursor: cursor.execute(_SQL[name].text).fetchall())
    return [Extent(*row) for row in rows]


def _current_columns(attempts: list[Attempt]) -> dict[str, list[Any]]:
    records = [record for _, _, record in attempts]
    extents = [record.held for record in records]
    return {
        "document": [storable(record.final_url) for record in records],
        "qid": [lease.qid for lease, _, _ in attempts],
        "started_at": [record.started_at for record in records],
        "capture": [UUID(record.id) for record in records],
        "segment": [extent.segment if extent else None for extent in extents],
        "frame": [extent.frame if extent else None for extent in extents],
        "start": [extent.start if extent else None for extent in extents],
        "length": [extent.length if extent else None for extent in extents],
        "cut": [record.outcome is not Outcome.OK for record in records],
    }


def _columns(attempts: list[Attempt]) -> dict[str, list[Any]]:
    records = [record for _, _, record in attempts]
    extents = [record.extent for record in records]
    return {
        "capture": [UUID(record.id) for record in records],
        "qid": [lease.qid for lease, _, _ in attempts],
        "crawl": [task.crawl for _, task, _ in attempts],
        "uid": [task.uid for _, task, _ in attempts],
        "started_at": [record.started_at for record in records],
        "ended_at": [record.ended_at for record in records],
        "outcome": [int(record.outcome) for record in records],
        "status": [record.status for record in records],
        "depth": [record.depth for record in records],
        "bytes": [record.bytes for record in records],
        "quads": [record.quads for record in records],
        "links": [record.links for record in records],
        "sha256": [bytes.fromhex(record.sha256) if record.sha256 else None for record in records],
        "segment": [extent.segment if extent else None for extent in extents],
        "frame": [extent.frame if extent else None for extent in extents],
        "start": [extent.start if extent else None for extent in extents],
        "length": [extent.length if extent else None for extent in extents],
        "url": [storable(record.url) for record in records],
        "final_url": [None if each.final_url == each.url else storable(each.final_url) for each in records],
        "told_type": [storable(record.told_type) for record in records],
        "found_type": [record.found_type for record in records],
        "reason": [storable(record.reason) for record in records],
        "hops": [_json(record.hops) for record in records],
        "problems": [_json(map(storable, record.problems)) for record in records],
        "renamed_graphs": [_json(record.renamed_graphs) for record in records],
        "signals": [_json(record.signals) for record in records],
        "worker": [record.worker for record in records],
        "agent": [record.agent for record in records],
        "deferred": [record.deferred or None for record in records],
    }


def _json(values: Iterable[Any]) -> str | None:
    listed = list(values)
    return storable(msgspec.json.encode(listed).decode().replace("\\u0000", "\\ufffd")) if listed else None


def storable(value: str | None) -> str | None:
    """The text as PostgreSQL can hold it: it has no NUL, and servers send anything."""
    if value is None:
        return None
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _record(row: tuple[Any, ...]) -> CaptureRecord:
    (
        capture, crawl, crawl_name, url, started_at, ended_at, outcome, reason, depth, hops, final_url,
        status, told_type, found_type, size, sha256, quads, links, problems, segment, frame, start, length,
        renamed, signals, worker, agent, deferred,
    ) = row  # fmt: skip
    return CaptureRecord(
        id=str(capture),
        crawl=crawl,
        crawl_name=crawl_name,
        url=url,
        started_at=started_at,
        ended_at=ended_at,
        outcome=Outcome(outcome),
        reason=reason,
        depth=depth,
        hops=tuple(msgspec.convert(hops or [], list[HopRecord])),
        final_url=final_url or url,
        status=status,
        told_type=told_type,
        found_type=found_type,
        bytes=size,
        sha256=sha256.hex() if sha256 else None,
        quads=quads,
        links=links,
        problems=tuple(problems or ()),
        extent=None if segment is None else Extent(segment, frame, start, length),
        renamed_graphs=tuple((name, new) for name, new in renamed or ()),
        signals=tuple(msgspec.convert(signals or [], list[Signal])),
        worker=worker,
        agent=agent,
        deferred=bool(deferred),
    )
