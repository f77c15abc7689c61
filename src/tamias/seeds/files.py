"""Seeds from the command and from files, line by line: URLs, JSON lines of a URLFrontier, indexes of web
archives.

A seed is an address itself, or a kind and an address: `sparql:https://example.org/sparql`. A line that names
no URL becomes a seed with a problem.
"""

import csv
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, cast

import msgspec

from tamias.content.formats import media_type_of
from tamias.content.outside_lines import outside_lines
from tamias.model.errors import UrlError, UsageError
from tamias.model.item import NEVER, TRUSTED, Seed
from tamias.model.kind import format_tag
from tamias.model.url import fetch_url

_WITH_KIND = re.compile(r"([a-z][a-z0-9-]*):(?=[a-z]+://)")


class AddressSeeds:
    """Carries out `protocols.SeedSource` for one URL."""

    def seeds(self, argument: str) -> Iterator[Seed]:
        try:
            yield seed_of(argument)
        except UrlError as error:
            raise UrlError(f"{error}; {_instead_of(argument)}") from error


def _instead_of(text: str) -> str:
    """Return what to type instead of what is no URL."""
    if Path(text).is_file():
        return (
            f"it is a file: 'tamias read {text}' reads it, 'tamias crawl --seeds {text}' crawls what it "
            f"lists, 'tamias add --file {text}' watches what it lists"
        )
    return "a seed is a full address such as https://example.org/data.ttl"


def seed_of(text: str, tags: tuple[str, ...] = ()) -> Seed:
    """The seed that a text names. Raises `UrlError` when it is no address.

    >>> seed_of("sparql:https://example.org/sparql").kind
    'sparql'
    """
    found = _WITH_KIND.match(text)
    address = text[found.end() :] if found else text
    fetch_url(address)
    if found is None:
        return Seed(address=address, tags=tags)
    return Seed(address=address, kind=found[1], tags=(TRUSTED, *tags))


LONGEST_LINE = 1 << 20
MOST_BYTES = 1 << 40
_SHOWN = 200


