"""A seed list in a file: one URL a line, CSV with a `uri` column, or the JSON lines of a URLFrontier."""

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from tamias.content.formats import media_type_of
from tamias.model.errors import UrlError, UsageError
from tamias.model.item import TRUSTED, Seed
from tamias.model.kind import format_tag
from tamias.seeds.address import seed_of

_LONGEST_LINE = 65536
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
        if argument == "-":
            yield from self._read("stdin", _decoded("stdin", sys.stdin.buffer))
            return
        try:
            with Path(argument).open("rb") as file:
                yield from self._read(argument, _decoded(argument, file))
        except OSError as error:
            raise UsageError(f"cannot read the seed file {argument}: {error.strerror}") from error

    def _read(self, name: str, lines: Iterator[str]) -> Iterator[Seed]:
        header: list[str] | None = None
        for number, line in enumerate(lines, start=1):
            if len(line) > _LONGEST_LINE:
                raise UsageError(f"{name} line {number} is longer than {_LONGEST_LINE} characters")
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            if number == 1 and "uri" in _columns(text):
                header = _columns(text)
                continue
            try:
                yield _seed(text, header)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{name} line {number}: {error}") from error


def _decoded(name: str, file: BinaryIO) -> Iterator[str]:
    """The lines of a list, however they end."""
    number = 0
    for raw in file:
        try:
            text = raw.decode("utf-8" if number else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"{name} line {number + 1} is not UTF-8 text: {error.reason}") from error
        for line in io.StringIO(text, newline=None):
            number += 1
            yield line


def _columns(text: str) -> list[str]:
    return [cell.strip().lower() for cell in next(csv.reader([text]))]


def _seed(text: str, header: list[str] | None) -> Seed:
    if text.startswith("{"):
        return seed_of(_known_url(json.loads(text)))
    if header is None:
        return seed_of(text)
    cells = dict(zip(header, (cell.strip() for cell in next(csv.reader([text]))), strict=False))
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


def _known_url(entry: Any) -> str:
    """The URL of a line that a URLFrontier wrote, of whatever sort the item is."""
    while isinstance(entry, dict):
        if isinstance(entry.get("url"), str):
            return str(entry["url"])
        entry = entry.get("info") or entry.get("known") or entry.get("discovered")
    raise UrlError("a JSON line without a url")
