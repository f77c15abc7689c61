"""Looks at every stored byte and every reference, names what is damaged, and mends what can be mended."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from hashlib import file_digest
from pathlib import Path
from typing import BinaryIO

import msgspec
import zstandard

from tamias.archive.blobs import BlobReader, BlobWriter
from tamias.archive.blobs.collect import FreedSpace, collect
from tamias.archive.blobs.store import elsewhere, packs_of
from tamias.archive.blobs.table import read_blobs
from tamias.archive.file_store import file_store, segments_of
from tamias.archive.moved_captures import damaged_captures
from tamias.archive.references import (
    Holder,
    LostDocument,
    SegmentExtents,
    agree,
    disagreeing,
    holders,
    lost_documents,
    lost_versions,
    referenced,
    segments,
)
from tamias.archive.sources.harvests import harvest_files
from tamias.archive.sources.source_records import damaged_records
from tamias.archive.stored_files import files_of
from tamias.crawl.verbs.check import CheckPart, Looked
from tamias.database.connect import Database
from tamias.features.check.blobs import BlobCheck, Damage, parts_of, repair
from tamias.frontier.due import make_due_known
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Extent
from tamias.model.errors import UsageError
from tamias.model.vocabulary import OWN_SPACE
from tamias.plugins import load_all, needed_bodies
from tamias.sinks.segments.naming import quads_in
from tamias.sinks.segments.segment_files import FRAME_BYTES, SegmentReader, unpacked_frame


class _Run(msgspec.Struct):
    """Sound frames one behind the other: how many bytes are unpacked before each, and in all."""

    before: dict[int, int] = msgspec.field(default_factory=dict)
    total: int = 0


class SegmentCheck:
    """A check of segments."""

    def __init__(self, open_segment: Callable[[int], BinaryIO], looked: Looked) -> None:
        self._open_segment = open_segment
        self._looked = looked

    def faults(self, segment: int, committed: int, extents: Sequence[Extent]) -> Iterator[str]:
        """Yield what is wrong with one segment; the extents are of the documents in it."""
        if committed == 0 and not extents:
            return  # its number was taken, and nothing written
        self._looked.segments += 1
        runs = [_Run()]
        try:
            with self._open_segment(segment) as file:
                yield from self._walk(file, committed, sorted({extent.frame for extent in extents}), runs)
        except OSError as error:
            yield f"it cannot be read: {error.strerror}"
        placed = {frame: run for run in runs for frame in run.before}
        lost = sum(1 for extent in extents if not _stands(extent, placed.get(extent.frame)))
        if lost:
            yield f"the quads of {lost} captures cannot be read; crawl their documents again"

    def _walk(self, file: BinaryIO, committed: int, known: list[int], runs: list[_Run]) -> Iterator[str]:
        """Frame by frame; behind a broken one, from the next that is known on."""
        place, rest = 0, b""
        while place < committed:
            file.seek(place)
            try:
                frame, behind = unpacked_frame(file)
            except (EOFError, zstandard.ZstdError) as error:
                yield f"there is no sound frame at byte {place} ({error})"
                runs.append(_Run())
                rest = b"#"  # the next frame may begin inside of a line: a comment
                place = next((start for start in known if start > place), committed)
                continue
            runs[-1].before[place] = runs[-1].total
            runs[-1].total += len(frame)
            self._looked.segment_bytes += behind - place
            for piece in range(0, len(frame), FRAME_BYTES):
                lines, line_end, rest = (rest + frame[piece : piece + FRAME_BYTES]).rpartition(b"\n")
                if problem := _problem(lines + line_end):
                    yield f"{problem}, in the frame at byte {place}"
            place = behind
        if place > committed:
            yield f"a frame reaches beyond byte {committed}, up to which it is committed"


def _problem(lines: bytes) -> str | None:
    """Say what is wrong with whole lines; those of a forgotten document are blank, or comments."""
    try:
        _, graphs = quads_in(lines)
    except ValueError as error:
        return f"what stands there is no N-Quads ({error})"
    own = next((graph for graph in graphs if graph.lower().startswith(OWN_SPACE)), None)
    return own and f"a document has statements in {own}"


def _stands(extent: Extent, run: _Run | None) -> bool:
    """Return whether all bytes of a document are in sound frames, one behind the other."""
    if not extent.length:
        return True
    return run is not None and run.total - run.before[extent.frame] >= extent.start + extent.length


class Need(msgspec.Struct, frozen=True):
    """A body without which a fault cannot be mended."""

    sha256: str
    byte_size: int | None
    versions: tuple[Holder, ...] = ()
    """Those that have it; not all, if they are many."""


class CheckFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that a check has found."""

    kind: str
    """What is damaged, such as `blob`, `version` or the name of a part that features add."""
    name: str
    problem: str
    versions: tuple[Holder, ...] = ()
    """Those that cannot be given back because of it; not all, if they are many."""
    documents: tuple[str, ...] = ()
    """Those whose present quads cannot be read because of it."""
    mended: bool = False
    due: int = 0
    """Of its documents, made due again: the next crawl mends it."""
    needs: tuple[Need, ...] = ()
    """Copies that would mend it, when a repair has found none."""


