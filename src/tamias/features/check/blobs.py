"""Reads everything there is, names what is damaged and what depends on it, and repairs what can be."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain as chained
from itertools import islice
from uuid import UUID

import msgspec

from tamias.archive.blobs.blob import (
    Blob,
    BlobDamaged,
    BlobMissing,
    BlobPlace,
    Codec,
    described,
    part_row,
    scan,
)
from tamias.archive.blobs.chunking import listed
from tamias.archive.blobs.frames import PayloadError
from tamias.archive.blobs.groups import LIST_BYTES, members
from tamias.archive.blobs.packs import Pack, PackMissing, Packs
from tamias.archive.blobs.reader import BlobReader
from tamias.archive.blobs.table import SQL, blob_of, columns, digests, needed_by
from tamias.archive.blobs.writer import BlobWriter
from tamias.database.connect import Session

_AT_ONCE = 500


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A broken record, missing base or unknown pack."""

    sha256: str | None
    """The blob; None when it is about a pack as a whole."""
    pack: UUID | None
    problem: str
    dependents: tuple[str, ...] = ()
    """Blobs that cannot be given back while this one cannot."""


class BlobCheck:
    """A check of all blobs. Others may write meanwhile."""

    def __init__(self, packs: Packs, session: Session) -> None:
        # A reader of its own: what another has at hand may be broken on disk since.
        self._reader = BlobReader(packs, session)
        self._table = self._reader.table
        self._broken: set[str] = set()
        self.blobs = 0
        self.bytes = 0

    def damages(self) -> Iterator[Damage]:
        """Yield all of them, as they are found."""
        yield from self._unknown_packs()
        yield from self._without_base()
        for firsts in self._firsts():
            followers = self._followers([blob.sha256 for blob in firsts])
            for blob in firsts:
                yield from self._family(blob, followers.get(blob.sha256, []))
        for row in self._table.execute("blobs_in_chunks", {}):
            yield from self._in_chunks(blob_of(row))

    def _unknown_packs(self) -> Iterator[Damage]:
        known = {row[0] for row in self._table.execute("packs", {})}
        packs = self._reader.packs
        for pack in () if packs.is_borrowed else packs.all():
            if pack.pack not in known and pack.length and not packs.is_held(pack.pack, math.inf):
                problem = f"pack {pack.pack} is unknown to the database; a repair reads it in"
                yield Damage(sha256=None, pack=pack.pack, problem=problem)

    def _without_base(self) -> Iterator[Damage]:
        lost: dict[str, list[str]] = {}
        for sha256, base in self._table.execute("orphans", {}):
            lost.setdefault(base.hex(), []).append(sha256.hex())
        for base, direct in lost.items():
            further = self._followers(direct)
            all_of_them = [*direct, *(each.sha256 for some in further.values() for each in some)]
            self._broken |= {base, *all_of_them}
            problem = "it has no row, and others are decoded with it"
            yield Damage(sha256=base, pack=None, problem=problem, dependents=tuple(all_of_them))

    def _firsts(self) -> Iterator[list[Blob]]:
        after = b""
        while rows := self._table.execute("first_blobs", {"after": after, "at_once": _AT_ONCE}):
            yield [blob_of(row) for row in rows]
            after = rows[-1][0]

    def _followers(self, sha256s: list[str]) -> dict[str, list[Blob]]:
        followers: dict[str, list[Blob]] = {}
        for first, *row in self._table.execute("followers", digests(sha256s)):
            followers.setdefault(first.hex(), []).append(blob_of(row))
        return followers

    def _family(self, first: Blob, followers: list[Blob]) -> Iterator[Damage]:
        """A blob and all that is decoded with it, each next to its base, which is then still at hand."""
        next_to: dict[str, list[Blob]] = {}
        for blob in followers:
            if blob.codec is not Codec.CHUNKS:
                next_to.setdefault(blob.base or "", []).append(blob)
        chains = [[first]]
        while chains:
            chain = chains.pop()
            blob = chain[0]
            problem = self._problem(chain)
            if problem:
                dependents = _descendants(blob.sha256, next_to)
                self._broken |= {blob.sha256, *dependents}
                yield Damage(
                    sha256=blob.sha256, pack=blob.place.pack, problem=problem, dependents=tuple(dependents)
                )
            else:
                chains += [[each, *chain] for each in next_to.get(blob.sha256, [])]

    def _problem(self, chain: list[Blob]) -> str | None:
        """Return what is wrong with the first of a chain whose others are sound."""
        blob = chain[0]
        if blob.codec is not Codec.GROUP:  # its parts are counted
            self.blobs += 1
            self.bytes += blob.size
        try:
            record = self._reader.packs.read(
                blob.place.pack, blob.place.start, blob.place.length - blob.stored
            )
            self._reader.decoded(chain)
        except PackMissing as error:
            now = self._table.chains([blob.sha256]).get(blob.sha256)
            return str(error) if now and now[0].place == blob.place else None  # else moved or collected
        except BlobDamaged as error:
            return error.problem
        if blob.codec is Codec.PART:
            return None  # described by its group
        found = described(record)
        if found is None or (found.sha256, found.codec, found.base) != (blob.sha256, blob.codec, blob.base):
            return "its description in the pack is broken; the body itself is sound"
        return None

    def _in_chunks(self, blob: Blob) -> Iterator[Damage]:
        self.blobs += 1
        self.bytes += blob.size
        problem = self._problem_of_chunks(blob)
        if problem:
            yield Damage(sha256=blob.sha256, pack=blob.place.pack, problem=problem)

    def _problem_of_chunks(self, blob: Blob) -> str | None:
        assert blob.base is not None
        try:
            broken = self._broken & {blob.base, *listed(self._reader.read(blob.base))}
            if broken:
                return f"it needs {', '.join(sorted(broken))}"
            for _ in self._reader.pieces(blob.sha256):
                pass
        except (BlobDamaged, BlobMissing) as error:
            return str(error)
        return None


