"""The difference of two RDF documents, statement by statement.

Blank nodes are matched by what is said of them.
"""

from collections import Counter
from contextlib import suppress
from pathlib import Path

import msgspec
from pyoxigraph import RdfFormat

from tamias.content.blank_nodes import divide_blank
from tamias.content.formats import syntax_of
from tamias.features.archive.canonical.statements import (
    BrokenDocument,
    parsed_lines,
    read_document,
    recovered_lines,
    statement_lines,
)
from tamias.features.diffs.blank_matching import named_alike
from tamias.model.diff import Change, Diff, DiffKind, DiffLimits, What
from tamias.model.document import Unreadable

_ONE_A_LINE = frozenset({RdfFormat.N_TRIPLES, RdfFormat.N_QUADS})


class StatementsDiff(msgspec.Struct, frozen=True):
    """Whole lines of N-Quads, without line ends, in order. A blank node of both documents has one label."""

    added: list[bytes]
    removed: list[bytes]
    around: list[bytes] = []
    """Statements of the old document about blank nodes, by which the nodes of the others are found."""
    notes: list[str] = []


def statements_diff(
    old: Path,
    new: Path,
    media_type: str,
    limits: DiffLimits,
    base: str | None = None,
    *,
    old_type: str | None = None,
) -> StatementsDiff:
    """Return the statements removed and added. Raises `Unreadable`.

    The old document is in the same syntax unless another is given.
    """
    notes: list[str] = []
    return lines_diff(*_lines(old, new, (old_type or media_type, media_type), limits, base, notes), notes)


def lines_diff(was: set[bytes], now: set[bytes], notes: list[str]) -> StatementsDiff:
    """Return the lines removed and added, with blank nodes matched."""
    old_ground, old_blank = divide_blank(was)
    new_ground, new_blank = divide_blank(now)
    old_named, new_named = named_alike(old_blank, new_blank, notes)
    gone, come = Counter(old_named), Counter(new_named)
    return StatementsDiff(
        added=sorted([*(set(new_ground) - set(old_ground)), *(come - gone).elements()]),
        removed=sorted([*(set(old_ground) - set(new_ground)), *(gone - come).elements()]),
        around=old_named,
        notes=notes,
    )


def triples_diff(found: StatementsDiff, limits: DiffLimits) -> Diff:
    """Count what was found, and show some of the statements."""
    sizes = {What.ADDED: len(found.added), What.REMOVED: len(found.removed)}
    shares = limits.shares(sizes)
    changes = [
        Change(What.REMOVED, old=_shown(line, limits)) for line in found.removed[: shares[What.REMOVED]]
    ]
    changes += [Change(What.ADDED, new=_shown(line, limits)) for line in found.added[: shares[What.ADDED]]]
    return Diff(
        kind=DiffKind.TRIPLES,
        added=sizes[What.ADDED],
        removed=sizes[What.REMOVED],
        changes=changes,
        truncated=sum(sizes.values()) > len(changes),
        notes=found.notes,
    )


def _shown(line: bytes, limits: DiffLimits) -> str:
    return limits.shorten(line.decode("utf-8", "replace"))


def _lines(
    old: Path, new: Path, types: tuple[str, str], limits: DiffLimits, base: str | None, notes: list[str]
) -> tuple[set[bytes], set[bytes]]:
    before, syntax = map(syntax_of, types)
    if syntax in _ONE_A_LINE and before == syntax:
        with suppress(BrokenDocument):
            return _differing_lines(old, new, syntax, limits, base)
    return (
        _statements(old, types[0], limits, base, ("the old version", notes)),
        _statements(new, types[1], limits, base, ("the new version", notes)),
    )


def _differing_lines(
    old: Path, new: Path, syntax: RdfFormat, limits: DiffLimits, base: str | None
) -> tuple[set[bytes], set[bytes]]:
    """Return the statements of the lines that differ; equal lines without blank nodes are not parsed."""
    was, now = (set(read_document(path, limits.held_bytes).splitlines()) for path in (old, new))
    same = {line for line in was & now if b"_:" not in line}
    was -= same
    now -= same
    return parsed_lines(b"\n".join(was), syntax, base), parsed_lines(b"\n".join(now), syntax, base)


def _statements(
    path: Path, media_type: str, limits: DiffLimits, base: str | None, notes: tuple[str, list[str]]
) -> set[bytes]:
    """Return the statements of a document; of a broken one, those that a crawl would read."""
    try:
        return statement_lines(path, media_type, limits.held_bytes, base)
    except BrokenDocument as fault:
        if syntax_of(media_type) == RdfFormat.JSON_LD:  # its values are compared
            raise
        which, known = notes
        try:
            lines = recovered_lines(path, media_type, base)
        except Unreadable:
            raise fault from None
        known.append(f"{which} is broken ({fault}): compared by the statements that can be read")
        return lines
