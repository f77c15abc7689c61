"""Changes of crawled graphs between two states of many documents: of the corpus, or of snapshots."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from tamias.archive.captures import documents_at
from tamias.archive.file_store import segments_of
from tamias.database.connect import Database, Session
from tamias.features.diffs.text import escaped
from tamias.features.diffs.triples import lines_diff
from tamias.model.capture import Extent
from tamias.model.diff import ChangeCounts, GraphsDiff, What
from tamias.model.errors import UsageError
from tamias.model.item import NEVER
from tamias.model.url import host_of_name
from tamias.sinks.segments.segment_files import SegmentReader

_MOST_LINES = 50
_SIGNS = {What.ADDED: "+", What.REMOVED: "-", What.CHANGED: "~"}

OpenSegment = Callable[[int], BinaryIO]
Graphs = Mapping[str, Extent]
"""Where the statements of documents stand."""


class GraphChange(msgspec.Struct, frozen=True):
    """A document that holds other statements, with its N-Quads before and after."""

    document: str
    what: What
    old: bytes
    new: bytes


def graphs_at(session: Session, at: int, most: int | None = None) -> Graphs:
    """Return the graphs as they were at a time. Raises `UsageError` where there are more than `most`."""
    found = {each.document: each.extent for each in islice(documents_at(session, at), most)}
    if most is not None and len(found) == most:
        raise UsageError(f"{most:,} documents or more are compared by 'tamias diff --crawl --since TIME'")
    return found


def changed_graphs(open_segment: OpenSegment, before: Graphs, after: Graphs) -> Iterator[GraphChange]:
    """Yield the documents with other statements, in the order in which they are stored."""
    gone = [document for document in before if document not in after]
    changed = [document for document, extent in after.items() if extent != before.get(document)]
    with SegmentReader(open_segment) as old, SegmentReader(open_segment) as new:
        for document in [*changed, *gone]:
            was, now = (
                b"".join(reader.read(each[document])) if document in each else b""
                for reader, each in ((old, before), (new, after))
            )
            if was != now:
                what = What.ADDED if document not in before else What.CHANGED
                yield GraphChange(document, what if document in after else What.REMOVED, was, now)


def changes_between(
    session: Session,
    open_segment: OpenSegment,
    since: int,
    until: int = NEVER,
    most: tuple[int | None, int | None] = (None, None),
) -> GraphsDiff:
    """Count the changes of crawled graphs from the beginning of one time to the end of another.

    At `most` so many documents are compared, and so many bytes of statements are read.
    """
    before, after = (graphs_at(session, at, most[0]) for at in (since - 1, until))
    return count_changes(changed_graphs(open_segment, before, after), most[1])


def count_changes(changes: Iterable[GraphChange], most_bytes: int | None = None) -> GraphsDiff:
    """Count changes by document, host and predicate, until so many bytes are compared."""
    found, read = GraphsDiff(), 0
    for each in changes:
        read += len(each.old) + len(each.new)
        if most_bytes is not None and read > most_bytes:
            found.truncated = True
            break
        diff = lines_diff(_lines(each.old), _lines(each.new), [])
        if diff.added or diff.removed:
            found.what[each.document] = each.what
        for field, lines in (("added", diff.added), ("removed", diff.removed)):
            predicates = Counter(line.split(b" ", 2)[1].decode("utf-8", "replace")[1:-1] for line in lines)
            _add(found.documents, each.document, field, len(lines))
            _add(found.hosts, host_of_name(each.document), field, len(lines))
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
    with closing(database.session()) as session:
        found = changes_between(session, segments_of(session, data), since)
        return [*islice(graphs_lines(found), _MOST_LINES)]


def written_states(changes: Iterable[GraphChange], folder: Path) -> tuple[Path, Path]:
    """Write the N-Quads of changed documents, as they were before and after, to two files."""
    paths = folder / "old.nq", folder / "new.nq"
    with paths[0].open("wb") as old, paths[1].open("wb") as new:
        for each in changes:
            old.write(each.old)
            new.write(each.new)
    return paths


def _lines(statements: bytes) -> set[bytes]:
    """Return whole lines; what was forgotten has left empty ones."""
    return {line for line in statements.split(b"\n") if line}


def _add(counts: dict[str, ChangeCounts], name: str, field: str, more: int) -> None:
    if not more:
        return
    each = counts.setdefault(name, ChangeCounts())
    setattr(each, field, getattr(each, field) + more)
