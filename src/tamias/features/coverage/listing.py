"""A list of URLs with how often each was seen: text, CSV with a header, either packed with gzip."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tamias.content.outside_lines import outside_texts
from tamias.model.errors import UrlError, UsageError
from tamias.model.url import fetch_url

LONGEST_LINE = 65_536
MOST_BYTES = 16 << 30
URL_COLUMNS = ("url", "uri", "address")
COUNT_COLUMNS = ("count", "frequency", "freq", "n", "times", "weight")


class Listed(msgspec.Struct, frozen=True):
    """One line."""

    url: str
    count: float = 1.0


class Header(msgspec.Struct, frozen=True):
    """How the lines of a CSV file are cut, and where URL and count stand in them."""

    delimiter: str
    url: int
    count: int | None


def listed_urls(path: Path) -> Iterator[Listed | None]:
    """The lines of a list; None for one that is neither URL nor comment. Raises `UsageError`."""
    header: Header | None = None
    for number, line in enumerate(_texts(path)):
        if line is None:
            yield None
        elif number == 0 and (header := _header(line)) is not None:
            continue
        elif line.strip() and not line.startswith("#"):
            yield _read(line, header)


def _texts(path: Path) -> Iterator[str | None]:
    try:
        yield from outside_texts(path, LONGEST_LINE, MOST_BYTES)
    except ValueError as error:
        raise UsageError(f"cannot read the list {path}: {error}") from error


def _header(line: str) -> Header | None:
    """The header of a CSV file; None where the first line is none.

    >>> _header("Frequency;URL").count
    0
    """
    for delimiter in (",", "\t", ";"):
        names = [name.strip().lower() for name in next(csv.reader([line], delimiter=delimiter), [])]
        url = next((names.index(name) for name in URL_COLUMNS if name in names), None)
        if url is not None:
            count = next((names.index(name) for name in COUNT_COLUMNS if name in names), None)
            return Header(delimiter, url, count)
    return None


def _read(line: str, header: Header | None) -> Listed | None:
    address, count = _cells(line, header)
    try:
        times = float(count)
        if not (math.isfinite(times) and times > 0):
            return None
        return Listed(fetch_url(address.strip()), times)
    except (ValueError, UrlError):
        return None


def _cells(line: str, header: Header | None) -> tuple[str, str]:
    if header is None:
        address, _, count = line.strip().partition("\t")
        return address, count or "1"
    try:
        cells = next(csv.reader([line], delimiter=header.delimiter))
        return cells[header.url], cells[header.count] if header.count is not None else "1"
    except (IndexError, csv.Error):
        return "", "1"
