"""Exports a snapshot with the same bytes every time: sorted, of the time of the snapshot, nothing of today.

What is no longer there is a gap, and the manifest says why.
"""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from tamias.archive.file_store import segments_of
from tamias.archive.reader.library import ArchiveReader
from tamias.archive.references import committed_lengths
from tamias.content.blank_nodes import MOST_BYTES, canonical_nquads
from tamias.features.exports.line_sorter import LineSorter
from tamias.features.exports.packages import Bag, Crate, Package
from tamias.features.snapshots.datacite import citation, readable
from tamias.features.snapshots.entries import (
    GraphEntry,
    ManifestEntry,
    SnapshotGap,
    VersionEntry,
    entry_line,
    read_entries,
)
from tamias.features.snapshots.make import AT_ONCE, digest_graph, entries_in, split_lines
from tamias.features.snapshots.rows import CorpusSnapshot, extents, find_gaps
from tamias.model.document import Unreadable
from tamias.model.errors import TamiasError
from tamias.model.vocabulary import address_iri
from tamias.sinks.segments.segment_files import SegmentError, SegmentReader

GRAPHS: Final = "graphs.nq"
PROVENANCE: Final = "provenance.nq"
MANIFEST: Final = "manifest.jsonl"
_NQUADS: Final = "application/n-quads"
_DAMAGED: Final = SnapshotGap(
    "its statements cannot be read: 'tamias check' says what is damaged", damaged=True
)
_TERMS: Final = {
    "@id": "#terms",
    "name": "Terms of the publishers",
    "description": "Each file and each graph is as its publisher gave it out; licences.json has the licences"
    " that sources declare.",
}


class LayoutUnknown(TamiasError):
    """A later version of Tamias made the snapshot."""


