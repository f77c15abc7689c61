"""The difference of two versions as plain values, and the limits on what of it is listed."""

from enum import StrEnum
from typing import Any

import msgspec


class DiffKind(StrEnum):
    """The kind of content that was compared."""

    ROWS = "rows"
    TRIPLES = "triples"
    JSON = "json"
    """Values at paths."""
    SHEETS = "sheets"
    """The rows of a workbook, sheet by sheet."""
    MEMBERS = "members"
    """The files of an archive."""
    LINES = "lines"
    BYTES = "bytes"


class What(StrEnum):
    """The kind of change to one part."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Change(msgspec.Struct, frozen=True):
    """A part that has changed."""

    what: What
    where: str | None = None
    """The key of a row, a JSON path, the name of a member, the number of a line; of a workbook the sheet and
    the key of the row, as in `Prices!12`."""
    old: Any = None
    """What was there: of a row its cells by column, of a changed row those that changed."""
    new: Any = None


class Columns(msgspec.Struct, frozen=True):
    """The changes to the columns of a table."""

    added: list[str] = []
    removed: list[str] = []
    renamed: list[tuple[str, str]] = []
    moved: bool = False


class SheetDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to one sheet of a workbook; counts are of its rows."""

    sheet: str
    what: What
    added: int = 0
    removed: int = 0
    changed: int = 0
    key: str | None = None
    columns: Columns | None = None


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two versions. Counts are of everything; `changes` are some of them."""

    kind: DiffKind
    added: int = 0
    removed: int = 0
    changed: int = 0
    changes: list[Change] = []
    truncated: bool = False
    """Whether there are more changes than are told, or values longer than told."""
    key: str | None = None
    """The column by which rows were matched."""
    columns: Columns | None = None
    sheets: list[SheetDiff] = []
    """The sheets of a workbook that are not as they were."""
    notes: list[str] = []

    @property
    def is_empty(self) -> bool:
        """Tell if nothing is different."""
        return not (self.added or self.removed or self.changed or self.columns or self.sheets)


class CollectionDiff(msgspec.Struct, frozen=True):
    """The resources of a portal that were added, that have another version, and that are gone."""

    added: list[str]
    changed: list[str]
    gone: list[str]


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
    truncated: bool = False
    """Whether there are more changes than were counted."""


_PARTS = {
    DiffKind.ROWS: "row",
    DiffKind.TRIPLES: "statement",
    DiffKind.JSON: "value",
    DiffKind.SHEETS: "row",
    DiffKind.MEMBERS: "file",
    DiffKind.LINES: "line",
    DiffKind.BYTES: "byte",
}


def in_words(diff: Diff) -> str:
    """Describe the changes in a sentence.

    >>> in_words(Diff(kind=DiffKind.ROWS, added=12, changed=3, columns=Columns(renamed=[("price", "cost")])))
    '12 rows added, 3 changed; column price renamed to cost'
    >>> in_words(Diff(kind=DiffKind.TRIPLES, removed=1)), in_words(Diff(kind=DiffKind.LINES))
    ('1 statement removed', 'no line changed')
    """
    part = _PARTS.get(diff.kind, "part")
    counts = [(diff.added, "added"), (diff.removed, "removed"), (diff.changed, "changed")]
    counted = [f"{n:,} {what}" for n, what in counts if n]
    if counted:
        plural = "" if counted[0].startswith("1 ") else "s"
        counted[0] = counted[0].replace(" ", f" {part}{plural} ", 1)
    columns = diff.columns or Columns()
    said = [", ".join(counted)] if counted else [] if diff.columns or diff.sheets else [f"no {part} changed"]
    said += [f"sheet {each.sheet} {each.what}" for each in diff.sheets]
    said += [f"column {old} renamed to {new}" for old, new in columns.renamed]
    said += [f"column {name} added" for name in columns.added]
    said += [f"column {name} removed" for name in columns.removed]
    if columns.moved:
        said.append("columns in another order")
    return "; ".join(said)


class DiffLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a comparison."""

    changes: int = 100
    """Changes told; all are counted."""
    text: int = 500
    """Characters told of one value."""
    cells: int = 100
    """Cells told of one row."""
    read_bytes: int = 256 << 20
    """Larger files are compared byte by byte only."""
    held_bytes: int = 64 << 20
    """Larger RDF and JSON lines are compared line by line; larger JSON is not held in memory."""
    unpacked_bytes: int = 256 << 20

    def shorten(self, text: str) -> str:
        """Return a text, or its beginning.

        >>> DiffLimits(text=3).shorten("abcdef")
        'abc…'
        """
        return text if len(text) <= self.text else text[: self.text] + "…"

    def shares(self, sizes: dict[What, int]) -> dict[What, int]:
        """Return how many changes of each kind are listed, so that no kind is left out.

        >>> list(DiffLimits(changes=10).shares({What.ADDED: 50, What.REMOVED: 1}).values())
        [1, 9]
        """
        shares: dict[What, int] = {}
        for place, (what, size) in enumerate(sorted(sizes.items(), key=lambda each: each[1])):
            shares[what] = min(size, (self.changes - sum(shares.values())) // (len(sizes) - place))
        return shares
