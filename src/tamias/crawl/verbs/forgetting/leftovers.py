"""Looks for what was forgotten in every file of an archive: by digests, names, and marks of its bytes.

What another resource or version has by itself is not a leftover, though it may have the same bytes.
"""

import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import zstandard

from tamias.archive.blobs import BlobDamaged, BlobMissing, BlobReader
from tamias.archive.blobs.erase import gaps, left_records
from tamias.archive.blobs.packs import PackError, Packs
from tamias.archive.blobs.recode import read_blobs
from tamias.archive.file_store import segments_of
from tamias.archive.forgetting.tombstones import SQL, Tombstone, all_tombstones, marks_key, under_way
from tamias.archive.references import segments
from tamias.content.marks import WINDOW, MarkSearch
from tamias.crawl.verbs.forgetting.forgetter import UnwantedRecords
from tamias.crawl.verbs.warc_cache import bring_warcs
from tamias.database.connect import Session
from tamias.model.capture import Extent
from tamias.sinks.segments.segment_files import unpacked_frame
from tamias.sinks.warc.warc_erasing import unwanted_records
from tamias.sinks.warc.warc_files import warc_parts

_PIECE = 8 << 20
_LARGEST = 256 << 20
"""Of what a file unpacks to, so much is looked at."""
_ZSTD, _GZIP = bytes.fromhex("28b52ffd"), bytes.fromhex("1f8b08")
_AT_ONCE = 10_000
_LATEST = 10
"""Versions of a resource that are compared."""

Leftover = tuple[str, str]
"""Where something is left, and what."""