class SnapshotExport:
    """An export of a snapshot. The folder is for files that are too large for memory."""

    def __init__(self, archive: ArchiveReader, snapshot: CorpusSnapshot, folder: Path) -> None:
        if snapshot.about.layout != 1:
            raise LayoutUnknown("a later version of Tamias made this snapshot; export it with that version")
        self._archive = archive
        self._snapshot = snapshot
        self._about = snapshot.about
        self._graphs = LineSorter(folder / "graphs")
        self._scratch = folder / "graph"
        self._manifest = folder / "manifest"
        self.gaps: list[ManifestEntry] = []
        """What is missing, each with its `gap`."""

    def read(self, *, graphs: bool = True) -> None:
        """Finds out what is there, and sorts the graphs if they are wanted. Before anything is written."""
        with (
            self._manifest.open("wb") as file,
            SegmentReader(
                segments_of(self._archive.session, self._archive.data),
                committed_lengths(self._archive.session),
            ) as reader,
        ):
            for some in entries_in(self._stored(self._about.manifest), AT_ONCE):
                missing = find_gaps(self._archive.session, some)
                checked = [_with_gap(entry, gap) for entry, gap in zip(some, missing, strict=True)]
                if graphs:
                    damaged = self._add_graphs(checked, reader)
                    checked = [_with_gap(entry, damaged.get(id(entry))) for entry in checked]
                self.gaps += [entry for entry in checked if entry.gap]
                file.writelines(map(entry_line, checked))

    def write_manifest(self, out: BinaryIO) -> None:
        """The manifest, with gaps."""
        out.writelines(self._manifest_pieces())

    def write_nquads(self, out: BinaryIO) -> None:
        """Graphs and provenance as one file of sorted N-Quads."""
        self._graphs.add(self._stored(self._about.provenance))
        out.writelines(self._graphs.pieces())

    def canonical_digest(self) -> str:
        """Return the SHA-256 of the graphs by RDFC-1.0, which labels of blank nodes do not change.

        Raises `TamiasError` where graphs are missing or too large.
        """
        if any(isinstance(each, GraphEntry) for each in self.gaps):
            raise TamiasError("graphs are missing from the snapshot, so it has no digest by RDFC-1.0")
        held, size = [], 0
        for piece in self._graphs.pieces():
            held.append(piece)
            size += len(piece)
            if size > MOST_BYTES:
                break
        try:
            return hashlib.sha256(canonical_nquads(b"".join(held))).hexdigest()
        except Unreadable as fault:
            raise TamiasError(f"the snapshot has no digest by RDFC-1.0: {fault}") from None

    def write_bag(self, package: Package) -> None:
        """Write everything as one bag."""
        bag = Bag(package)
        for path, pieces, _ in self._files():
            bag.add(path, pieces)
        bag.complete(
            [
                ("Source-Organization", self._about.publisher),
                ("External-Identifier", self._about.doi or f"sha256:{self._about.manifest}"),
                ("External-Description", self._about.description),
                ("Bag-Software-Agent", self._about.software),
            ],
            self.at,
        )

    def write_crate(self, package: Package) -> None:
        """Write everything as one RO-Crate."""
        crate, about = Crate(package), self._about
        crate.describe_software(about.software.partition(" ")[2])
        sources: dict[str, str] = {}
        for path, pieces, properties in self._files():
            if source := properties.pop("source", None):
                sources[source] = address_iri(source)
                properties["isBasedOn"] = {"@id": sources[source]}
            crate.add_file(path, pieces, **properties)
        for source, iri in sources.items():
            crate.describe(iri, "CreativeWork", name=source, url=source)
        people = {name: f"#creator-{number}" for number, name in enumerate(about.creators, 1)}
        for name, node in {**people, about.publisher: "#publisher"}.items():
            crate.describe(node, "Organization", name=name)
        crate.complete(
            name=about.title,
            description=about.description,
            licence=_TERMS if about.licence is None else {"@id": about.licence, "name": about.licence},
            at=self.at,
            identifier=f"https://doi.org/{about.doi}" if about.doi else f"urn:sha256:{about.manifest}",
            author=[{"@id": node} for name, node in people.items() if name != about.publisher]
            or {"@id": "#publisher"},
            publisher={"@id": "#publisher"},
            version=about.name,
            creditText=citation(about),
        )

    @property
    def at(self) -> datetime:
        """The time that the files are of."""
        return datetime.fromisoformat(self._about.at)

    def _files(self) -> Iterator[tuple[str, Iterable[bytes], dict[str, Any]]]:
        """Yield every file in the order of the paths, its content, and what a crate says of it."""
        plain = "application/json"
        snapshot = self._snapshot
        yield "datacite.json", [snapshot.datacite.encode()], _about("Metadata for DataCite", plain)
        yield GRAPHS, self._graphs.pieces(), _about("What documents say, one graph for each", _NQUADS)
        yield "licences.json", [snapshot.licences.encode()], _about("Licences that sources declare", plain)
        listing = _about("What is in the snapshot, with digests and gaps", "application/jsonl")
        yield MANIFEST, self._manifest_pieces(), listing
        brought = _about("The fetches that brought all this", _NQUADS)
        yield PROVENANCE, self._archive.reader.pieces(self._about.provenance), brought
        yield "snapshot.json", [readable(self._about)], _about("The snapshot as a whole", plain)
        with self._manifest.open("rb") as file:
            for entry in read_entries(file):
                if isinstance(entry, VersionEntry) and not entry.gap:
                    yield entry.path, self._archive.reader.pieces(entry.sha256), _properties(entry)

    def _manifest_pieces(self) -> Iterator[bytes]:
        with self._manifest.open("rb") as file:
            yield from iter(partial(file.read, 1 << 20), b"")

    def _stored(self, sha256: str) -> Iterator[bytes]:
        return split_lines(self._archive.reader.pieces(sha256))

    def _add_graphs(self, entries: list[ManifestEntry], reader: SegmentReader) -> dict[int, SnapshotGap]:
        """Adds what is there of some graphs; the others are returned, by the identity of their entries."""
        wanted = [entry for entry in entries if isinstance(entry, GraphEntry) and not entry.gap]
        places = extents(self._archive.session, [entry.capture for entry in wanted])
        damaged = {}
        # In the order of the files each frame is unpacked once.
        for entry in sorted(wanted, key=lambda entry: msgspec.structs.astuple(places[entry.capture])):
            try:
                if digest_graph(reader.read(places[entry.capture]), self._scratch).sha256 != entry.sha256:
                    damaged[id(entry)] = _DAMAGED
                    continue
                self._graphs.add(split_lines(reader.read(places[entry.capture])))
            except SegmentError:
                damaged[id(entry)] = _DAMAGED
        return damaged


def _with_gap(entry: ManifestEntry, gap: SnapshotGap | None) -> ManifestEntry:
    return entry if gap is None else msgspec.structs.replace(entry, gap=gap)


def _about(name: str, media_type: str) -> dict[str, Any]:
    return {"name": name, "encodingFormat": media_type}


def _properties(entry: VersionEntry) -> dict[str, Any]:
    number = entry.id.rpartition("_")[2]
    return {
        "name": f"{entry.title or entry.url}, version {number}",
        "encodingFormat": entry.media_type,
        "version": number,
        "dateModified": entry.captured_at,
        "source": entry.url,
    }
