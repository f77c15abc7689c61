"""Files of seeds, line by line: a line that names no URL becomes a seed with a problem."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import cast

import msgspec

from tamias.content.outside_lines import outside_lines
from tamias.model.errors import UsageError
from tamias.model.item import Seed

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
        shown = "stdin" if name == "-" else name
        for number, line in enumerate(_lines(stream), start=1):
            place = f"{shown} line {number}"
            if line is None:
                yield Seed(address="", line=place, problem=f"longer than {LONGEST_LINE} bytes")
            elif (seed := _read(read, line)) is not None:
                yield msgspec.structs.replace(seed, line=place)


def _lines(stream: BufferedReader) -> Iterator[bytes | None]:
    """Yield the lines, however they end; None for one that is too long."""
    for line in outside_lines(stream, LONGEST_LINE, MOST_BYTES):
        yield from (None,) if line is None else line.split(b"\r")


def _read(read: Callable[[bytes], Seed | None], line: bytes) -> Seed | None:
    try:
        return read(line)
    except UnicodeDecodeError:
        problem = "not UTF-8 text"
    except RecursionError:
        problem = "nested too deeply"
    except ValueError as error:
        problem = str(error)
    return Seed(address=line[:_SHOWN].decode("utf-8", "replace"), problem=problem)
