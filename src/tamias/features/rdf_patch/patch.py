"""Changes from one document to another as RDF Patch (https://afs.github.io/rdf-delta/rdf-patch.html)."""

from collections.abc import Iterable
from pathlib import Path

from tamias.content.blank_nodes import Colours, divide_blank
from tamias.content.rdf_canonical import canonical_nquads
from tamias.features.archive.canonical.statements import BrokenDocument, recovered_lines, statement_lines
from tamias.model.diff import DiffLimits

RDF_PATCH = "application/rdf-patch"


def rdf_patch(old: Path, new: Path, media_type: str, *, old_type: str, base: str | None = None) -> str:
    """Return a patch that turns the graph of one file into that of another. Raises `Unreadable`."""
    was, now = (stable_lines(path, kind, base) for path, kind in ((old, old_type), (new, media_type)))
    return "".join(transaction(sorted(was - now), sorted(now - was)))


def transaction(removed: Iterable[bytes], added: Iterable[bytes]) -> list[str]:
    """Return the lines of a transaction; none where nothing changed."""
    rows = [f"{sign} {line.decode()}\n" for sign, lines in (("D", removed), ("A", added)) for line in lines]
    return ["TX .\n", *rows, "TC .\n"] if rows else []


def stable_lines(path: Path, media_type: str, base: str | None) -> set[bytes]:
    """Return the statements as N-Quads; labels of blank nodes depend on nothing but the graph.

    So the statements that one patch adds are those that the next one removes. Raises `Unreadable`.
    """
    try:
        lines = statement_lines(path, media_type, DiffLimits().held_bytes, base)
    except BrokenDocument:
        lines = recovered_lines(path, media_type, base)
    ground, blank = divide_blank(lines)
    colours = Colours(blank).of
    names = {node: b"_:b" + colour.hex().encode() for node, colour in colours.items()}
    if len(set(names.values())) == len(names):
        return {*ground, *(each.written(names) for each in blank)}
    # There are nodes of which the same is said.
    text = b"".join(each.written({node: node for node in each.nodes}) + b"\n" for each in blank)
    return {*ground, *canonical_nquads(text).splitlines()}