class LeftoverSearch:
    """One search. Others may write meanwhile."""

    def __init__(self, session: Session, rows: Session, data: Path, packs: Packs) -> None:
        self._session = session
        self._rows = rows
        self._data = data
        self._packs = packs
        self._tombstones = {each.forgotten: each for each in _all(session)}
        marks = session.fetch_all(SQL["all_marks"]) if self._tombstones else []
        self._of_digest: dict[str, int] = {sha256: number for number, sha256, _ in marks}
        key = marks_key(session) if marks else b""
        self._search = MarkSearch(key, ((number, packed) for number, _, packed in marks if packed))

    def leftovers(self) -> Iterator[Leftover]:
        """All that is found, with what is not finished yet."""
        for each in under_way(self._session):
            yield (
                self._told(each.forgotten),
                f"is not removed everywhere yet: {each.remains or 'interrupted'}",
            )
        if not self._tombstones:
            return
        yield from self._blobs()
        yield from self._segments()
        yield from self._warc()
        yield from self._files()

    def _told(self, number: int) -> str:
        found = self._tombstones.get(number)
        if found is None:
            return f"tombstone {number}"
        return found.url if found.number is None else f"{found.url} version {found.number}"

    def _blobs(self) -> Iterator[Leftover]:
        digests = list(self._of_digest)
        for at in range(0, len(digests), _AT_ONCE):
            for sha256 in read_blobs(self._session, digests[at : at + _AT_ONCE]):
                yield self._told(self._of_digest[sha256]), f"its body is there: blob {sha256}"
        for pack, record in left_records(self._packs, self._session, set(digests)):
            sha256 = record.description.sha256
            yield self._told(self._of_digest.get(sha256, 0)), f"pack {pack} has it at byte {record.start}"
        for pack, start, content in gaps(self._packs, self._session):
            yield from self._found(content, f"pack {pack} from byte {start} on")

    def _found(self, content: bytes, where: str) -> Iterator[Leftover]:
        for number in dict.fromkeys(number for number, _ in self._search.find(content)):
            yield self._told(number), f"its bytes are in {where}"

    def _segments(self) -> Iterator[Leftover]:
        open_segment = segments_of(self._session, self._data)
        for each in segments(self._rows):
            if not each.committed:
                continue
            try:
                with open_segment(each.segment) as file:
                    found = self._in_segment(file, each.committed, each.extents)
            except OSError:
                continue  # told elsewhere
            for number in dict.fromkeys(found):
                yield self._told(number), f"its statements are in rdf/{each.name}"

    def _in_segment(self, file: BinaryIO, committed: int, extents: Sequence[Extent]) -> list[int]:
        """Which bodies are there outside of what documents hold."""
        places: dict[int, int] = {}
        hits: list[tuple[int, int]] = []
        place = plain = 0
        tail = b""
        while place < committed:
            file.seek(place)
            try:
                frame, behind = unpacked_frame(file)
            except (EOFError, zstandard.ZstdError):
                break  # a damage is told elsewhere
            places[place] = plain
            hits += [(plain - len(tail) + at, number) for number, at in self._search.find(tail + frame)]
            tail = (tail + frame)[-(WINDOW - 1) :]
            place, plain = behind, plain + len(frame)
        held = sorted(
            (places[each.frame] + each.start, places[each.frame] + each.start + each.length)
            for each in extents
            if each.frame in places
        )
        return [number for at, number in hits if not _is_within(at, held)]

    def _warc(self) -> Iterator[Leftover]:
        taken = [each for each in self._tombstones.values() if not each.by_rule]
        if not taken:
            return
        folder = bring_warcs(self._session, self._data)
        is_unwanted = UnwantedRecords(self._session, taken)
        for part in warc_parts(folder):
            for record in unwanted_records(part, is_unwanted):
                yield f"warc/{part.path.name}", f"a forgotten record is at byte {record.offset}"

    def _files(self) -> Iterator[Leftover]:
        """All others, as they are and unpacked."""
        if not self._search:
            return
        own = {self._data / name for name in ("blobs", "rdf", "warc")}
        for path in sorted(self._data.rglob("*")):
            if own & set(path.parents) or not path.is_file() or path.is_symlink():
                continue
            try:
                numbers = dict.fromkeys(number for number in self._in_file(path))
            except OSError:
                continue  # gone meanwhile
            name = path.relative_to(self._data)
            advice = "; see docs/forgetting.md" if name.parts[0] == "pg" else ""
            for number in numbers:
                if not self._is_held_again(number):
                    yield self._told(number), f"its bytes are in {name}{advice}"

    def _is_held_again(self, number: int) -> bool:
        """Whether a later version of the resource has the same bytes: then they may be anywhere."""
        found = self._tombstones.get(number)
        if found is None:
            return False
        reader = BlobReader(self._packs, self._session)
        asked = {"resource": found.resource, "limit": _LATEST}
        for (sha256,) in self._session.fetch_all(SQL["held_now"], asked):
            with suppress(BlobMissing, BlobDamaged, PackError):
                if any(each == number for each, _ in self._search.find(reader.read(sha256))):
                    return True
        return False

    def _in_file(self, path: Path) -> Iterator[int]:
        for content in (*_pieces(path), *_unpacked(path)):
            yield from (number for number, _ in self._search.find(content))


def _is_within(at: int, held: Sequence[tuple[int, int]]) -> bool:
    place = bisect_right(held, (at, 1 << 62)) - 1
    return place >= 0 and at < held[place][1]


def _all(session: Session) -> Iterator[Tombstone]:
    before = None
    while page := all_tombstones(session, before=before, limit=_AT_ONCE, rules=True):
        yield from page
        before = page[-1].forgotten


def _pieces(path: Path) -> Iterator[bytes]:
    tail = b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield tail + piece
            tail = piece[-(WINDOW - 1) :]


def _unpacked(path: Path) -> Iterator[bytes]:
    """What a file of one codec holds, so much of it at most."""
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(0)
        try:
            if head == _ZSTD:
                yield zstandard.ZstdDecompressor().stream_reader(file).read(_LARGEST)
            elif head[:3] == _GZIP:
                yield zlib.decompressobj(31).decompress(file.read(_LARGEST), _LARGEST)
        except (zstandard.ZstdError, zlib.error):
            return
