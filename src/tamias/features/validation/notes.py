"""Notes on versions that broke their schema."""

from collections.abc import Sequence

import msgspec

from tamias.archive.moments import rfc3339
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.validation.table_check import SchemaFault
from tamias.model.resource import VersionNote

_SQL = statements("tamias.features.validation", "validation.sql")


def version_notes(session: Session, resources: Sequence[str] | None) -> list[VersionNote]:
    """Return a note about each version that broke its schema or was not checked; None: of all resources."""
    notes: list[VersionNote] = []
    broken: dict[tuple[str, str], str] = {}
    rows = session.fetch_all(
        _SQL["read_checks"], {"resource": None if resources is None else list(resources)}
    )
    for resource, number, captured_at, file, is_valid, encoded, is_newest in rows:
        faults = msgspec.convert(encoded, list[SchemaFault])
        if is_valid:
            broken.pop((resource, file), None)
            continue
        if is_valid is False:
            since = broken.setdefault((resource, file), rfc3339(captured_at)[:10])
            text = f"broke its schema on {since}: {in_words(faults)} ({file})"
        else:
            text = f"{in_words(faults)} ({file})"
        notes.append(VersionNote(resource, number, text, is_trouble=is_valid is False and is_newest))
    return notes


def in_words(faults: Sequence[SchemaFault]) -> str:
    """Return the first fault, and how many more there are.

    >>> in_words([SchemaFault("type is date", "date", 17), SchemaFault("missing")])
    'column date, row 17: type is date; and 1 more'
    """
    first, more = faults[0], len(faults) - 1
    places = [f"column {first.column}"] if first.column else []
    places += [f"row {first.row}"] if first.row else []
    said = [", ".join(places), first.text[:200]]
    return ": ".join(filter(None, said)) + (f"; and {more} more" if more else "")
