"""Attempts as rows, written with the finish that they belong to."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Any, LiteralString
from uuid import UUID

import msgspec
from psycopg import sql

from tamias.archive.moved_captures import WantedCaptures, fetch_captures, moved_sums, read_captures
from tamias.archive.stored_files import segment_figures
from tamias.database.columns import Bools, Ints, Longs, RowSchema, Shorts, Texts, Uuids, packed, storable
from tamias.database.connect import Cursor, Session, read_buckets
from tamias.database.months import partitions
from tamias.database.sql import statements
from tamias.model.capture import CaptureRecord, Extent, Outcome, new_capture_id
from tamias.model.lease import Lease, Task

_ROWS = RowSchema(CaptureRecord, "capture")
_SQL = _ROWS.statements("tamias.archive", "captures.sql")
_SUMS = statements("tamias.archive", "capture_sums.sql")

_SUMMED = ("attempts", "quads", "bytes")
_COUNTING: LiteralString = (
    "SELECT outcome, count(*), coalesce(sum(quads), 0)::int8, coalesce(sum(bytes), 0)::int8"
    " FROM {} GROUP BY outcome"
)
_PERMANENT = (301, 308)
_LATEST = (1 << 48) - 1
_ID_SLACK = 3_600_000

Attempt = tuple[Lease, Task, CaptureRecord]
Passes = Callable[[str], bool]
"""Whether what a capture brought, by its id, may be read on."""


def _anything(_capture: str) -> bool:
    return True


class OutcomeFigures(msgspec.Struct, frozen=True):
    """The number of attempts with one outcome, and what they brought."""

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
    parts: dict[int, list[Attempt]] = {}
    for attempt in attempts:
        parts.setdefault(attempt[0].bucket, []).append(attempt)
    for bucket, listed in sorted(parts.items()):
        cursor.execute(_SQL["insert_captures"].text, _columns(bucket, listed))
        changed += _replace_current(cursor, bucket, listed)
        moved = [moved for attempt in listed for moved in _moved(attempt)]
        if moved and (ended := _replace_current(cursor, bucket, moved)):
            cursor.execute(_SQL["insert_captures"].text, _columns(bucket, ended))
            changed += ended
    return changed


def _moved(attempt: Attempt) -> Iterator[Attempt]:
    """Yield the addresses that redirects led away from as gone: what they held before is current no more.

    A redirect that was not followed counts if it is permanent; its target has visits of its own.
    """
    lease, task, record = attempt
    if record.outcome is not Outcome.OK:
        return
    followed = record.read or record.extent is not None
    for hop in record.hops:
        if hop.location and (hop.url != record.final_url if followed else hop.status in _PERMANENT):
            gone = CaptureRecord(
                id=str(new_capture_id(record.started_at)),
                crawl=record.crawl,
                url=hop.url,
                started_at=record.started_at,
                ended_at=record.ended_at,
                outcome=Outcome.GONE,
                reason=f"{hop.status}: redirects to {hop.location}",
                depth=record.depth,
                hops=(hop,),
                final_url=hop.url,
                status=hop.status,
                worker=record.worker,
                agent=record.agent,
            )
            yield lease, task, gone


def known_captures(session: Session, attempts: Sequence[Attempt], crawls: Sequence[int]) -> set[int]:
    """The places of those that are there already: the same address, time and body in one of some crawls."""
    values = {
        "place": Ints(range(len(attempts))),
        "bucket": Shorts([lease.bucket for lease, _, _ in attempts]),
        "qid": Longs([lease.qid for lease, _, _ in attempts]),
        "uid": Longs([task.uid for _, task, _ in attempts]),
        "crawl": list(crawls),
        **_ROWS.parameters([record for _, _, record in attempts], "started_at", "sha256"),
    }
    wanted = WantedCaptures(queues=sorted({lease.qid for lease, _, _ in attempts}))
    return {place for (place,) in fetch_captures(session, _SQL["known_captures"], values, wanted)}


def _replace_current(cursor: Cursor, bucket: int, attempts: list[Attempt]) -> list[Attempt]:
    """Replace the current content of documents by what was last read."""
    groups: dict[str, list[Attempt]] = {"replace_current": [], "end_current": []}
    for attempt in attempts:
        if attempt[2].tells_content:
            groups["end_current" if attempt[2].held is None else "replace_current"].append(attempt)
    changed: set[str] = set()
    for name, group in groups.items():
        if group:
            rows = cursor.execute(_SQL[name].text, _document_columns(bucket, group)).fetchall()
            changed.update(map(str, map(itemgetter(0), rows)))
    return [attempt for attempt in attempts if attempt[2].id in changed]


class HeldBefore(msgspec.Struct, frozen=True):
    """The figures of a document by the last whole reading of it."""

    quads: int
    bytes: int


def read_held(session: Session, documents: Sequence[tuple[int, str]]) -> dict[str, HeldBefore]:
    """Read what some documents hold, by their addresses; each is named with the bucket it is visited in."""
    columns = {
        "bucket": Shorts([bucket for bucket, _ in documents]),
        "document": Texts([document for _, document in documents]),
    }
    return {row[0]: HeldBefore(row[1], row[2]) for row in session.fetch_all(_SQL["read_held"], columns)}


def current_extents(session: Session, since: int = 0, passes: Passes = _anything) -> list[Extent]:
    """Return where the quads stand that documents hold now; of documents that were read since a time.

    Only those of captures that `passes` lets through.
    """
    return _extents(session.fetch_all(_SQL["current_extents"], {"since": since}), passes)


def all_extents(session: Session, since: int = 0, passes: Passes = _anything) -> list[Extent]:
    """Return where the quads of every capture stand."""
    return _extents(_since(session, "all_extents", since), passes)


class HeldDocument(msgspec.Struct, frozen=True):
    """A document, and where the quads stand that it held at a time."""

    extent: Extent
    document: str
    read_at: int
    capture: str


def documents_at(session: Session, moment: int, *, at_once: bool = False) -> Iterator[HeldDocument]:
    """The documents that held quads at a time, in the order of the segments.

    They are not all held in memory, or asked for `at_once`, which is faster where they are few.
    """
    read = fetch_captures if at_once else read_captures
    for *extent, document, read_at, capture in read(session, _SQL["documents_at"], {"at": moment}):
        yield HeldDocument(Extent(*extent), document, read_at, capture)


class DocumentState(msgspec.Struct, frozen=True):
    """Content of a document from a time on, until its next state."""

    read_at: int
    capture: str
    extent: Extent | None
    """None where it held no quads, or was gone."""


def document_states(session: Session, document: str) -> list[DocumentState]:
    """Return all states of one document, oldest first, by the rules of `documents_at`."""
    states: list[DocumentState] = []
    shown: Extent | None = None
    whole: Extent | None = None
    body = None
    is_read = False
    for *place, capture, read_at, outcome, sha256 in fetch_captures(
        session, _SQL["readings_of"], {"document": document}
    ):
        extent = Extent(*place) if place[0] is not None else None
        is_whole = outcome in (Outcome.OK, Outcome.GONE)
        if extent is None and outcome != Outcome.GONE and is_read and sha256 == body and sha256 is not None:
            continue  # the same body was not read again
        if outcome == Outcome.OK and extent is not None:
            is_read, body = True, sha256
        if is_whole:
            whole = None if outcome == Outcome.GONE else extent
        held = extent if not is_whole and whole is None else whole
        if shown != held:
            states.append(DocumentState(read_at, capture, held))
            shown = held
    return states


def all_captures(session: Session, since: int = 0) -> Iterator[CaptureRecord]:
    """Yield every attempt since a time, oldest first, without holding them all."""
    return map(_record, _since(session, "all_captures", since))


def some_captures(session: Session, bucket: int, ids: Sequence[UUID]) -> list[CaptureRecord]:
    """Attempts of a bucket by their ids, oldest first."""
    values = {"bucket": bucket, "ids": Uuids(ids)}
    rows = fetch_captures(session, _SQL["some_captures"], values, WantedCaptures(ids=ids))
    return [_record(row) for row in rows]


def named_captures(session: Session, ids: Sequence[str]) -> list[CaptureRecord]:
    """Attempts by their ids, in no order; those that are known."""
    wanted = WantedCaptures(ids=[UUID(each) for each in ids])
    return [
        _record(row) for row in fetch_captures(session, _SQL["named_captures"], {"ids": Uuids(ids)}, wanted)
    ]


def captures_of_crawl(session: Session, crawl: int) -> frozenset[str]:
    """Return the ids of the attempts of a crawl that brought quads."""
    rows = fetch_captures(session, _SQL["captures_of_crawl"], {"crawl": crawl})
    return frozenset(capture for (capture,) in rows)


def count_buckets(session: Session) -> int:
    """Return the number of buckets of the frontier, by which captures are divided."""
    return session.transact(read_buckets)


class CaptureFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of attempts; empty, it lets all pass."""

    capture: str | None = None
    since: int = 0
    until: int = _LATEST
    """By the times when they started, both included."""
    iri: str | None = None
    """Of the URL that was requested, as `address_iri` writes it."""
    outcome: Outcome | None = None
    crawl: str | None = None


