"""Codes bodies anew, slower than at their capture and smaller: the newest by itself, the others in groups.

New records are written and synced first; then one transaction names them in the rows of all bodies.
What was replaced is freed later (`collect.free_packs`). A killed process leaves the old or the new form.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TypeGuard

import msgspec

from tamias.archive.blobs.blob import Blob, BlobLost, Codec
from tamias.archive.blobs.frames import LEAST_BASE
from tamias.archive.blobs.groups import MOST_MEMBERS
from tamias.archive.blobs.table import SQL, blob_of, columns, digests, hold_packs, read_blobs
from tamias.archive.blobs.writer import BlobWriter
from tamias.database.connect import Cursor, Session
from tamias.model.faults import reached

BODY_BYTES = 32 * 1024 * 1024
"""Larger bodies stay as they are: this bounds the memory."""
GROUP_SHARE = 8
"""A group may be so many times as large as the body that it leans on: so reading one body stays quick."""
LEAST_GROUP = 4 * 1024 * 1024
MOST_GROUP = 48 * 1024 * 1024
LEAST_GAIN = 0.05
"""Of the bytes so far; for less, all stays as it is."""

_Bodies = list[tuple[str, bytes]]


class Recoded(msgspec.Struct, frozen=True):
    """The result of recoding."""

    blobs: int = 0
    before: int = 0
    """Bytes of their records."""
    after: int = 0


class _NotWorth(Exception):
    """The new form is hardly smaller."""


class _NewForm(msgspec.Struct):
    """Records that are written, and the rows that will name them."""

    groups: list[Blob] = []
    blobs: list[Blob] = []

    @property
    def bytes(self) -> int:
        return sum(blob.place.length for blob in (*self.groups, *self.blobs))


def can_recode(blob: Blob | None, *, forced: bool = False) -> TypeGuard[Blob]:
    """Return whether a body is there, and of those that are coded anew; `forced` however large it is."""
    if blob is None or blob.codec in (Codec.CHUNKS, Codec.GROUP):
        return False
    return forced or blob.size <= BODY_BYTES


def recode_versions(
    writer: BlobWriter, session: Session, sha256s: Sequence[str], least_gain: float = LEAST_GAIN
) -> Recoded:
    """Versions of one resource, newest first. Nothing changes if that gains too little.

    Raises `BlobLost` when somebody else moved one of them meanwhile: then nothing has changed.
    """
    return _recode(writer, session, sha256s, least_gain, leaning=True)


def recode_alike(
    writer: BlobWriter, session: Session, sha256s: Sequence[str], least_gain: float = LEAST_GAIN
) -> Recoded:
    """Small bodies that have something in common, such as single versions of files of one host."""
    return _recode(writer, session, sha256s, least_gain, leaning=False)


def recode_without(writer: BlobWriter, session: Session, sha256: str) -> Recoded:
    """Recode all that is decoded with a body or in its group, so that its bytes can be removed.

    Its own row stays, and belongs to nobody else then.
    """
    leaning = _leaning_on(session, [sha256])
    groups = [blob.sha256 for blob in leaning if blob.codec is Codec.GROUP]
    own = read_blobs(session, [sha256]).get(sha256)
    if own is not None and own.codec is Codec.PART and own.base is not None:
        groups.append(own.base)
    found = {blob.sha256 for blob in (*leaning, *_leaning_on(session, groups))} - {sha256, *groups}
    return _recode(writer, session, sorted(found), -math.inf, leaning=True) if found else Recoded()


def _leaning_on(session: Session, sha256s: Sequence[str]) -> list[Blob]:
    rows = session.fetch_all(SQL["leaning"], digests(sha256s))
    return [blob_of(row) for row in rows]


def _recode(
    writer: BlobWriter, session: Session, sha256s: Sequence[str], least_gain: float, *, leaning: bool
) -> Recoded:
    known = read_blobs(session, sha256s)
    forced = least_gain == -math.inf
    old = [blob for sha256 in dict.fromkeys(sha256s) if can_recode(blob := known.get(sha256), forced=forced)]
    if not old:
        return Recoded()
    parents = read_blobs(session, list({blob.base or "" for blob in old if blob.codec is Codec.PART}))
    before = sum(blob.place.length for blob in old) + _share(old, parents)
    try:
        with writer.appender.all_or_nothing():
            new = _written(writer, old, leaning=leaning)
            if new.bytes > (1 - least_gain) * before:
                raise _NotWorth
    except _NotWorth:
        return Recoded()
    writer.sync()
    reached("recoded-synced")
    try:
        session.transact(lambda cursor: _switch(cursor, old, new, list(parents)))
    except BlobLost:
        writer.abandon()
        raise
    reached("recoded-switched")
    writer.settled()
    return Recoded(len(old), before, new.bytes)


def _share(old: Sequence[Blob], parents: dict[str, Blob]) -> int:
    """Return what parts take of the records of their groups."""
    of_group: dict[str, int] = {}
    for blob in old:
        if blob.codec is Codec.PART and blob.base in parents:
            of_group[blob.base] = of_group.get(blob.base, 0) + blob.size
    return sum(
        round(parents[sha256].place.length * min(1.0, size / max(1, parents[sha256].size)))
        for sha256, size in of_group.items()
    )


def _written(writer: BlobWriter, old: Sequence[Blob], *, leaning: bool) -> _NewForm:
    new = _NewForm()
    base = None
    if leaning:
        first, *old = old
        content = writer.reader.read(first.sha256)
        new.blobs.append(writer.write_best(first.sha256, content))
        base = (new.blobs[0], content) if len(content) >= LEAST_BASE else None
    room = min(MOST_GROUP, max(LEAST_GROUP, GROUP_SHARE * len(base[1]))) if base else LEAST_GROUP
    for bodies in _grouped(writer, old, room):
        if len(bodies) == 1:
            new.blobs.append(writer.write_best(*bodies[0], base))
        else:
            group, parts = writer.write_group(bodies, base)
            new.groups.append(group)
            new.blobs += parts
    return new


def _grouped(writer: BlobWriter, blobs: Sequence[Blob], room: int) -> Iterator[_Bodies]:
    bodies: _Bodies = []
    used = 0
    for blob in blobs:
        if bodies and (used + blob.size > room or len(bodies) == MOST_MEMBERS):
            yield bodies
            bodies, used = [], 0
        bodies.append((blob.sha256, writer.reader.read(blob.sha256)))
        used += blob.size
    if bodies:
        yield bodies


def _switch(cursor: Cursor, old: Sequence[Blob], new: _NewForm, parents: Sequence[str]) -> None:
    """Switch all rows or none: a row in its old form could refer to one that now refers to it."""
    hold_packs(cursor, {blob.place.pack for blob in (*new.groups, *new.blobs)})
    held = cursor.execute(SQL["hold_blobs"].text, digests(blob.sha256 for blob in old)).fetchall()
    where = {sha256.hex(): (pack, start) for sha256, pack, start in held}
    if where == {blob.sha256: (blob.place.pack, blob.place.start) for blob in new.blobs}:
        return  # it was committed, and only the answer was lost
    if where != {blob.sha256: (blob.place.pack, blob.place.start) for blob in old}:
        raise BlobLost("a blob was moved or collected while it was coded anew; nothing has changed")
    cursor.execute(SQL["insert_blobs"].text, columns(new.groups))
    cursor.execute(SQL["recode_blobs"].text, columns([*new.groups, *new.blobs]))
    cursor.execute(SQL["move_parts"].text, digests(blob.sha256 for blob in new.groups))
    cursor.execute(SQL["delete_empty_groups"].text, digests(parents))
