"""Listings of FTP directories, in the three forms there are, as lines of JSON. Pure.

Names are kept as they came, bytes that are no UTF-8 as lone surrogates; whoever reads the lines judges them.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

LISTING = "application/x-ftp-listing+json"
"""Lines of JSON objects: `name`, `type` (`file` or `dir`), `size`, `modified`; or a `problem`, in words."""

_MOST_LINE = 8 * 1024
_DATE = r"(?:[^\W\d]\S{1,9}\s+\d{1,2}|\d{1,2}\.?\s+[^\W\d]\S{1,9})\s+(?:\d{1,2}:\d\d|\d{4})"
_UNIX = re.compile(
    rf"([dl-])[^\s/]{{9,10}}\s*(?:\S+\s+){{1,7}}?(\d{{1,18}})\s+(?:{_DATE}|\d{{4}}-\d\d-\d\d\s+\d\d:\d\d)\s(.+)"
)
_WINDOWS = re.compile(
    r"(?:\d\d-\d\d-\d\d(?:\d\d)?|\d{4}-\d\d-\d\d)\s+\d\d:\d\d(?:\s?[AaPp][Mm])?\s+"
    r"(?:<(DIR|JUNCTION|SYMLINKD?)>\s+|(\d{1,18}) )(.+)"
)
_NO_ENTRY = re.compile(r"total \d+$|[bcpsD]\S{9,10}\s")
_MODIFIED = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.\d+)?", re.ASCII)
_HERE = frozenset({"cdir", "pdir"})


class DirectoryEntry(NamedTuple):
    """A name in a directory. A symbolic link is a file until a server opens it as a directory."""

    name: str
    type: Literal["file", "dir"]
    size: int | None = None
    modified: str | None = None
    """Only where the zone of the time is known, which plain lists do not tell."""


Found = DirectoryEntry | Literal["nothing"] | None
"""None is a line that cannot be read."""


class DirectoryListing(NamedTuple):
    """The entries of one directory."""

    entries: list[DirectoryEntry]
    unread: list[str]
    """Lines that could not be read."""

    def lines(self) -> Iterable[bytes]:
        """Return a line for each entry, by name, so that an unchanged directory is the same bytes."""
        yield from sorted(json.dumps(entry._asdict()).encode() + b"\n" for entry in self.entries)
        if self.unread:
            words = (
                f"{len(self.unread)} lines of the list cannot be read, the first: {self.unread[0][:200]!r}"
            )
            yield json.dumps({"problem": words}).encode() + b"\n"


class TooLong(Exception):
    """A directory holds more entries than may be read."""


def listing(raw: bytes, form: Callable[[str], Found], most: int) -> DirectoryListing:
    """Reads a list of that form. Raises `TooLong` when it has more than `most` entries."""
    found = DirectoryListing([], [])
    for line in raw.split(b"\n"):
        text = line.rstrip(b"\r").decode("utf-8", "surrogateescape")
        if not text:
            continue
        entry = form(text) if len(text) <= _MOST_LINE else None
        if isinstance(entry, DirectoryEntry):
            found.entries.append(entry)
        elif entry is None:
            found.unread.append(text)
        if len(found.entries) + len(found.unread) > most:
            raise TooLong
    return found


def machine_line(line: str) -> Found:
    """A line of MLSD (RFC 3659).

    >>> machine_line("type=file;size=3;modify=20240102030405; a b.nt")
    DirectoryEntry(name='a b.nt', type='file', size=3, modified='2024-01-02T03:04:05Z')
    """
    text, space, name = line.partition(" ")
    if not (space and name) or (text and not text.endswith(";")):
        return None
    facts = dict(fact.lower().partition("=")[::2] for fact in text.split(";") if fact)
    kind = facts.get("type", "file")
    if kind in _HERE:
        return "nothing"
    return DirectoryEntry(
        name, "dir" if kind == "dir" else "file", _size(facts.get("size")), _time(facts.get("modify"))
    )


def plain_line(line: str) -> Found:
    """A line of LIST, as Unix or Windows servers write it.

    >>> plain_line("drwxr-xr-x   3 ftp ftp    4096 Nov 15 12:07 dumps")
    DirectoryEntry(name='dumps', type='dir', size=None, modified=None)
    """
    unix = _UNIX.fullmatch(line)
    if unix is not None:
        return _unix_entry(*unix.groups())
    windows = _WINDOWS.fullmatch(line)
    if windows is not None:
        kind, size, name = windows.groups()
        return _plain_entry(name, "dir" if kind == "DIR" else "file", _size(size))
    return "nothing" if _NO_ENTRY.match(line) else None


def bare_line(line: str) -> Found:
    """A line of NLST: a name, and nothing about it."""
    return _plain_entry(line, "file", None)


def _unix_entry(kind: str, size: str, name: str) -> Found:
    if kind == "d":
        return _plain_entry(name, "dir", None)
    if kind == "l":
        return _plain_entry(name.partition(" -> ")[0], "file", None)
    return _plain_entry(name, "file", _size(size))


def _plain_entry(name: str, kind: Literal["file", "dir"], size: int | None) -> Found:
    return "nothing" if name in (".", "..") else DirectoryEntry(name, kind, size)


def _size(digits: str | None) -> int | None:
    return int(digits) if digits and len(digits) <= 18 and digits.isascii() and digits.isdigit() else None


def _time(digits: str | None) -> str | None:
    found = _MODIFIED.fullmatch(digits or "")
    return "{}-{}-{}T{}:{}:{}Z".format(*found.groups()) if found else None