def _descendants(sha256: str, next_to: dict[str, list[Blob]]) -> list[str]:
    found = [blob.sha256 for blob in next_to.get(sha256, [])]
    return [*found, *(further for each in found for further in _descendants(each, next_to))]


_PACKS_AT_ONCE = 5000

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
    parts = {damage.sha256: parts_of(writer.reader, damage.sha256) for damage in found if damage.sha256}
    copies = _copies(writer, {*parts, *(blob.sha256 for blob in chained.from_iterable(parts.values()))})

    def mended(sha256: str) -> bool:
        return _mended(writer, sha256, copies.get(sha256, []), elsewhere)

    for damage in found:
        if damage.sha256 is None:
            yield Repaired(damage, damage.pack in {row[0] for row in writer.table.execute("packs", {})})
            continue
        done = mended(damage.sha256)
        # Nobody has a copy of a group as such; its bodies can come one by one.
        if not done and (within := parts[damage.sha256]):
            done = False not in [mended(blob.sha256) for blob in within]
            writer.table.change("delete_empty_groups", digests([damage.sha256]))
        yield Repaired(damage, done)


def parts_of(reader: BlobReader, sha256: str) -> list[Blob]:
    """The bodies of a group; none if it is not a group."""
    rows = reader.table.execute("parts", digests([sha256]))
    return [blob_of(row) for row in rows]


def rebuild_rows(writer: BlobWriter, only: set[str] | None = None) -> int:
    """Reads all packs and makes the rows that the database lacks, of some blobs or of all."""
    made = 0
    # The newest record of a blob counts: what a repack wrote never relies on what it replaced, and the older
    # records beside it may.
    for pack in reversed(_readable_packs(writer)):
        writer.table.change("new_pack", {"pack": pack.pack, "state": "sealed"})
        blobs = (blob for blob in _blobs(writer, pack) if only is None or blob.sha256 in only)
        while some := list(islice(blobs, _PACKS_AT_ONCE)):
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
    writer.table.change("move_parts", digests([blob.sha256]))
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
    """Return whether a body in chunks can be read, now that others are mended."""
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
    """Return all packs that nobody is writing, oldest first."""
    packs = writer.reader.packs
    states = {row[0]: (row[1], row[2]) for row in writer.table.execute("packs", {})}
    readable = []
    for pack in packs.all():
        state, age = states.get(pack.pack, ("unknown", math.inf))
        if state == "sealed" or (state != "gone" and not packs.is_held(pack.pack, age)):
            readable.append(pack)
    return sorted(readable, key=lambda pack: pack.pack)


def _blobs(writer: BlobWriter, pack: Pack) -> Iterator[Blob]:
    def read(start: int, length: int) -> bytes:
        return writer.reader.packs.read(pack.pack, start, min(length, pack.length - start))

    for record in scan(read, pack.length):
        blob = record.description.blob(BlobPlace(pack.pack, record.start, record.length))
        yield blob
        if blob.codec is Codec.GROUP:
            yield from _parts(blob, read(blob.place.end - blob.stored, min(blob.stored, LIST_BYTES)))


def _parts(group: Blob, payload: bytes) -> Iterator[Blob]:
    try:
        found = members(payload)
    except PayloadError:
        return  # damaged; then its parts are lost, unless another record has them
    for member in found:
        yield part_row(group, member.sha256, member.size)


def _insert(writer: BlobWriter, blobs: list[Blob]) -> int:
    last = {blob.sha256: blob for blob in blobs}
    return writer.table.session.execute(SQL["insert_blobs"], columns(list(last.values())))
