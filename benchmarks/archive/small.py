"""Very many small resources: captures a second, bytes for each, and whether memory stays flat."""

import hashlib
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

import msgspec

from tamias.archive.blobs import BlobWriter, LocalPacks, insert_blobs
from tamias.database.connect import Session
from tamias.model.capture import Body

ROWS = 540
"""Of about 100 bytes, half of them digits that no codec can guess."""
CHANGED = 15
"""Rows of the second version."""
AT_ONCE = 50
"""Captures in a commit."""
_DIGITS = 48
_ORDER = sorted(range(ROWS), key=lambda row: row * 37 % ROWS)
"""So that the changed rows stand all over the file, not side by side."""
_WARM = 0.2
"""The share of the captures after which memory should grow no more."""


class SmallFigures(msgspec.Struct, kw_only=True):
    """What came of it."""

    resources: int
    bytes: int = 0
    stored: int = 0
    row_bytes: int = 0
    """Of the tables and their indexes, for one version."""
    seconds: float = 0.0
    """By the clock, with making the bodies taken off."""
    warm_memory: int = 0
    """Resident when a fifth was done."""
    end_memory: int = 0

    @property
    def captures(self) -> int:
        return 2 * self.resources


def measure_small(session: Session, folder: Path, resources: int) -> SmallFigures:
    """Two versions of each resource: first all first ones, then all second ones."""
    session.transact(lambda cursor: cursor.execute(b"TRUNCATE blob, pack"))
    figures = SmallFigures(resources=resources)
    writer = BlobWriter(LocalPacks(folder), session)
    digests: list[str] = []
    captures = _captures(resources, digests.__getitem__)
    done, making = 0, 0.0
    started = time.perf_counter()
    while True:
        moment = time.perf_counter()
        some = list(islice(captures, AT_ONCE))
        making += time.perf_counter() - moment
        if not some:
            break
        digests += [body.sha256 for body, before in some if before is None]
        _commit(writer, session, some, figures)
        done += len(some)
        if not figures.warm_memory and done >= _WARM * figures.captures:
            figures.warm_memory = _resident()
    figures.seconds = time.perf_counter() - started - making
    figures.end_memory = _resident()
    writer.close()
    figures.row_bytes = _table_bytes(session) // figures.captures
    return figures


def _commit(
    writer: BlobWriter, session: Session, some: list[tuple[Body, str | None]], figures: SmallFigures
) -> None:
    prepared = [writer.prepare(body, before) for body, before in some]
    writer.sync()
    session.transact(lambda cursor: insert_blobs(cursor, prepared))
    writer.settled()
    figures.bytes += sum(each.size for each in prepared)
    figures.stored += sum(each.written for each in prepared)


def _captures(resources: int, first: Callable[[int], str]) -> Iterator[tuple[Body, str | None]]:
    stations = [
        f"AT{row % 97:05},Wien,2024-{row % 12 + 1:02}-01T00:00:00Z,PM10,{row},".encode()
        for row in range(ROWS)
    ]
    for version in (0, 1):
        for number in range(resources):
            body = _body(stations, number, version)
            yield body, first(number) if version else None


def _body(stations: list[bytes], number: int, version: int) -> Body:
    """The second version has new digits in some rows of the first."""
    digits = Random(number).randbytes(ROWS * _DIGITS // 2).hex().encode()
    if version:
        digits = (
            Random(-number - 1).randbytes(CHANGED * _DIGITS // 2).hex().encode() + digits[CHANGED * _DIGITS :]
        )
    cells = (digits[at : at + _DIGITS] for at in range(0, len(digits), _DIGITS))
    rows = [b""] * ROWS
    for row, cell in zip(_ORDER, cells, strict=True):
        rows[row] = stations[row] + cell
    content = b"\n".join(rows)
    return Body(size=len(content), sha256=hashlib.sha256(content).hexdigest(), data=content)


def _table_bytes(session: Session) -> int:
    asked = b"SELECT pg_total_relation_size('blob') + pg_total_relation_size('pack')"
    row = session.transact(lambda cursor: cursor.execute(asked).fetchone())
    return int(row[0]) if row else 0


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * 4096
