"""Looks for what was forgotten in every file of an archive and its store, by digests, names and marks.

What another resource or version has by itself is not a leftover, though it may have the same bytes: a mark
that is found is compared with all that is kept before it is told.
"""

import io
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import zstandard
from pyoxigraph import RdfFormat, Store

from tamias.archive.blobs import BlobDamaged, BlobMissing, BlobReader
from tamias.archive.blobs.packs import PackError, Packs
from tamias.archive.blobs.table import read_blobs
from tamias.archive.file_store import FileStore, file_store, part_key, segments_of
from tamias.archive.references import segments
from tamias.archive.stored_files import files_of
from tamias.archive.tombstones import Tombstone, all_tombstones, marks_key, under_way
from tamias.crawl.verbs.check import Looked
from tamias.database.connect import Cursor, Session
from tamias.features.forgetting.erase_blobs import left_records, unnamed_ranges
from tamias.features.forgetting.forgetter import UnwantedRecords
from tamias.features.forgetting.marks import MOST_UNPACKED, WINDOW, MarkSearch, PackedSearch, overlapping
from tamias.features.forgetting.rows import SQL
from tamias.features.forgetting.warc_records import unwanted_records
from tamias.features.warc.folder import bring_warcs
from tamias.features.warc.index import positions_in
from tamias.features.warc.warc_files import WarcPart, is_imported, records, warc_parts
from tamias.model.capture import Extent
from tamias.sinks.segments.segment_files import unpacked_frame

_PIECE = 8 << 20
_AT_ONCE = 10_000

Leftover = tuple[str, str]
"""Where something is left, and what."""

Mark = tuple[int, bytes]
"""One of a body, by its number."""


def find_leftovers(
    session: Session, rows: Session, data: Path, packs: Packs, _looked: Looked
) -> Iterator[Leftover]:
    """Yield what is left of what was forgotten, and what is not finished yet."""
    return LeftoverSearch(session, rows, data, packs).leftovers()


