"""The lines of a file from outside, plain or packed with gzip: none too long, all together not too many."""

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

_GZIP = b"\x1f\x8b"


def outside_lines(stream: BufferedReader, longest: int, most: int) -> Iterator[bytes | None]:
    """The lines without their ends; None stands for one of more than `longest` bytes.

    Raises `ValueError` after `most` bytes, unpacked, and where the packing is broken.
    """
    source = gzip.GzipFile(fileobj=stream) if stream.peek(2)[:2] == _GZIP else stream
    total = 0
    try:
        while line := source.readline(longest + 1):
            total += len(line)
            while len(line) > longest and not line.endswith(b"\n"):
                rest = source.readline(longest + 1)
                total += len(rest)
                _check(total, most)
                if rest.endswith(b"\n") or not rest:
                    break
            _check(total, most)
            yield line.rstrip(b"\r\n") if len(line) <= longest else None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"it is not whole gzip: {error}") from error


def outside_texts(path: Path, longest: int, most: int) -> Iterator[str | None]:
    """The same of a file, as text. Raises `ValueError` with what is wrong with it."""
    try:
        with path.open("rb") as stream:
            for line in outside_lines(stream, longest, most):
                yield None if line is None else line.decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error


def _check(total: int, most: int) -> None:
    if total > most:
        raise ValueError(f"it has more than {most} bytes")
