"""Reads everything there is, and names what is damaged and what depends on it."""

import math
from collections.abc import Iterator
from uuid import UUID

import msgspec

from tamias.archive.blobs.blob import Blob, BlobDamaged, BlobMissing, Codec
from tamias.archive.blobs.chunking import listed
from tamias.archive.blobs.packs import PackMissing, Packs
from tamias.archive.blobs.reader import BlobReader
from tamias.archive.blobs.records import described
from tamias.archive.blobs.table import blob_of, digests
from tamias.database.connect import Session

_AT_ONCE = 500


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """One broken record, missing base or unknown pack."""

    sha256: str | None
    """The blob; None when it is about a pack as a whole."""
    pack: UUID | None
    problem: str
    dependents: tuple[str, ...] = ()
    """Blobs that cannot be given back while this one cannot."""


class BlobCheck:
    """One walk through all blobs. Others may write meanwhile."""

    def __init__(self, packs: Packs, session: Session) -> None:
        # A reader of its own: what another has at hand may be broken on disk since.
        self._reader = BlobReader(packs, session)
        self._table = self._reader.table
        self._broken: set[str] = set()
        self.blobs = 0
        self.bytes = 0

    def damages(self) -> Iterator[Damage]:
        """All of them, as they are found."""
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
        for pack in packs.all():
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
        """What is wrong with the first of a chain whose others are sound."""
        blob = chain[0]
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
        told = described(record)
        if told is None or (told.sha256, told.codec, told.base) != (blob.sha256, blob.codec, blob.base):
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
