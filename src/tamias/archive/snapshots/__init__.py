"""Snapshots of the corpus: what each names, as rows and as lines of its manifest."""

from tamias.archive.snapshots.entries import (
    GraphEntry,
    ManifestEntry,
    SnapshotAbout,
    SnapshotGap,
    VersionEntry,
)
from tamias.archive.snapshots.rows import (
    CorpusSnapshot,
    add_snapshot,
    find_snapshot,
    list_snapshots,
    remove_snapshot,
)

__all__ = [
    "CorpusSnapshot",
    "GraphEntry",
    "ManifestEntry",
    "SnapshotAbout",
    "SnapshotGap",
    "VersionEntry",
    "add_snapshot",
    "find_snapshot",
    "list_snapshots",
    "remove_snapshot",
]
