"""Takes bodies out for good: what is decoded with them is coded anew, then their rows go, then their bytes.

It can be killed at any moment and repeated: what is still to be overwritten is in the table `erasing`.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

import msgspec

from tamias.archive.blobs.blob import BlobLost, BlobRecord, Codec, scan
from tamias.archive.blobs.chunking import listed
from tamias.archive.blobs.collect import empty_pack, recover, remove_pack
from tamias.archive.blobs.frames import PayloadError
from tamias.archive.blobs.groups import members
from tamias.archive.blobs.packs import Pack, Packs
from tamias.archive.blobs.table import SQL, blob_of, read_blobs
from tamias.archive.blobs.writer import BlobWriter
from tamias.database.connect import Cursor, Session
from tamias.features.forgetting.rows import is_wanted
from tamias.features.repack.recode import recode_without
from tamias.model.errors import TamiasError
from tamias.model.faults import reached

_TRIES = 20


class Forgetting(msgspec.Struct, kw_only=True):
    """The result of a run."""

    tombstones: int = 0
    """That were under way."""
    finished: int = 0
    bodies: int = 0
    recoded: int = 0
    """Other bodies that were coded anew because they leaned on a forgotten one."""
    record_bytes: int = 0
    segments: int = 0
    """In which quads were erased."""
    warc_records: int = 0
    shared: list[str] = []
    """Bodies that stay because another resource has them: the URL of one."""
    not_stored: list[str] = []
    """URLs of which nothing was stored, such as misspelt ones."""
    remains: list[str] = []
    """What is left for a later run, and why."""


def take_out(writer: BlobWriter, session: Session, sha256: str, done: Forgetting) -> None:
    """Takes the rows of a body away, unless somebody has it; its bytes are erased by `erase_records`."""
    blob = read_blobs(session, [sha256]).get(sha256)
    if blob is None:
        return
    chunks: list[str] = []
    if blob.codec is Codec.CHUNKS and blob.base is not None:
        chunks = [blob.base, *_own_chunks(writer, session, sha256, blob.base)]
    for each in (sha256, *chunks):
        _take_out_one(writer, session, each, done)


def _own_chunks(writer: BlobWriter, session: Session, sha256: str, listing: str) -> list[str]:
    """Chunks that no other body has."""
    rows = [blob_of(row) for row in session.fetch_all(SQL["blobs_in_chunks"])]
    lists = {each.base for each in rows if each.sha256 != sha256 and each.base is not None}
    if listing in lists:
        return []
    others = {chunk for each in lists for chunk in listed(writer.reader.read(each))}
    return [chunk for chunk in dict.fromkeys(listed(writer.reader.read(listing))) if chunk not in others]


def _take_out_one(writer: BlobWriter, session: Session, sha256: str, done: Forgetting) -> None:
    """A crawl may lean something new on it meanwhile."""
    for _ in range(_TRIES):
        try:
            done.recoded += recode_without(writer, session, sha256).blobs
        except BlobLost:
            continue  # somebody moved one of them
        outcome = session.transact(lambda cursor: _delete(cursor, sha256))
        reached("forget-taken-out")
        if outcome is None:
            continue
        done.bodies += outcome
        writer.reader.cache.forget(sha256)
        return
    raise TamiasError(f"blob {sha256} is needed by others all the time; run 'tamias forget --finish' later")


def _delete(cursor: Cursor, sha256: str) -> bool | None:
    """Return whether it is gone; None when something was coded with it meanwhile."""
    values = {"sha256": bytes.fromhex(sha256)}
    # The lock waits for whoever relies on it; the statements after it see what they committed.
    cursor.execute(SQL["hold_blobs"].text, {"sha256": [values["sha256"]]})
    if is_wanted(cursor, sha256) or _value(cursor.execute(SQL["is_in_chunks"].text, values)):
        return False
    if _value(cursor.execute(SQL["needs_of"].text, values)):
        return None
    cursor.execute(SQL["note_erasing"].text, values)
    taken = cursor.execute(SQL["take_out"].text, values).fetchall()
    for codec, base in taken:
        if codec == Codec.PART:
            _delete_group(cursor, base)
    return bool(taken)


def _delete_group(cursor: Cursor, sha256: bytes) -> None:
    """A group goes with the last of its parts: the others are somewhere else by now."""
    values = {"sha256": sha256}
    cursor.execute(SQL["hold_blobs"].text, {"sha256": [sha256]})
    if not _value(cursor.execute(SQL["needs_of"].text, values)):
        cursor.execute(SQL["note_erasing"].text, values)
        cursor.execute(SQL["take_out"].text, values)


def _value(cursor: Cursor) -> int:
    row = cursor.fetchone()
    return row[0] if row else 0


def erase_records(writer: BlobWriter, session: Session, sha256s: Sequence[str], done: Forgetting) -> None:
    """Overwrites the records of bodies without a row, also earlier ones, in all packs.

    In a pack that is being written only those are erased that had a row: others may get one yet.
    """
    packs, gone = writer.reader.packs, set(sha256s)
    if packs.is_borrowed:
        done.remains.append(
            "the store is another archive's, of which this is a copy: nothing is removed there"
        )
        return
    writer.close()
    recover(packs, session)
    noted: dict[UUID, dict[int, int]] = {}
    for pack, start, length in session.fetch_all(SQL["erasing"]):
        noted.setdefault(pack, {})[start] = length
    for pack, state, _, used in session.fetch_all(SQL["packs"]):
        found = packs.find(pack)
        if found is None or (used == found.length and pack not in noted):
            continue
        named = _named(session, pack)
        unnamed = list(_unnamed(packs, found, named, gone))
        places = {start: noted[pack][start] for start in noted.get(pack, {}).keys() - named}
        if state == "open" and packs.is_held(pack, 0.0):
            if not places.keys() >= {record.start for record in unnamed}:
                done.remains.append(f"pack {pack} is being written")
        else:
            places |= {record.start: record.length for record in unnamed}
        _erase(writer, session, pack, places, done)
        noted.pop(pack, None)
        reached("forget-erased")
    for pack in noted:
        if packs.find(pack) is None:
            session.execute(SQL["erased"], {"pack": pack})


def _erase(
    writer: BlobWriter, session: Session, pack: UUID, places: dict[int, int], done: Forgetting
) -> None:
    packs = writer.reader.packs
    if places and not all(packs.erase(pack, start, length) for start, length in places.items()):
        if not empty_pack(writer, session, pack):
            done.remains.append(f"pack {pack} cannot be read")
            return
        writer.close()
        remove_pack(packs, session, pack)
    done.record_bytes += sum(places.values())
    session.execute(SQL["erased"], {"pack": pack})


def _holds(packs: Packs, pack: UUID, record: BlobRecord, gone: set[str]) -> bool:
    """Return whether a record is of one of these bodies, or of a group that one of them is in."""
    description = record.description
    if description.sha256 in gone:
        return True
    if description.codec is not Codec.GROUP:
        return False
    payload = packs.read(pack, record.start + record.length - description.payload, description.payload)
    try:
        return any(member.sha256 in gone for member in members(payload))
    except PayloadError:
        return False


def _named(session: Session, pack: UUID) -> set[int]:
    return {blob_of(row).place.start for row in session.fetch_all(SQL["blobs_of_pack"], {"pack": pack})}


def _unnamed(packs: Packs, pack: Pack, named: set[int], gone: set[str]) -> Iterator[BlobRecord]:
    """Yield the records of a pack that hold one of these bodies, and that no row names."""

    def read(start: int, length: int) -> bytes:
        return packs.read(pack.pack, start, max(0, min(length, pack.length - start)))

    for record in scan(read, pack.length):
        if record.start not in named and _holds(packs, pack.pack, record, gone):
            yield record


def left_records(packs: Packs, session: Session, gone: set[str]) -> Iterator[tuple[UUID, BlobRecord]]:
    """Records of bodies without a row that are still in packs: nothing of them should be."""
    for pack in _with_unnamed(packs, session):
        for record in _unnamed(packs, pack, _named(session, pack.pack), gone):
            yield pack.pack, record


def unnamed_ranges(packs: Packs, session: Session) -> Iterator[tuple[UUID, int, int]]:
    """Yield what no row names: packs, and in each where such bytes start and end."""
    for pack in _with_unnamed(packs, session):
        end = 0
        rows = session.fetch_all(SQL["blobs_of_pack"], {"pack": pack.pack})
        for place in (blob_of(row).place for row in rows):
            if place.start > end:
                yield pack.pack, end, place.start
            end = max(end, place.end)
        if pack.length > end:
            yield pack.pack, end, pack.length


def _with_unnamed(packs: Packs, session: Session) -> Iterator[Pack]:
    """Return these bodies and those in packs that have no row."""
    in_use = {pack: used for pack, _, _, used in session.fetch_all(SQL["packs"])}
    for found in packs.all():
        if in_use.get(found.pack, 0) != found.length:
            yield found
