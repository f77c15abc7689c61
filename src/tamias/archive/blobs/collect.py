"""Frees what nobody needs: tails of packs whose writer died, blobs without a reference, packs half empty."""

import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from uuid import UUID

import msgspec

from tamias.archive.blobs.blob import Blob, BlobPlace, Codec
from tamias.archive.blobs.chunking import listed
from tamias.archive.blobs.packs import PackMissing, Packs
from tamias.archive.blobs.reader import BlobReader
from tamias.archive.blobs.table import SQL, blob_of, digests, hold_packs
from tamias.archive.blobs.writer import BlobWriter
from tamias.database.connect import Cursor, Session

GRACE_SECONDS = 24 * 3600.0
"""A blob without a reference is kept for so long after somebody last relied on it."""
LEAST_USED = 0.5
"""Of a pack's bytes; one with fewer in use is rewritten."""
LEAST_USED_AFTER_REPACK = 0.8
_AT_ONCE = 10_000
_log = logging.getLogger(__name__)


class FreedSpace(msgspec.Struct, kw_only=True):
    """The space that was freed."""

    packs_cut: int = 0
    packs_removed: int = 0
    packs_rewritten: int = 0
    blobs: int = 0
    bytes: int = 0


class _PackRow(msgspec.Struct, frozen=True):
    pack: UUID
    state: str
    age: float
    used: int


def collect(
    writer: BlobWriter, session: Session, referenced: Iterable[str], grace: float = GRACE_SECONDS
) -> FreedSpace:
    """Frees all that can be reached from none of the digests given. Others may read and write meanwhile.

    `session` is another one than the writer's.
    """
    done = recover(writer.reader.packs, session)
    done.blobs = _delete_unreferenced(writer.reader, session, referenced, grace)
    free_packs(writer, session, done)
    return done


def free_packs(
    writer: BlobWriter, session: Session, done: FreedSpace, least_used: float = LEAST_USED
) -> None:
    """Removes packs that no row names, and rewrites those of which too little is in use."""
    packs = writer.reader.packs
    if packs.is_borrowed:
        _log.warning("no packs are freed: the store is another archive's, of which this is a copy")
        return
    for row in _pack_rows(session):
        found = packs.find(row.pack) if row.state == "sealed" else None
        if found is None:
            continue
        if not row.used:
            done.packs_removed += remove_pack(packs, session, row.pack)
        elif row.used < least_used * found.length and empty_pack(writer, session, row.pack):
            done.packs_rewritten += remove_pack(packs, session, row.pack)
        else:
            continue
        done.bytes += found.length - row.used


def recover(packs: Packs, session: Session) -> FreedSpace:
    """Puts right what dead writers left: their packs are cut to what rows name, and sealed.

    Any process may call it at any time.
    """
    done = FreedSpace()
    for row in _pack_rows(session):
        if packs.is_borrowed and not row.used:
            continue
        if row.state == "gone":
            done.packs_removed += remove_pack(packs, session, row.pack)
        elif row.state == "open" and not packs.is_held(row.pack, row.age):
            _seal_and_cut(packs, session, row.pack, done)
    return done


def _seal_and_cut(packs: Packs, session: Session, pack: UUID, done: FreedSpace) -> None:
    found = packs.find(pack)

    def seal(cursor: Cursor) -> int:
        # The lock waits for a commit that a writer sent before it died; then its rows are seen.
        cursor.execute(SQL["lock_pack"].text, {"pack": pack})
        used = _number(cursor.execute(SQL["used_length"].text, {"pack": pack}))
        state = "sealed" if used else "gone"
        cursor.execute(SQL["set_pack_state"].text, {"pack": pack, "state": state})
        return used

    used = session.transact(seal)
    if not used:
        done.packs_removed += remove_pack(packs, session, pack)
        done.bytes += found.length if found else 0
    elif found and found.length > used:
        packs.cut(pack, used)
        done.packs_cut += 1
        done.bytes += found.length - used


def remove_pack(packs: Packs, session: Session, pack: UUID) -> int:
    """Removes a pack that no row names. First it is marked, so that a crash cannot leave it forgotten."""

    def mark(cursor: Cursor) -> bool:
        cursor.execute(SQL["lock_pack"].text, {"pack": pack})
        if _number(cursor.execute(SQL["used_length"].text, {"pack": pack})):
            return False
        cursor.execute(SQL["set_pack_state"].text, {"pack": pack, "state": "gone"})
        return True

    if not session.transact(mark):
        return 0
    packs.remove(pack)
    session.execute(SQL["forget_pack"], {"pack": pack})
    return 1


def empty_pack(writer: BlobWriter, session: Session, pack: UUID) -> bool:
    """Copies what is in use to a pack of ours. Leaves all as it is when something cannot be read."""
    rows = session.fetch_all(SQL["blobs_of_pack"], {"pack": pack})
    blobs = [blob_of(row) for row in rows]
    try:
        places = [writer.appender.append([writer.reader.packs.read(*_of(blob.place))]) for blob in blobs]
    except PackMissing:
        return False
    writer.sync()
    session.transact(lambda cursor: _move(cursor, blobs, places))
    writer.settled()
    return True


def _of(place: BlobPlace) -> tuple[UUID, int, int]:
    return place.pack, place.start, place.length


def _move(cursor: Cursor, blobs: list[Blob], places: list[BlobPlace]) -> None:
    hold_packs(cursor, {place.pack for place in places})
    cursor.executemany(
        SQL["move_blob"].text,
        [
            {
                "sha256": bytes.fromhex(blob.sha256),
                "old_pack": blob.place.pack,
                "old_start": blob.place.start,
                "pack": place.pack,
                "start": place.start,
            }
            for blob, place in zip(blobs, places, strict=True)
        ],
    )
    cursor.execute(
        SQL["move_parts"].text, digests(blob.sha256 for blob in blobs if blob.codec is Codec.GROUP)
    )


def _delete_unreferenced(
    reader: BlobReader, session: Session, referenced: Iterable[str], grace: float
) -> int:
    """Delete in one transaction, in which every statement sees what others have committed until then."""
    wanted = list(referenced)

    def delete(cursor: Cursor) -> int:
        cursor.execute(SQL["make_wanted"].text)
        _want(cursor, wanted)
        # First bodies in chunks: a chunk goes only after all bodies that it is part of.
        deleted = _deleted(cursor, "delete_unwanted_in_chunks", grace)
        for (listing,) in cursor.execute(SQL["lists_of_chunks"].text).fetchall():
            _want(cursor, listed(reader.read(listing.hex())))
        return deleted + _deleted(cursor, "delete_unwanted", grace)

    return session.transact(delete)


def _deleted(cursor: Cursor, name: str, grace: float) -> int:
    """Deletes until nothing is found: a base can go only after all that is decoded with it."""
    deleted = 0
    while some := len(cursor.execute(SQL[name].text, {"grace": grace}).fetchall()):
        deleted += some
    return deleted


def _want(cursor: Cursor, sha256s: Iterable[str]) -> None:
    for some in _batches(iter(sha256s)):
        cursor.execute(SQL["want"].text, digests(some))


def _batches(sha256s: Iterator[str]) -> Iterator[list[str]]:
    while some := list(islice(sha256s, _AT_ONCE)):
        yield some


def _pack_rows(session: Session) -> list[_PackRow]:
    return [_PackRow(*row) for row in session.fetch_all(SQL["packs"])]


def _number(cursor: Cursor) -> int:
    row = cursor.fetchone()
    return int(row[0]) if row else 0