def matching_captures(
    session: Session, query: CaptureFilter, buckets: int, limit: int, seconds_left: Callable[[], float]
) -> Iterator[CaptureRecord]:
    """The attempts that fit, so many of a bucket at most, in no order. Raises `TimeoutError`."""
    first, last = (UUID(query.capture),) * 2 if query.capture else _ids_between(query.since, query.until)
    words = {
        "first": first,
        "last": last,
        "since": query.since,
        "until": query.until,
        "iri": storable(query.iri),
        "beginning": storable(query.iri.partition("%")[0]) if query.iri and "%" in query.iri else None,
        "outcome": query.outcome,
        "crawl": storable(query.crawl),
    }
    for bucket in range(buckets):
        words |= {"bucket": bucket, "limit": limit}
        wanted = WantedCaptures(first=first, last=last)
        rows = read_captures(session, _SQL["matching_captures"], words, wanted, seconds=seconds_left())
        yield from map(_record, rows)


def _ids_between(since: int, until: int) -> tuple[UUID, UUID]:
    """Ids of attempts that started then; an id may have been made somewhat earlier or later."""
    low, high = max(0, since - _ID_SLACK), max(0, min(_LATEST, until + _ID_SLACK))
    return UUID(int=low << 80), UUID(int=high << 80 | (1 << 80) - 1)