class LeftoverSearch:
    """A search for leftovers. Others may write meanwhile."""

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
        self._found: dict[str, set[Mark]] = {}
        """What is still to be compared with all that is kept, by where it is."""
        self._held: set[Mark] = set()
        """Marks that statements have which are kept."""
        self._unfinished: list[str] = []

    def leftovers(self) -> Iterator[Leftover]:
        """Yield all that is found, with what is not finished yet."""
        for each in under_way(self._session):
            yield (
                self._label(each.forgotten),
                f"is not removed everywhere yet: {each.remains or 'interrupted'}",
            )
        if not self._tombstones:
            return
        yield from self._digests()
        store = file_store(self._session, self._data)
        warcs = self._warc_files(store)
        yield from self._warc_heads(warcs)
        if self._search:
            self._look_everywhere(store, warcs)
            yield from self._compared(warcs)

    def _label(self, number: int) -> str:
        found = self._tombstones.get(number)
        if found is None:
            return f"tombstone {number}"
        return found.url if found.number is None else f"{found.url} version {found.number}"

    def _digests(self) -> Iterator[Leftover]:
        digests = list(self._of_digest)
        for at in range(0, len(digests), _AT_ONCE):
            for sha256 in read_blobs(self._session, digests[at : at + _AT_ONCE]):
                yield self._label(self._of_digest[sha256]), f"its body is there: blob {sha256}"
        for pack, record in left_records(self._packs, self._session, set(digests)):
            sha256 = record.description.sha256
            yield self._label(self._of_digest.get(sha256, 0)), f"pack {pack} has it at byte {record.start}"

    def _warc_files(self, store: FileStore) -> list[WarcPart]:
        """Return all WARC files, copied again from the store: it is the store that is searched."""
        for each in (*files_of(self._session, "warc"), *files_of(self._session, "rdf")):
            if each.sealed:
                store.forget_local(each)
        return warc_parts(bring_warcs(self._session, self._data))

    def _warc_heads(self, warcs: Sequence[WarcPart]) -> Iterator[Leftover]:
        taken = [each for each in self._tombstones.values() if not each.by_rule]
        is_unwanted = UnwantedRecords(self._session, taken)
        for part in warcs if taken else ():
            for record in unwanted_records(part, is_unwanted):
                yield f"warc/{part.path.name}", f"a forgotten record is at byte {record.offset}"

    def _look_everywhere(self, store: FileStore, warcs: Sequence[WarcPart]) -> None:
        for pack, start, end in unnamed_ranges(self._packs, self._session):
            self._look(
                f"pack {pack} from byte {start} on", _ranges(partial(self._packs.read, pack), start, end)
            )
        for table in [row[0] for row in self._rows.fetch_all(SQL["all_tables"])]:
            self._look_at_table(table)
        self._look_at_segments()
        for part in warcs:
            self._look_at_warc(part)
        self._look_at_files(store, {part.path for part in warcs})
        self._look_at_objects(store)
        for current in sorted((self._data / "catalogue").rglob("CURRENT")):
            self._look_at_catalogue(current.parent)

    def _look(self, where: str, pieces: Iterable[bytes]) -> None:
        """Search a stream of unknown content. One that is gone meanwhile has nothing."""
        search = PackedSearch(self._search)
        with suppress(OSError, PackError):
            for piece in pieces:
                search.feed(piece)
        self._end_look(where, search)

    def _end_look(self, where: str, search: PackedSearch) -> None:
        search.close()
        if search.found:
            self._found.setdefault(where, set()).update(search.found)
        if not search.is_complete:
            self._unfinished.append(where)

    def _look_at_table(self, table: str) -> None:
        """Search a table as the server sends it: what it stores compressed is plain."""

        def read(cursor: Cursor) -> PackedSearch:
            search = PackedSearch(self._search)
            with cursor.copy(f"COPY (TABLE {table}) TO STDOUT (FORMAT binary)".encode()) as copy:
                for piece in copy:
                    search.feed(bytes(piece))
            return search

        self._end_look(f"the table {table}", self._rows.transact(read))

    def _look_at_segments(self) -> None:
        open_segment = segments_of(self._session, self._data)
        for each in segments(self._rows):
            where = f"rdf/{each.name}"
            with suppress(OSError), open_segment(each.segment) as file:
                held, outside = _marks_of_segment(file, each.committed, each.extents, self._search)
                self._held |= held
                if outside:
                    self._found.setdefault(where, set()).update(outside)
                file.seek(each.committed)
                self._look(where, iter(lambda: file.read(_PIECE), b""))

    def _look_at_warc(self, part: WarcPart) -> None:
        """Search the records of a WARC file that cannot be replayed."""
        where, end = f"warc/{part.path.name}", 0
        held = positions_in(self._session, part.name)
        with suppress(OSError), part.path.open("rb") as file:
            for record in records(part.path):
                end = record.offset + record.length
                # Records of other crawlers stand by themselves; those to be erased are found by their heads.
                if record.offset not in held and not is_imported(part.name):
                    self._look(f"{where} at byte {record.offset}", _ranges_of(file, record.offset, end))
            length = file.seek(0, 2)
            self._look(f"{where} from byte {end} on", _ranges_of(file, end, length))

    def _look_at_files(self, store: FileStore, warcs: set[Path]) -> None:
        """Search all other files of the data directory, and of a store that is a folder."""
        segment_files = {store.path(each) for each in files_of(self._session, "rdf")}
        packs = {f"{pack.pack}.pack" for pack in self._packs.all()}
        blobs, warc = store.folder("blobs"), store.folder("warc")
        for root in dict.fromkeys((self._data, warc.parent)):
            for path in sorted(root.rglob("*")):
                is_pack = path.parent == blobs and path.name in packs
                if is_pack or path in warcs or path in segment_files:
                    continue
                if path.is_symlink() or not path.is_file():
                    continue
                with suppress(OSError), path.open("rb") as file:
                    self._look(str(path.relative_to(root)), iter(lambda: file.read(_PIECE), b""))

    def _look_at_objects(self, store: FileStore) -> None:
        """Search objects that were not read as files: without a row, of growing files, spools of harvests."""
        files = [*files_of(self._session, "rdf"), *files_of(self._session, "warc")]
        sealed = [each for each in files if each.sealed]
        read = {part_key(each.key, start) for each in sealed for start in each.parts}
        read |= {each.key for each in sealed if not each.parts}
        packs = {f"{pack.pack}.pack" for pack in self._packs.all()} if store.is_elsewhere else set()
        for name, size in store.objects():
            if name not in read and name not in packs:
                # Nothing if it is gone meanwhile.
                pieces = _ranges(lambda at, length, key=name: store.get(key, at, length) or b"", 0, size)  # type: ignore[misc]
                self._look(f"the object {name}", pieces)

    def _look_at_catalogue(self, folder: Path) -> None:
        """Search the statements of one generation of the SPARQL store."""
        search = PackedSearch(self._search)
        with suppress(OSError, ValueError):
            Store.read_only(str(folder)).dump(cast("BinaryIO", _Fed(search)), RdfFormat.N_QUADS)
        self._end_look(str(folder.relative_to(self._data)), search)

    def _compared(self, warcs: Sequence[WarcPart]) -> Iterator[Leftover]:
        """Yield what is found, without marks that something has which is kept."""
        for where in self._unfinished:
            yield where, f"is searched only in part: it unpacks to more than {MOST_UNPACKED >> 30} GB"
        found = set().union(*self._found.values()) - self._held
        allowed = self._held | (self._allowed_marks(self._search.only(found), warcs) if found else set())
        for where, marks in self._found.items():
            advice = "; see docs/forgetting.md" if where.startswith("pg/") else ""
            for number in dict.fromkeys(number for number, _ in sorted(marks - allowed)):
                yield self._label(number), f"its bytes are in {where}{advice}"

    def _allowed_marks(self, search: MarkSearch, warcs: Sequence[WarcPart]) -> set[Mark]:
        allowed: set[Mark] = set()
        reader = BlobReader(self._packs, self._session)
        for (sha256,) in self._rows.rows(SQL["held_bodies"].text):
            with suppress(BlobMissing, BlobDamaged, PackError):
                for piece in overlapping(reader.pieces(sha256)):
                    allowed.update((number, mark) for number, _, mark in search.find(piece))
        for part in warcs:
            allowed |= self._marks_of_warc(part, search)
        return allowed

    def _marks_of_warc(self, part: WarcPart, search: MarkSearch) -> set[Mark]:
        """Return the marks of records that can be replayed."""
        found, held = PackedSearch(search), positions_in(self._session, part.name)
        with suppress(OSError), part.path.open("rb") as file:
            for record in records(part.path):
                if record.offset in held:
                    for piece in _ranges_of(file, record.offset, record.offset + record.length):
                        found.feed(piece)
        found.close()
        return found.found


