"""Makes a snapshot: what was there at a time, listed with digests, and held from then on."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from pyoxigraph import RdfFormat, serialize

from tamias import __version__
from tamias.archive.blobs import BlobWriter, Prepared, insert_blobs
from tamias.archive.captures import HeldDocument, documents_at, named_captures
from tamias.archive.file_store import segments_of
from tamias.archive.moments import rfc3339, shown
from tamias.archive.reader.library import ArchiveReader, NotArchived
from tamias.archive.references import committed_lengths
from tamias.archive.versions.resources import read_versions
from tamias.content.formats import suffix_of
from tamias.database.connect import Cursor, Session
from tamias.database.disk import write_hashed
from tamias.features.dcat.activity import activity_quads
from tamias.features.exports.line_sorter import LineSorter
from tamias.features.exports.usage_gate import UsageGate
from tamias.features.snapshots.datacite import datacite, readable
from tamias.features.snapshots.entries import (
    GraphEntry,
    ManifestEntry,
    SnapshotAbout,
    VersionEntry,
    entry_line,
    read_entries,
)
from tamias.features.snapshots.licences import LicenceSummary, licences_in
from tamias.features.snapshots.rows import (
    CorpusSnapshot,
    add_snapshot,
    declared_licences,
    extents,
    find_snapshot,
    list_snapshots,
    pin_captures,
)
from tamias.model.capture import Body, Extent
from tamias.model.errors import UsageError
from tamias.model.resource import Resource, Version
from tamias.model.url import fetch_url, host_of_name
from tamias.model.usage import BULK
from tamias.model.vocabulary import term
from tamias.sinks.graphs import whole_lines
from tamias.sinks.segments.segment_files import SegmentReader

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
AT_ONCE: Final = 500
"""Resources, or entries of a manifest, that are looked up together."""
PINS_AT_ONCE: Final = 10_000
_FROM_INSIDE: Final = frozenset(map(term, ("problem", "renamedGraph", "originalName")))
"""Words of documents themselves: not in the provenance, which stays when a document is taken down."""


def make_snapshot(archive: ArchiveReader, plan: SnapshotAbout, at: int) -> CorpusSnapshot:
    """Makes a snapshot, all of it or nothing. Others may write meanwhile; what they bring is not in it.

    The plan says what is chosen and how it is described; what it leaves empty is filled in.

    Raises `UsageError` for a name that is taken, `NotArchived` where there is nothing to name, and
    `SegmentError` where a graph is damaged.
    """
    if NAME.fullmatch(plan.name) is None:
        raise UsageError(f"{plan.name!r} cannot be a name: use at most 100 letters, digits, '.', '_' and '-'")
    if at > archive.session.now():
        raise UsageError(f"{plan.at} is still to come: a snapshot is of a time that is over")
    if any(each.about.name == plan.name for each in list_snapshots(archive.session)):
        raise UsageError(f"there is a snapshot '{plan.name}' already; snapshots never change: name another")
    with (
        TemporaryDirectory(prefix="tamias-snapshot-", ignore_cleanup_errors=True) as folder,
        closing(archive.database.session()) as second,
    ):
        return _Making(archive, second, plan, at, Path(folder)).run()


class _Making:
    """A snapshot while it is made."""

    def __init__(
        self, archive: ArchiveReader, second: Session, plan: SnapshotAbout, at: int, folder: Path
    ) -> None:
        self._archive = archive
        self._session = archive.session
        self._second = second
        """For a long answer of the database, while the first session is asked other things."""
        self._plan = plan
        self._at = at
        self._is_filtered = bool(plan.urls or plan.hosts or plan.portals)
        self._folder = folder
        self._gate = UsageGate(archive.session, () if plan.reserved else BULK)
        self._licences = LicenceSummary()
        self._chosen: set[str] = set()
        """URLs and captures of what was chosen by a filter: their graphs are chosen too."""
        self._counts = dict.fromkeys(("resources", "versions", "version_bytes", "graphs", "statements"), 0)

    def run(self) -> CorpusSnapshot:
        """Lists all, and adds the snapshot with what it holds in one transaction."""
        entries = LineSorter(self._folder / "entries")
        entries.add(map(entry_line, self._versions()))
        entries.add(map(entry_line, self._graphs()))
        if not self._counts["versions"] and not self._counts["graphs"]:
            raise NotArchived(
                f"nothing of that was in the archive at {self._plan.at}; a snapshot would be empty"
            )
        manifest = self._spooled("manifest", entries.pieces())
        provenance = self._spooled("provenance", self._provenance(manifest).pieces())
        licences = self._licences.rows()
        about = self._about(manifest.sha256, provenance.sha256)
        snapshot = CorpusSnapshot(
            about=about,
            made_at=self._session.now(),
            datacite=datacite(about, licences).decode(),
            licences=readable(licences).decode(),
        )
        self._add(snapshot, manifest, provenance)
        return find_snapshot(self._session, self._plan.name)

    def _about(self, manifest: str, provenance: str) -> SnapshotAbout:
        plan, counts = self._plan, self._counts
        statements = f"{counts['graphs']} graphs with {counts['statements']} statements"
        publisher = plan.publisher or "Tamias"
        versions = f"{counts['versions']} versions of {counts['resources']} resources of the Web and "
        summary = f"{versions if counts['versions'] else ''}{statements}, as of {plan.at}."
        return msgspec.structs.replace(
            plan,
            title=plan.title or f"Snapshot {plan.name}",
            description=plan.description or summary,
            creators=plan.creators or (publisher,),
            publisher=publisher,
            left_out=dict(sorted(self._gate.left_out.items())),
            manifest=manifest,
            provenance=provenance,
            software=f"Tamias {__version__}",
            **counts,
        )

    def _versions(self) -> Iterator[VersionEntry]:
        resources = self._resources()
        while some := list(islice(resources, AT_ONCE)):
            versions = read_versions(self._session, [each.id for each in some])
            declared: dict[str, list[tuple[str, str | None]]] = {}
            for url, portal, licence in declared_licences(self._session, [each.url for each in some]):
                declared.setdefault(url, []).append((portal, licence))
            for resource in some:
                chosen = self._of(resource, versions[resource.id])
                self._counts["resources"] += bool(chosen)
                for version in chosen:
                    self._licences.add_version(host_of_name(resource.url), declared.get(resource.url, ()))
                    yield _entry(resource, version)

    def _of(self, resource: Resource, versions: Sequence[Version]) -> list[Version]:
        """The versions of a resource that are in the snapshot."""
        known = [version for version in versions if version.captured_at <= self._at]
        wanted = known[-1:] if self._plan.latest else known
        chosen = [version for version in wanted if self._gate.passes(version.capture)]
        if self._is_filtered:
            self._chosen |= {resource.url, *(version.capture for version in chosen)}
        self._counts["versions"] += len(chosen)
        self._counts["version_bytes"] += sum(version.byte_size for version in chosen)
        return chosen

    def _resources(self) -> Iterator[Resource]:
        plan, archive = self._plan, self._archive
        if not self._is_filtered:
            yield from archive.resources()
            return
        seen: set[str] = set()
        for found in (
            *(_named(archive, url) for url in plan.urls),
            *(archive.resources(host=each) for each in plan.hosts),
            *(archive.resources(portal=each.rstrip("/") + end) for each in plan.portals for end in ("", "/")),
        ):
            for resource in found:
                if resource.id not in seen:
                    seen.add(resource.id)
                    yield resource

    def _graphs(self) -> Iterator[GraphEntry]:
        with SegmentReader(
            segments_of(self._session, self._archive.data), committed_lengths(self._session)
        ) as reader:
            for held in documents_at(self._second, self._at):
                if not self._has(held) or not self._gate.passes(held.capture):
                    continue
                licences: dict[str, None] = {}
                found = digest_graph(reader.read(held.extent), self._folder / "graph", licences)
                self._licences.add_graph(host_of_name(held.document), licences)
                self._counts["graphs"] += 1
                self._counts["statements"] += found.statements
                yield shown(GraphEntry, found, held, read_at=rfc3339(held.read_at))

    def _has(self, held: HeldDocument) -> bool:
        plan, url = self._plan, held.document
        return (
            not self._is_filtered
            or url in self._chosen
            or held.capture in self._chosen
            or url in map(fetch_url, plan.urls)
            or host_of_name(url) in plan.hosts
            or url.startswith(plan.portals)
        )

    def _provenance(self, manifest: Body) -> LineSorter:
        """Return what the metadata graph says of the fetches that brought what the manifest names."""
        quads = LineSorter(self._folder / "provenance-runs")
        for some in entries_in(_lines(manifest), AT_ONCE):
            for record in named_captures(self._session, list({entry.capture for entry in some})):
                said = [quad for quad in activity_quads(record) if quad.predicate not in _FROM_INSIDE]
                quads.add(split_lines([serialize(said, format=RdfFormat.N_QUADS) or b""]))
        return quads

    def _spooled(self, name: str, pieces: Iterable[bytes]) -> Body:
        path = self._folder / name
        with path.open("xb") as file:
            size, sha256 = write_hashed(pieces, file.write)
        return Body(size=size, sha256=sha256, path=str(path))

    def _add(self, snapshot: CorpusSnapshot, *bodies: Body) -> None:
        """The blobs first and durable, then all rows at once: so there is all of a snapshot, or nothing."""
        last = [each.about for each in list_snapshots(self._session)][-1:]
        with closing(BlobWriter(self._archive.reader.packs, self._second)) as writer:
            prepared = [
                writer.prepare(body, before)
                for body, before in zip(bodies, _digests(last, len(bodies)), strict=True)
            ]
            writer.sync()
            self._session.transact(lambda cursor: self._insert(cursor, snapshot, prepared, bodies[0]))
            writer.settled()

    def _insert(
        self, cursor: Cursor, snapshot: CorpusSnapshot, prepared: Sequence[Prepared], manifest: Body
    ) -> None:
        insert_blobs(cursor, prepared)
        add_snapshot(cursor, snapshot, self._at)
        for some in entries_in(_lines(manifest), PINS_AT_ONCE):
            pin_captures(cursor, self._plan.name, {entry.capture for entry in some})


def snapshot_graphs(archive: ArchiveReader, name: str) -> dict[str, Extent]:
    """Return where the statements of the documents of a snapshot stand. Raises `NotArchived`."""
    manifest = archive.reader.read(find_snapshot(archive.session, name).about.manifest)
    entries = [each for each in read_entries(manifest.splitlines()) if isinstance(each, GraphEntry)]
    places = extents(archive.session, [each.capture for each in entries])
    return {each.document: places[each.capture] for each in entries if each.capture in places}


def _digests(last: Sequence[SnapshotAbout], count: int) -> list[str | None]:
    """Return what the manifest and the provenance may be like: those of the last snapshot."""
    return [last[0].manifest, last[0].provenance] if last else [None] * count


class GraphDigest(msgspec.Struct, frozen=True):
    """Statements as sorted lines, each once."""

    sha256: str
    byte_size: int
    statements: int


def digest_graph(
    chunks: Iterable[bytes], folder: Path, licences: dict[str, None] | None = None
) -> GraphDigest:
    """Digest the N-Quads of a document; large ones are sorted in the folder. Notes declared `licences`."""
    sorter = LineSorter(folder)
    for lines in whole_lines(chunks):
        if licences is not None:
            licences |= dict.fromkeys(licences_in(lines))
        sorter.add(split_lines([lines]))
    digest, size, count = hashlib.sha256(), 0, 0
    for line in sorter.lines():
        digest.update(line)
        size += len(line)
        count += 1
    sorter.clear()
    return GraphDigest(digest.hexdigest(), size, count)


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their line feeds. Other characters that Python takes for the end of a line are none here."""
    for chunk in whole_lines(chunks):
        for line in chunk.split(b"\n"):
            if line:
                yield line + b"\n"


def entries_in(lines: Iterable[bytes], at_once: int) -> Iterator[list[ManifestEntry]]:
    """The entries of a manifest, some at a time."""
    entries = read_entries(lines)
    while some := list(islice(entries, at_once)):
        yield some


def _lines(body: Body) -> Iterator[bytes]:
    assert body.path is not None
    with Path(body.path).open("rb") as file:
        yield from file


def _named(archive: ArchiveReader, url: str) -> Iterator[Resource]:
    """A resource, if it is one: a URL may also be that of a crawled document."""
    try:
        yield archive.resource(url)
    except NotArchived:
        return


def _entry(resource: Resource, version: Version) -> VersionEntry:
    portals = {source.portal for source in resource.sources if source.portal}
    return shown(
        VersionEntry,
        version,
        resource,
        portals=tuple(sorted(portals)),
        path=f"versions/{resource.id}/{version.number}{suffix_of(version.media_type) or '.bin'}",
    )
