"""Rows that go with a tombstone: versions, captures, profiles, records, and what else holds something of it.

Everything is done in one transaction, and may be done twice: what is found later is removed as well.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from tamias.archive.blobs import BlobDamaged, BlobMissing, BlobReader
from tamias.archive.blobs.packs import PackMissing
from tamias.archive.moved_captures import WantedCaptures, return_captures
from tamias.archive.tombstones import Tombstone
from tamias.database.columns import Digests, Longs, Texts, Uuids
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.features.forgetting.marks import mark_pieces
from tamias.model.capture import Extent

SQL = statements("tamias.features.forgetting", "forgetting.sql")
OTHERS = 8
"""Bodies of the same resource that are looked at, so that a mark is of what is forgotten only."""

T = TypeVar("T")
ReadQuads = Callable[[Extent], Iterator[bytes]]


class CoveredBody(msgspec.Struct, frozen=True):
    """A body that is to be forgotten."""

    number: int | None
    """Of the version; None: a suspicious response."""
    sha256: str
    byte_size: int
    capture: UUID


class CoveredCapture(msgspec.Struct, frozen=True):
    """A capture that has something of it."""

    bucket: int
    capture: UUID
    extent: Extent | None
    qid: int


class CoveredRows(msgspec.Struct, frozen=True):
    """The rows that a tombstone covers and that are still there."""

    bodies: tuple[CoveredBody, ...]
    captures: tuple[CoveredCapture, ...]
    qids: dict[int, list[int]]
    """The queues of its host, by bucket."""

    @property
    def extents(self) -> list[Extent]:
        """Return where its quads stand."""
        return list({each.extent: None for each in self.captures if each.extent is not None})


def find_covered(
    session: Session, tombstone: Tombstone, urls: Sequence[str], hosts: Sequence[str], buckets: int
) -> CoveredRows:
    """Find the rows of a tombstone; `urls` are the spellings of its URL, `hosts` the keys of its queues.

    Captures of it that stand in files become rows again. Of a record: the documents of its catalogue so far,
    which have its statements.
    """
    return_captures(session, WantedCaptures(urls=urls))
    values: dict[str, Any] = {"forgotten": tombstone.forgotten}
    bodies = [CoveredBody(*row) for row in session.fetch_all(SQL["covered_versions"], values)]
    digests = None
    if tombstone.number is not None and not tombstone.is_record:
        noted = session.fetch_all(SQL["bodies"], {"forgotten": [tombstone.forgotten]})
        digests = Digests({each.sha256 for each in bodies} | {row[1] for row in noted})
    captures: list[CoveredCapture] = []
    qids: dict[int, list[int]] = {}
    ids = Uuids([each.capture for each in bodies])
    keys = Digests([sha256(url.encode("utf-8", "replace")).digest()[:16] for url in urls])
    for bucket in range(buckets):
        place: dict[str, Any] = {"bucket": bucket, "capture": ids, "document_key": keys}
        rows = session.fetch_all(SQL["queues_of"], place | {"host": Texts(hosts)})
        qids[bucket] = [row[0] for row in rows]
        place |= {"qid": Longs(qids[bucket]), "url": Texts(urls), "sha256": digests, "at": tombstone.at}
        place |= {"blocked": tombstone.blocked and not tombstone.is_record}
        for capture, segment, frame, start, length, qid in session.fetch_all(SQL["captures_of"], place):
            extent = None if segment is None else Extent(segment, frame, start, length)
            captures.append(CoveredCapture(bucket, capture, extent, qid))
    return CoveredRows(tuple(bodies), tuple(captures), qids)


def note_bodies(
    session: Session,
    tombstone: Tombstone,
    covered: CoveredRows,
    urls: Sequence[str],
    key: bytes,
    bodies: BlobReader,
    read_quads: ReadQuads,
) -> None:
    """Notes digests and marks of what is about to go; of what a rule removes, only digests."""
    noted = {each.sha256: (each.byte_size, b"") for each in covered.bodies}
    if not tombstone.by_rule:
        others = _others(session, tombstone, covered)
        for sha in noted:
            marks = mark_pieces(
                key, _content(bodies, sha), lambda: _joined(partial(_content, bodies), others)
            )
            noted[sha] = noted[sha][0], marks
        # The statements of a record are in the document of its catalogue, which comes again without them.
        quads = _CountedQuads(() if tombstone.is_record else _joined(read_quads, covered.extents))
        left = _other_quads(session, covered, urls)
        marks = mark_pieces(key, quads, lambda: _joined(read_quads, left), lines=True)
        if quads.length:
            noted[quads.digest.hexdigest()] = quads.length, marks
    if noted:
        session.execute(
            SQL["put_bodies"],
            {
                "forgotten": tombstone.forgotten,
                "sha256": Digests(noted),
                "byte_size": Longs([size for size, _ in noted.values()]),
                "marks": [marks for _, marks in noted.values()],
            },
        )


def remove_rows(
    cursor: Cursor, tombstone: Tombstone, covered: CoveredRows, urls: Sequence[str], now: int
) -> None:
    """Takes away all rows that have something of it, after `note_bodies`. Inside one transaction."""
    mine = {"forgotten": tombstone.forgotten}
    extents = covered.extents
    places = {name: Longs([getattr(each, name) for each in extents]) for name in Extent.__struct_fields__}
    cursor.execute(SQL["put_quads"].text, mine | places)
    for bucket in covered.qids:
        ids = Uuids([each.capture for each in covered.captures if each.bucket == bucket])
        there: dict[str, Any] = {"bucket": bucket, "capture": ids}
        cursor.execute(SQL["clean_captures"].text, there)
        cursor.execute(SQL["end_documents"].text, there)
        cursor.execute(SQL["end_deliveries"].text, there | {"now": now})
        cursor.execute(SQL["delete_links"].text, {"bucket": bucket, "url": Texts(urls)})
    if not tombstone.by_rule:
        cursor.execute(SQL["delete_contexts"].text, {"url": Texts(urls)})
        cursor.execute(SQL["delete_records"].text, mine)
        bodies = cursor.execute(SQL["bodies"].text, {"forgotten": [tombstone.forgotten]}).fetchall()
        digests = None if tombstone.number is None else Digests([row[1] for row in bodies])
        values = {"url": Texts(urls), "sha256": digests, "blocked": tombstone.blocked, "at": tombstone.at}
        cursor.execute(SQL["delete_warc_records"].text, values)
    named = {"resource": Texts([tombstone.resource])}
    if tombstone.number is None:
        cursor.execute(SQL["delete_resource"].text, mine)
    elif cursor.execute(SQL["delete_version"].text, mine).fetchall():
        cursor.execute(SQL["tell_of_last"].text, named)
        cursor.execute(SQL["note_words"].text, named)
    shared = cursor.execute(SQL["mark_shared"].text, mine).fetchall()
    gone = Digests([sha for sha, other in shared if other is None])
    cursor.execute(SQL["delete_profiles"].text, {"sha256": gone})


def is_wanted(cursor: Cursor, sha: str) -> bool:
    """Return whether a version or a suspicious response has a body."""
    row = cursor.execute(SQL["is_referenced"].text, {"sha256": bytes.fromhex(sha)}).fetchone()
    return bool(row and row[0])


def _content(bodies: BlobReader, sha: str) -> Iterator[bytes]:
    with suppress(BlobMissing, BlobDamaged, PackMissing):
        yield from bodies.pieces(sha)


class _CountedQuads:
    """Pieces that are given once, with their digest and length."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.digest = sha256()
        self.length = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.digest.update(piece)
            self.length += len(piece)
            yield piece


def _others(session: Session, tombstone: Tombstone, covered: CoveredRows) -> list[str]:
    if tombstone.number is None:
        return []
    values = {
        "resource": tombstone.resource,
        "sha256": Digests([each.sha256 for each in covered.bodies]),
        "number": tombstone.number,
        "limit": OTHERS,
    }
    return [row[0] for row in session.fetch_all(SQL["other_bodies"], values)]


def _other_quads(session: Session, covered: CoveredRows, urls: Sequence[str]) -> list[Extent]:
    found: list[Extent] = []
    ids = Uuids([each.capture for each in covered.captures])
    for bucket, qids in covered.qids.items():
        values = {"bucket": bucket, "qid": Longs(qids), "url": Texts(urls), "capture": ids, "limit": OTHERS}
        found += [Extent(*row) for row in session.fetch_all(SQL["other_extents"], values)]
    return found


def _joined(read: Callable[[T], Iterator[bytes]], places: Iterable[T]) -> Iterator[bytes]:
    return chain.from_iterable(map(read, places))
