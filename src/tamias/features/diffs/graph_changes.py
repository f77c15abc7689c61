"""Changes of crawled graphs between two states of many documents: of the corpus, or of snapshots."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from tamias.archive.captures import documents_at
from tamias.archive.file_store import segments_of
from tamias.archive.moments import Moment, milliseconds
from tamias.archive.reader.library import ArchiveReader
from tamias.database.connect import Database
from tamias.features.diffs.text import escaped
from tamias.features.diffs.triples import StatementsDiff, lines_diff
from tamias.model.capture import Extent
from tamias.model.diff import What
from tamias.model.errors import UrlError
from tamias.model.item import NEVER
from tamias.model.url import host
from tamias.plugins import load
from tamias.sinks.segments.segment_files import SegmentReader

_MOST_LINES = 50
_SIGNS = {What.ADDED: "+", What.REMOVED: "-", What.CHANGED: "~"}

Graphs = Mapping[str, Extent]
"""Where the statements of documents stand."""


class GraphChange(msgspec.Struct, frozen=True):
    """A document that holds other statements, with its N-Quads before and after."""

    document: str
    what: What
    old: bytes
    new: bytes

    def differing(self) -> StatementsDiff:
        """Return the lines added and removed, with blank nodes matched."""
        return lines_diff(_lines(self.old), _lines(self.new), [])


class ChangeCounts(msgspec.Struct):
    """Statements of one kind that were added and removed."""

    added: int = 0
    removed: int = 0


class GraphsDiff(msgspec.Struct, kw_only=True):
    """The difference of many graphs, counted by document, host and predicate."""

    added: int = 0
    removed: int = 0
    documents: dict[str, ChangeCounts] = {}
    what: dict[str, What] = {}
    """Whether a document is new, changed or gone."""
    hosts: dict[str, ChangeCounts] = {}
    predicates: dict[str, ChangeCounts] = {}


def graphs_at(archive: ArchiveReader, moment: Moment) -> Graphs:
    """Return the graphs as they were at a time."""
    return _graphs_at(archive, milliseconds(moment))


def _graphs_at(archive: ArchiveReader, at: int) -> Graphs:
    return {each.document: each.extent for each in documents_at(archive.session, at)}


def graphs_of_snapshot(archive: ArchiveReader, name: str) -> Graphs:
    """Return the graphs that a snapshot names. Raises `NotArchived`."""
    found: Graphs = load("comparisons", "snapshot_graphs")(archive, name)
    return found


def changed_graphs(archive: ArchiveReader, before: Graphs, after: Graphs) -> Iterator[GraphChange]:
    """Yield the documents with other statements, in the order in which they are stored."""
    gone = [document for document in before if document not in after]
    changed = [document for document, extent in after.items() if extent != before.get(document)]
    with closing(_Statements(archive)) as old, closing(_Statements(archive)) as new:
        for document in [*changed, *gone]:
            was, now = old.read(before.get(document)), new.read(after.get(document))
            if was != now:
                what = What.ADDED if document not in before else What.CHANGED
                yield GraphChange(document, what if document in after else What.REMOVED, was, now)


def count_changes(changes: Iterable[GraphChange]) -> GraphsDiff:
    """Count changes by document, host and predicate."""
    found = GraphsDiff()
    for each in changes:
        diff = each.differing()
        if diff.added or diff.removed:
            found.what[each.document] = each.what
        for field, lines in (("added", diff.added), ("removed", diff.removed)):
            predicates = Counter(line.split(b" ", 2)[1].decode("utf-8", "replace")[1:-1] for line in lines)
            _add(found.documents, each.document, field, len(lines))
            _add(found.hosts, _host(each.document), field, len(lines))
            for predicate, count in predicates.items():
                _add(found.predicates, predicate, field, count)
            setattr(found, field, getattr(found, field) + len(lines))
    return found


def graphs_lines(found: GraphsDiff) -> Iterator[str]:
    """Yield the lines that `tamias diff` prints."""
    kinds = Counter(found.what.values())
    counts = ", ".join(f"{kinds[what]:,} {what}" for what in (What.ADDED, What.CHANGED, What.REMOVED))
    yield f"documents: {counts}; statements: {found.added:,} added, {found.removed:,} removed"
    for title, counted in (("by host", found.hosts), ("by predicate", found.predicates)):
        yield f"{title}:"
        for name, each in sorted(counted.items()):
            yield f"  {escaped(name) or '(none)'}  +{each.added:,} -{each.removed:,}"
    for document, each in sorted(found.documents.items()):
        yield f"{_SIGNS[found.what[document]]} {escaped(document)}  +{each.added:,} -{each.removed:,}"


def changed_since(database: Database, data: Path, since: int) -> list[str]:
    """Return the lines that say what has changed in all crawled graphs since a time."""
    with closing(ArchiveReader(data, database=database)) as archive:
        before, after = (_graphs_at(archive, at) for at in (since - 1, NEVER))
        return [*graphs_lines(count_changes(changed_graphs(archive, before, after)))][:_MOST_LINES]


def written_states(changes: Iterable[GraphChange], folder: Path) -> tuple[Path, Path]:
    """Write the N-Quads of changed documents, as they were before and after, to two files."""
    paths = folder / "old.nq", folder / "new.nq"
    with paths[0].open("wb") as old, paths[1].open("wb") as new:
        for each in changes:
            old.write(each.old)
            new.write(each.new)
    return paths


class _Statements:
    def __init__(self, archive: ArchiveReader) -> None:
        self._reader = SegmentReader(segments_of(archive.session, archive.data))

    def read(self, extent: Extent | None) -> bytes:
        return b"".join(self._reader.read(extent)) if extent else b""

    def close(self) -> None:
        self._reader.close()


def _lines(statements: bytes) -> set[bytes]:
    """Return whole lines; what was forgotten has left empty ones."""
    return {line for line in statements.split(b"\n") if line}


def _add(counts: dict[str, ChangeCounts], name: str, field: str, more: int) -> None:
    if not more:
        return
    each = counts.setdefault(name, ChangeCounts())
    setattr(each, field, getattr(each, field) + more)


def _host(name: str) -> str:
    try:
        return host(name)
    except UrlError:
        return ""
