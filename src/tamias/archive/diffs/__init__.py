"""What is different between two versions of a file, or of a collection of files."""

from tamias.archive.diffs.compare import diff
from tamias.archive.diffs.text import CollectionDiff, collection_diff
from tamias.archive.diffs.triples import StatementsDiff, statements_diff
from tamias.archive.diffs.updates import as_sparql_update
from tamias.archive.diffs.values import Change, Columns, Diff, DiffKind, DiffLimits, What, in_words

__all__ = [
    "Change",
    "CollectionDiff",
    "Columns",
    "Diff",
    "DiffKind",
    "DiffLimits",
    "StatementsDiff",
    "What",
    "as_sparql_update",
    "collection_diff",
    "diff",
    "in_words",
    "statements_diff",
]