def copies_in(folder: Path | None) -> Callable[[str], bytes | None]:
    """Return what finds the content of a digest among the files of a folder, whatever their names."""

    @cache
    def paths() -> dict[str, Path]:
        found = {}
        for path in sorted(folder.rglob("*")) if folder else []:
            if path.is_file():
                with path.open("rb") as file:
                    found[file_digest(file, "sha256").hexdigest()] = path
        return found

    return lambda sha256: paths()[sha256].read_bytes() if sha256 in paths() else None


class Checkup:
    """A check of a data directory. Others may write to it meanwhile."""

    def __init__(self, database: Database, data: Path) -> None:
        self._data = data
        self._session = database.session()
        self._packs = packs_of(self._session, data)
        self._open_segment = segments_of(self._session, data)
        self._rows = database.session()
        self.looked = Looked()
        self._damages: dict[str, Damage] = {}
        self._lost: dict[str, list[LostDocument]] = {}

    def close(self) -> None:
        """Lets go of the database."""
        self._session.close()
        self._rows.close()

    def refuse_other_folder(self) -> None:
        """Raise `UsageError` where the data directory has none of the files that the database names."""
        if elsewhere(self._session) is not None:
            return
        files = [*files_of(self._session, "rdf"), *files_of(self._session, "warc")]
        keys = [each.key for each in files if not each.in_store]
        keys += [
            f"blobs/{pack}.pack" for (pack,) in self._session.fetch_all(b"SELECT DISTINCT pack FROM blob")
        ]
        if keys and not any((self._data / key).exists() for key in keys):
            raise UsageError(
                f"{self._data} has none of the {len(keys):,} files that the database names: it is not the"
                " folder of this database. Name the right one with --data"
            )

    def faults(self) -> Iterator[CheckFault]:
        """Yield all that is damaged, as it is found."""
        yield from self._blobs()
        yield from self._references()
        damaged = list(damaged_captures(self._session))
        for name, problem in damaged:
            yield CheckFault(kind="captures", name=name, problem=problem)
        if not damaged:  # they say where quads stand
            yield from self._segments()
        for iri, problem in damaged_records(self._rows):
            yield CheckFault(kind="record", name=iri, problem=problem)
        parts: dict[str, CheckPart] = load_all("check")
        for kind, find in parts.items():
            for name, problem in find(self._session, self._rows, self._data, self._packs, self.looked):
                yield CheckFault(kind=kind, name=name, problem=problem)

    def repaired(self, faults: Sequence[CheckFault], copies: Path | None = None) -> Iterator[CheckFault]:
        """The same faults, and whether each is mended, from the archive or from a folder of copies."""
        done = self._repair_blobs(copies)
        agree(self._session, [fault.name for fault in faults if fault.kind == "resource"])
        left = {lost.version for lost in lost_versions(self._session)}
        left |= {resource for resource, _ in disagreeing(self._session)}
        left |= {name for _, name, _ in self._lost_bodies()}
        rows = {"version", "resource", *(kind for kind, _, _ in needed_bodies(self._session))}
        for fault in faults:
            mended = fault.name not in left if fault.kind in rows else done.get(fault.name, False)
            due = self._make_due(self._lost[fault.name]) if fault.documents else 0
            needs = () if mended else self._needs(fault)
            yield msgspec.structs.replace(fault, mended=mended, due=due, needs=needs)

    def collected(self) -> FreedSpace:
        """Frees what no version needs, and parts of files that no row names."""
        writer = BlobWriter(self._packs, self._session)
        store = file_store(self._session, self._data)
        files = [*files_of(self._session, "rdf"), *files_of(self._session, "warc")]
        files += harvest_files(self._session)
        try:
            done = collect(writer, self._rows, referenced(self._session))
            done.bytes += store.free_parts(files, self._session.now())
        finally:
            writer.close()
        return done

    def _needs(self, fault: CheckFault) -> tuple[Need, ...]:
        """The body itself; of a group each of its bodies."""
        damage = self._damages.get(fault.name) if fault.kind == "blob" else None
        if damage is None or damage.sha256 is None:
            lost = [lost for lost in lost_versions(self._session) if lost.version == fault.name]
            return tuple(Need(each.sha256, None, (Holder(each.version, each.url),)) for each in lost)
        reader = BlobReader(self._packs, self._session)
        chain = reader.table.chains([damage.sha256]).get(damage.sha256, [])
        return tuple(
            Need(blob.sha256, blob.size, tuple(holders(self._session, [blob.sha256])))
            for blob in parts_of(reader, damage.sha256) or chain[:1]
        )

    def _blobs(self) -> Iterator[CheckFault]:
        check = BlobCheck(self._packs, self._session)
        for damage in check.damages():
            name = damage.sha256 or str(damage.pack)
            self._damages[name] = damage
            lost = holders(self._session, [damage.sha256, *damage.dependents]) if damage.sha256 else ()
            kind = "blob" if damage.sha256 else "pack"
            yield CheckFault(kind=kind, name=name, problem=damage.problem, versions=tuple(lost))
        self.looked.blobs, self.looked.blob_bytes = check.blobs, check.bytes

    def _references(self) -> Iterator[CheckFault]:
        for lost in lost_versions(self._session):
            problem = f"its body is not there: blob {lost.sha256}"
            if not lost.missing:
                problem = f"its size is not that of blob {lost.sha256}"
            missing = Damage(sha256=lost.sha256, pack=None, problem=problem)
            self._damages.setdefault(lost.sha256, missing)
            holder = Holder(lost.version, lost.url)
            yield CheckFault(kind="version", name=lost.version, problem=problem, versions=(holder,))
        for kind, name, sha256 in self._lost_bodies():
            problem = f"what it lists is not there: blob {sha256}"
            self._damages.setdefault(sha256, Damage(sha256=sha256, pack=None, problem=problem))
            yield CheckFault(kind=kind, name=name, problem=problem)
        for resource, url in disagreeing(self._session):
            yield CheckFault(
                kind="resource", name=resource, problem=f"{url} points to the wrong last version"
            )

    def _lost_bodies(self) -> Iterator[tuple[str, str, str]]:
        """Yield kind, name and digest of what features need and is not there."""
        needed = needed_bodies(self._session)
        there = read_blobs(self._session, [sha256 for _, _, sha256 in needed])
        yield from (each for each in sorted(needed) if each[2] not in there)

    def _segments(self) -> Iterator[CheckFault]:
        check = SegmentCheck(self._open_segment, self.looked)
        for each in segments(self._rows):
            name = f"rdf/{each.name}"
            problems = list(check.faults(each.segment, each.committed, each.extents))
            documents = self._lost_in(name, each) if problems else ()
            for problem in problems:
                last = problem is problems[-1]
                yield CheckFault(
                    kind="segment", name=name, problem=problem, documents=documents if last else ()
                )

    def _lost_in(self, name: str, segment: SegmentExtents) -> tuple[str, ...]:
        with SegmentReader(self._open_segment, {segment.segment: segment.committed}) as reader:
            lost = [extent for extent in segment.documents if not reader.holds(extent)]
        self._lost[name] = lost_documents(self._session, lost)
        return tuple(each.document for each in self._lost[name])

    def _make_due(self, lost: Sequence[LostDocument]) -> int:
        """The documents of a damaged segment are visited again, and read as if for the first time."""
        frontier = PostgresFrontier(self._session, same_url=str.__eq__)
        places: dict[int, list[tuple[int, int, int]]] = {}
        for each in lost:
            places.setdefault(each.bucket, []).append((each.qid, each.crawl, each.uid))
        return sum(
            make_due_known(self._session, frontier, bucket, some, unread=True)
            for bucket, some in places.items()
        )

    def _repair_blobs(self, copies: Path | None) -> dict[str, bool]:
        if not self._damages:
            return {}
        writer = BlobWriter(self._packs, self._session)
        try:
            done = list(repair(writer, self._damages.values(), copies_in(copies)))
        finally:
            writer.close()
        return {each.damage.sha256 or str(each.damage.pack): each.mended for each in done}
