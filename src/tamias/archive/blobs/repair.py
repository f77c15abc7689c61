"""Mends what can be mended: rows are made anew from packs, broken records from sound copies."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from tamias.archive.blobs.blob import Blob, BlobDamaged, BlobMissing, BlobPlace, Codec
from tamias.archive.blobs.check import Damage
from tamias.archive.blobs.packs import Pack, PackMissing
from tamias.archive.blobs.records import scan
from tamias.archive.blobs.table import SQL, columns, needed_by
from tamias.archive.blobs.writer import BlobWriter

_AT_ONCE = 5000

Elsewhere = Callable[[str], bytes | None]
"""Asked for the body of a digest; None if it is not to be had. What it gives is checked."""


class Repaired(msgspec.Struct, frozen=True):
    """A damage, and whether it is mended."""

    damage: Damage
    mended: bool


def repair(
    writer: BlobWriter, damages: Iterable[Damage], elsewhere: Elsewhere = lambda _sha256: None
) -> Iterator[Repaired]:
    """Mends one damage after the other; what is mended is durable when it is told of."""
    found = list(damages)
    if any(damage.sha256 is None for damage in found):
        rebuild_rows(writer)
    _rebuild_bases(writer, {damage.sha256 for damage in found if damage.sha256 and damage.pack is None})
    copies = _copies(writer, {damage.sha256 for damage in found if damage.sha256})
    for damage in found:
        if damage.sha256 is None:
            yield Repaired(damage, damage.pack in _known_packs(writer))
        else:
            candidates = copies.get(damage.sha256, [])
            yield Repaired(damage, _mended(writer, damage.sha256, candidates, elsewhere))


def rebuild_rows(writer: BlobWriter, only: set[str] | None = None) -> int:
    """Reads all packs and makes the rows that the database lacks, of some blobs or of all."""
    made = 0
    for pack in _readable_packs(writer):
        writer.table.change("new_pack", {"pack": pack.pack, "state": "sealed"})
        blobs = (blob for blob in _blobs(writer, pack) if only is None or blob.sha256 in only)
        while some := list(islice(blobs, _AT_ONCE)):
            made += _insert(writer, some)
    return made


def _rebuild_bases(writer: BlobWriter, lacking: set[str]) -> None:
    """Rows of bases, of their bases, and so on."""
    while lacking and rebuild_rows(writer, lacking):
        lacking = {base.hex() for _, base in writer.table.execute("orphans", {})}


def _mended(writer: BlobWriter, sha256: str, copies: list[Blob], elsewhere: Elsewhere) -> bool:
    chain = writer.table.chains([sha256]).get(sha256)
    if chain and chain[0].codec is Codec.CHUNKS:
        return _is_whole(writer, sha256)
    sound = next((copy for copy in copies if _decoded(writer, copy) is not None), None)
    if sound is not None and chain:
        return _replaced(writer, sound)
    if chain and _decoded(writer, chain[0]) is not None:
        return _replaced(writer, writer.describe_again(chain[0]))
    body = elsewhere(sha256)
    if body is None or hashlib.sha256(body).hexdigest() != sha256:
        return False
    return _replaced(writer, writer.write_key_frame(sha256, body))


def _replaced(writer: BlobWriter, blob: Blob) -> bool:
    """The row tells of this record from now on. One that was lost is written again."""
    writer.sync()
    _insert(writer, [blob])
    writer.table.change("replace_blob", columns([blob]))
    writer.settled()
    return True


def _decoded(writer: BlobWriter, blob: Blob) -> bytes | None:
    """The body of a record, if it can be had from there and not only from memory."""
    writer.reader.cache.forget(blob.sha256)
    base = needed_by(blob)
    chain = [blob, *(writer.table.chains([base]).get(base, []) if base else [])]
    try:
        return writer.reader.decoded(chain)
    except (BlobDamaged, PackMissing):
        return None


def _is_whole(writer: BlobWriter, sha256: str) -> bool:
    """Whether a body in chunks can be read, now that others are mended."""
    try:
        for _ in writer.reader.pieces(sha256):
            pass
    except (BlobDamaged, BlobMissing):
        return False
    return True


def _copies(writer: BlobWriter, sha256s: set[str]) -> dict[str, list[Blob]]:
    """Records of these blobs, in all packs, that no row names."""
    copies: dict[str, list[Blob]] = {}
    if sha256s:
        used = {sha256: chain[0].place for sha256, chain in writer.table.chains(list(sha256s)).items()}
        for pack in _readable_packs(writer):
            for blob in _blobs(writer, pack):
                if blob.sha256 in sha256s and blob.place != used.get(blob.sha256):
                    copies.setdefault(blob.sha256, []).append(blob)
    return copies


def _readable_packs(writer: BlobWriter) -> list[Pack]:
    """All packs that nobody is writing, oldest first: so a base comes before what needs it."""
    packs = writer.reader.packs
    states = {row[0]: (row[1], row[2]) for row in writer.table.execute("packs", {})}
    readable = []
    for pack in packs.all():
        state, age = states.get(pack.pack, ("unknown", math.inf))
        if state == "sealed" or (state != "gone" and not packs.is_held(pack.pack, age)):
            readable.append(pack)
    return sorted(readable, key=lambda pack: pack.pack)


def _known_packs(writer: BlobWriter) -> set[object]:
    return {row[0] for row in writer.table.execute("packs", {})}


def _blobs(writer: BlobWriter, pack: Pack) -> Iterator[Blob]:
    def read(start: int, length: int) -> bytes:
        return writer.reader.packs.read(pack.pack, start, min(length, pack.length - start))

    for record in scan(read, pack.length):
        told = record.description
        yield Blob(
            sha256=told.sha256,
            size=told.size,
            codec=told.codec,
            base=told.base,
            depth=told.depth,
            stored=told.payload,
            place=BlobPlace(pack.pack, record.start, record.length),
        )


def _insert(writer: BlobWriter, blobs: list[Blob]) -> int:
    first = {blob.sha256: blob for blob in reversed(blobs)}
    return writer.table.session.transact(
        lambda cursor: cursor.execute(SQL["insert_blobs"].text, columns(list(first.values()))).rowcount
    )
