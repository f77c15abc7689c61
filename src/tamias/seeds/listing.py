"""A seed list in a file: one URL a line, CSV with a `uri` column, or the JSON lines of a URLFrontier."""

import csv
from collections.abc import Iterator

import msgspec

from tamias.content.formats import media_type_of
from tamias.model.item import TRUSTED, Seed
from tamias.model.kind import format_tag
from tamias.seeds.address import seed_of
from tamias.seeds.imported import seeds_by_line
from tamias.seeds.urlfrontier import seed_of_line

_MOST_TAGS = 20
_ONE_DOCUMENT = frozenset({"dereferenceable", "dump", "http", "unknown"})
"""Types of other crawlers' lists that mean an ordinary URL."""


class ListSeeds:
    """Carries out `protocols.SeedSource` for a file, or `-` for stdin.

    Blank lines and `#` comments are skipped.

    A `type` is obeyed: the kind of a source (`ckan`, `sparql`) or an expected format (`html`, `text/csv`).
    The other columns of a CSV file become tags, `column=value`.
    """

    def seeds(self, argument: str) -> Iterator[Seed]:
        return seeds_by_line(argument, _ListReader().read)


class _ListReader:
    """Reads line after line; the first may name the columns."""

    def __init__(self) -> None:
        self._is_first = True
        self._columns: list[str] | None = None

    def read(self, line: bytes) -> Seed | None:
        is_first, self._is_first = self._is_first, False
        text = line.decode("utf-8-sig" if is_first else "utf-8").strip()
        if is_first and "uri" in (columns := _cells(text.lower())):
            self._columns = columns
            return None
        return _seed(text, self._columns) if text and not text.startswith("#") else None


def _cells(text: str) -> list[str]:
    """Return the cells of a CSV line. Raise `ValueError` for what is none."""
    try:
        return [cell.strip() for cell in next(csv.reader([text]), [])]
    except csv.Error as error:
        raise ValueError(f"not a CSV line: {error}") from error


def _seed(text: str, header: list[str] | None) -> Seed | None:
    if text.startswith("{"):
        return seed_of_line(text.encode())
    if header is None:
        return seed_of(text)
    cells = dict(zip(header, _cells(text), strict=False))
    address, kind = cells.pop("uri", ""), cells.pop("type", "").lower()
    tags = tuple(f"{column}={value}" for column, value in cells.items() if value and "\t" not in value)
    return _of_type(seed_of(address, tags[:_MOST_TAGS]), kind)


def _of_type(seed: Seed, kind: str) -> Seed:
    """The seed as what its list says it is; a prefix of the address says more."""
    if not kind or kind in _ONE_DOCUMENT or seed.kind is not None:
        return seed
    if media_type := media_type_of(kind):
        return msgspec.structs.replace(seed, tags=(format_tag(media_type), *seed.tags))
    return msgspec.structs.replace(seed, kind=kind, tags=(TRUSTED, *seed.tags))