def corpus_figures(session: Session) -> CorpusFigures:
    """Attempts by outcome, and the size of the segments. Months that are over are counted once."""
    now = session.now()

    def read(cursor: Cursor) -> CorpusFigures:
        sums: Counter[tuple[int, str]] = Counter()
        for outcome, *counts in _sums(cursor, now):
            sums.update({(outcome, name): n for name, n in zip(_SUMMED, counts, strict=True)})
        outcomes = [
            OutcomeFigures(Outcome(each).word, *(sums[each, name] for name in _SUMMED))
            for each in sorted({outcome for outcome, _ in sums})
        ]
        return CorpusFigures(tuple(outcomes), *segment_figures(cursor))

    return session.transact(read)


def _sums(cursor: Cursor, now: int) -> Iterator[tuple[int, ...]]:
    """Return the sums by outcome, one partition after another."""
    known: dict[tuple[str, int], list[tuple[int, ...]]] = defaultdict(list)
    for part, written, *row in cursor.execute(_SUMS["known_sums"].text).fetchall():
        known[part, written].append(tuple(row))
    for each in partitions(cursor, now):
        found = known.get((each.name, each.written)) if each.written is not None else None
        if found is None:
            counting = sql.SQL(_COUNTING).format(sql.Identifier("tamias", each.name))
            found = cursor.execute(counting).fetchall()
            if each.written is not None:
                _keep_sums(cursor, each.name, each.written, found)
        yield from found
    yield from moved_sums(cursor, known)


def _keep_sums(cursor: Cursor, part: str, written: int, rows: list[tuple[int, ...]]) -> None:
    cursor.execute(_SUMS["forget_sums"].text, {"part": part})
    for outcome, *counts in rows:
        row = {"part": part, "written": written, "outcome": outcome}
        cursor.execute(_SUMS["keep_sum"].text, {**row, **dict(zip(_SUMMED, counts, strict=True))})


def _extents(rows: Iterable[tuple[Any, ...]], passes: Passes) -> list[Extent]:
    return [Extent(*extent) for *extent, capture in rows if passes(capture)]


def _since(session: Session, name: str, since: int) -> Iterator[tuple[Any, ...]]:
    """The rows of a statement about attempts since a time."""
    first, _ = _ids_between(since, _LATEST)
    return read_captures(session, _SQL[name], {"since": since}, WantedCaptures(first=first))


def _document_columns(bucket: int, attempts: list[Attempt]) -> dict[str, Any]:
    leases, _, records = zip(*attempts, strict=True)
    return {
        "bucket": bucket,
        **_ROWS.parameters(records, "capture", "started_at", "segment", "frame", "start", "length"),
        **packed(
            {"document": Texts, "qid": Longs, "cut": Bools},
            (
                list(map(attrgetter("final_url"), records)),
                list(map(attrgetter("qid"), leases)),
                [record.outcome is not Outcome.OK for record in records],
            ),
        ),
    }


def _columns(bucket: int, attempts: list[Attempt]) -> dict[str, Any]:
    leases, tasks, records = zip(*attempts, strict=True)
    return {
        "bucket": bucket,
        **_ROWS.parameters(records),
        **packed(
            {"qid": Longs, "uid": Longs, "final_url": Texts},
            (
                list(map(attrgetter("qid"), leases)),
                list(map(attrgetter("uid"), tasks)),
                [None if record.final_url == record.url else record.final_url for record in records],
            ),
        ),
    }


def _record(row: tuple[Any, ...]) -> CaptureRecord:
    crawl_name, url, *columns = row
    return _ROWS.decode(columns, crawl_name=crawl_name, final_url=url)
