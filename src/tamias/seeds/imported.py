"""Files of other crawlers, line by line: what cannot be read is told, what makes no sense is counted."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tamias.content.outside_lines import outside_lines
from tamias.model.errors import UsageError
from tamias.model.item import Seed

_log = logging.getLogger(__name__)

LONGEST_LINE = 1 << 20
MOST_BYTES = 1 << 40
_SHOWN = 3


@contextmanager
def refusals(name: str) -> Iterator[None]:
    """Turns what a file can do wrong into one sentence."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot read the seeds of {name}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"cannot read the seeds of {name}: {error}") from error


def seeds_by_line(name: str, read: Callable[[bytes], Seed | None]) -> Iterator[Seed]:
    """The seed of each line. `read` gives None for a line without one, and raises `ValueError`."""
    wrong: list[int] = []
    count = 0
    with refusals(name), Path(name).open("rb") as stream:
        for number, line in enumerate(outside_lines(stream, LONGEST_LINE, MOST_BYTES), start=1):
            try:
                seed = read(line) if line is not None else _too_long()
            except (ValueError, RecursionError):
                count += 1
                if len(wrong) < _SHOWN:
                    wrong.append(number)
                continue
            if seed is not None:
                yield seed
    if count:
        _log.warning("%s: %d invalid lines, such as %s", name, count, ", ".join(map(str, wrong)))


def _too_long() -> Seed:
    raise ValueError(f"longer than {LONGEST_LINE} bytes")