class _Fed(io.RawIOBase):
    """A file to be written, whose content is searched."""

    def __init__(self, search: PackedSearch) -> None:
        self._search = search

    def writable(self) -> bool:
        return True

    def write(self, content: object) -> int:
        piece = bytes(cast("bytes", content))
        self._search.feed(piece)
        return len(piece)


def _marks_of_segment(
    file: BinaryIO, committed: int, extents: Sequence[Extent], search: MarkSearch
) -> tuple[set[Mark], set[Mark]]:
    """The marks within what documents hold, and those outside."""
    places: dict[int, int] = {}
    hits: dict[int, set[Mark]] = {}
    place = plain = 0
    tail = b""
    while place < committed:
        file.seek(place)
        try:
            frame, behind = unpacked_frame(file)
        except (EOFError, zstandard.ZstdError):
            break  # a damage is told elsewhere
        places[place] = plain
        for number, at, mark in search.find(tail + frame):
            hits.setdefault(plain - len(tail) + at, set()).add((number, mark))
        tail = (tail + frame)[-(WINDOW - 1) :]
        place, plain = behind, plain + len(frame)
    held = sorted(
        (places[each.frame] + each.start, places[each.frame] + each.start + each.length)
        for each in extents
        if each.frame in places
    )
    within = {mark for at, marks in hits.items() if _is_within(at, held) for mark in marks}
    return within, {mark for at, marks in hits.items() if not _is_within(at, held) for mark in marks}


def _is_within(at: int, held: Sequence[tuple[int, int]]) -> bool:
    place = bisect_right(held, (at, 1 << 62)) - 1
    return place >= 0 and at < held[place][1]


def _all(session: Session) -> Iterator[Tombstone]:
    before = None
    while page := all_tombstones(session, before=before, limit=_AT_ONCE, rules=True):
        yield from page
        before = page[-1].forgotten


def _ranges(read: Callable[[int, int], bytes], start: int, end: int) -> Iterator[bytes]:
    for at in range(start, end, _PIECE):
        yield read(at, min(_PIECE, end - at))


def _ranges_of(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    def read(at: int, length: int) -> bytes:
        file.seek(at)
        return file.read(length)

    return _ranges(read, start, end)
