"""Seeds from WARC files, packed or not: the address of every answer in them. Bodies are passed over."""

import gzip
import logging
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO

from tamias.model.errors import UrlError
from tamias.model.item import Seed
from tamias.model.url import fetch_url
from tamias.seeds.imported import refusals

_log = logging.getLogger(__name__)

LONGEST_LINE = 65_536
MOST_LINES = 200
"""Of the head of a record."""
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"

Stream = IO[bytes] | gzip.GzipFile


class WarcSeeds:
    """Carries out `protocols.SeedSource`."""

    def seeds(self, argument: str) -> Iterator[Seed]:
        wrong = 0
        with refusals(argument), Path(argument).open("rb") as file:
            for address in answered(file):
                try:
                    yield Seed(address=fetch_url(address))
                except UrlError:
                    wrong += 1
        if wrong:
            _log.warning("%s: %d answers have no address that is a URL", argument, wrong)


def answered(file: BufferedReader) -> Iterator[str]:
    """The addresses of the answers. Raises `ValueError` where the file is no WARC file, or broken."""
    stream: Stream = gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == _GZIP else file
    number = 0
    try:
        while head := _head(stream, number):
            number += 1
            if head.get("warc-type", "").lower() == "response" and "warc-target-uri" in head:
                yield head["warc-target-uri"].strip("<>")
            _pass_over(stream, head, number)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"record {number + 1} is not whole gzip: {error}") from error


def _head(stream: Stream, number: int) -> dict[str, str]:
    """The head of the next record; empty at the end of the file."""
    line = _line(stream)
    while line in (b"\r\n", b"\n"):
        line = _line(stream)
    if not line:
        return {}
    if not line.startswith(b"WARC/"):
        raise ValueError(f"record {number + 1} does not begin with WARC/")
    head: dict[str, str] = {}
    for _ in range(MOST_LINES):
        line = _line(stream)
        if not line.strip():
            return head
        name, _, value = line.decode("utf-8", "replace").partition(":")
        head.setdefault(name.strip().lower(), value.strip())
    raise ValueError(f"record {number + 1} has more than {MOST_LINES} lines in its head")


def _line(stream: Stream) -> bytes:
    line = stream.readline(LONGEST_LINE + 1)
    if len(line) > LONGEST_LINE:
        raise ValueError(f"a line of more than {LONGEST_LINE} bytes in the head of a record")
    return line


def _pass_over(stream: Stream, head: dict[str, str], number: int) -> None:
    length = head.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        raise ValueError(f"record {number} has no length")
    left = int(length)
    while left:
        passed = len(stream.read(min(left, _CHUNK)))
        if not passed:
            raise ValueError(f"record {number} ends before its length")
        left -= passed