@contextmanager
def open_seeds(name: str) -> Iterator[BufferedReader]:
    """Open a file, or stdin for `-`. What goes wrong becomes one sentence."""
    try:
        if name == "-":
            yield cast("BufferedReader", sys.stdin.buffer)
        else:
            with Path(name).open("rb") as stream:
                yield stream
    except OSError as error:
        raise UsageError(f"cannot read the seeds of {name}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"cannot read the seeds of {name}: {error}") from error


def seeds_by_line(name: str, read: Callable[[bytes], Seed | None]) -> Iterator[Seed]:
    """Yield the seed of each line. `read` returns None for a line without one, and raises `ValueError`."""
    with open_seeds(name) as stream:
        yield from _read_lines(stream, "stdin" if name == "-" else name, read)


def sent_seeds(content: bytes) -> Iterator[Seed]:
    """Yield the seeds of a list that was sent, by the rules of `ListSeeds`."""
    yield from _read_lines(BufferedReader(BytesIO(content)), "seeds", _ListReader().read)


def _read_lines(stream: BufferedReader, shown: str, read: Callable[[bytes], Seed | None]) -> Iterator[Seed]:
    for number, line in enumerate(_lines(stream), start=1):
        place = f"{shown} line {number}"
        if line is None:
            yield Seed(address="", line=place, problem=f"longer than {LONGEST_LINE} bytes")
        elif (seed := _read_line(read, line)) is not None:
            yield msgspec.structs.replace(seed, line=place)


def _lines(stream: BufferedReader) -> Iterator[bytes | None]:
    """Yield the lines, however they end; None for one that is too long."""
    for line in outside_lines(stream, LONGEST_LINE, MOST_BYTES):
        yield from (None,) if line is None else line.split(b"\r")


def _read_line(read: Callable[[bytes], Seed | None], line: bytes) -> Seed | None:
    try:
        return read(line)
    except UnicodeDecodeError:
        problem = "not UTF-8 text"
    except RecursionError:
        problem = "nested too deeply"
    except ValueError as error:
        problem = str(error)
    return Seed(address=line[:_SHOWN].decode("utf-8", "replace"), problem=problem)


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


LAST_SECOND = 253_402_300_799
"""The end of the year 9999: a later date is taken for this one."""
MOST_NAME = 255


class UrlFrontierSeeds:
    """Carries out `protocols.SeedSource`: keys, crawls, metadata and dates are kept."""

    def seeds(self, argument: str) -> Iterator[Seed]:
        return seeds_by_line(argument, seed_of_line)


def seed_of_line(line: bytes) -> Seed | None:
    """The seed of one line; None for an empty one. Raises `ValueError` for what is none.

    >>> seed_of_line(b'{"discovered": {"info": {"url": "http://a.example/", "key": "k"}}}').queue
    'k'
    """
    text = line.strip()
    if not text or text.startswith(b"#"):
        return None
    if not text.startswith(b"{"):
        return Seed(address=fetch_url(text.decode()))
    item = msgspec.json.decode(text, type=dict[str, Any])
    known = _known(item)
    state = known or _table(item.get("discovered") or {})
    info = _table(state.get("info") or item.get("info") or item)
    due = None if known is None else _due(known)
    return Seed(
        address=fetch_url(_name(info, "url", 32_768)),
        queue=_name(info, "key") or None,
        crawl=_name(info, "crawlID") or None,
        metadata=_metadata(_table(info.get("metadata") or {})),
        due=due,
    )


def _known(item: dict[str, Any]) -> dict[str, Any] | None:
    return _table(item["known"]) if item.get("known") is not None else None


def _due(known: dict[str, Any]) -> int:
    """Protocol buffers write long numbers as text, and leave out what is zero."""
    date_text = known.get("refetchableFromDate") or known.get("refetchable_from_date") or 0
    date = int(msgspec.convert(date_text, int | str))
    if date < 0:
        raise ValueError("a date before all dates")
    return min(date, LAST_SECOND) * 1000 if date else NEVER


def _metadata(table: dict[str, Any]) -> dict[str, list[str]]:
    found = {}
    for name, values in table.items():
        listed = values.get("values", []) if isinstance(values, dict) else values
        found[name] = msgspec.convert(listed, list[str])
    return found


def _table(value: Any) -> dict[str, Any]:
    return msgspec.convert(value, dict[str, Any])


def _name(info: dict[str, Any], field: str, most: int = MOST_NAME) -> str:
    value = info.get(field) or ""
    if not isinstance(value, str) or len(value) > most or "\0" in value:
        raise ValueError(f"{field} is not a text of at most {most} characters")
    return value


_CDXJ = re.compile(rb"[^ ]* [0-9]{4,17} (\{.*\})$")
_URL_FIELD = 2
"""Of a CDX line, where no header says another: key, time, URL."""


class CdxSeeds:
    """Carries out `protocols.SeedSource`. An address that stands there many times in a row is one seed."""

    def seeds(self, argument: str) -> Iterator[Seed]:
        reader = _CdxReader()
        return seeds_by_line(argument, reader.read)


class _CdxReader:
    """Reads line after line."""

    def __init__(self) -> None:
        self._field = _URL_FIELD
        self._last = ""

    def read(self, line: bytes) -> Seed | None:
        if line.startswith(b" CDX "):
            self._field = line.split()[1:].index(b"a")
            return None
        if not line.strip() or line.startswith((b"#", b"!")):
            return None
        address = fetch_url(self._address(line))
        if address == self._last:
            return None
        self._last = address
        return Seed(address=address)

    def _address(self, line: bytes) -> str:
        found = _CDXJ.fullmatch(line.rstrip())
        if found:
            record = msgspec.json.decode(found[1], type=dict[str, Any])
            return str(record.get("url") or record.get("original") or "")
        fields = line.split()
        if len(fields) <= self._field:
            raise ValueError("too few fields")
        return fields[self._field].decode("utf-8", "replace")
