"""Datasets as publishers give them: versions of one table, some rows edited, added and taken each time."""

import json
from collections.abc import Callable, Iterator
from random import Random

import msgspec

SHARES = (0.03, 0.01, 0.05, 0.02, 0.04, 0.01, 0.05, 0.03, 0.02)
"""How many of the rows change from one version to the next; used in turn."""

_CITIES = ("Wien", "Linz", "Graz", "Salzburg", "Innsbruck", "Bregenz", "Klagenfurt", "Eisenstadt", "Krems")
_MATTERS = ("NO2", "PM10", "PM2.5", "O3", "SO2", "CO", "benzene", "lead")
_SITE = "http://example.org/air/"
_CSV_HEADER = b"id,station,city,observed,matter,value,latitude,longitude,seal\n"


class DatasetRow(msgspec.Struct, frozen=True):
    """One measurement. The seal is sixteen digits that no codec can guess."""

    number: int
    station: str
    city: str
    observed: str
    matter: str
    value: float
    latitude: float
    longitude: float
    seal: str


Rows = list[DatasetRow]


class DatasetFormat(msgspec.Struct, frozen=True):
    """One way to publish the table."""

    name: str
    ending: str
    media_type: str
    written: Callable[[Rows], bytes]
    row_bytes: int
    """About."""
    shuffled: bool = False


def versions(form: DatasetFormat, size: int, count: int, seed: int = 1) -> Iterator[bytes]:
    """The bodies of all versions, oldest first; the same words give the same bytes."""
    random = Random(f"{form.name} {seed}")
    rows = [_row(number, random) for number in range(max(1, size // form.row_bytes))]
    for version in range(count):
        if version:
            rows = _changed(rows, SHARES[(version - 1) % len(SHARES)], random)
        if form.shuffled:
            random.shuffle(rows)
        yield form.written(rows)


def _row(number: int, random: Random) -> DatasetRow:
    day = f"20{random.randrange(10, 26)}-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}"
    return DatasetRow(
        number,
        f"AT{random.randrange(400):05}",
        random.choice(_CITIES),
        f"{day}T{random.randrange(24):02}:00:00Z",
        random.choice(_MATTERS),
        round(random.uniform(0, 400), 2),
        round(random.uniform(46.4, 49.0), 6),
        round(random.uniform(9.5, 17.2), 6),
        f"{random.getrandbits(64):016x}",
    )


def _changed(rows: Rows, share: float, random: Random) -> Rows:
    """Of the rows touched, eight in ten are edited, one is taken and one has a new one behind it."""
    changed = []
    number = max(row.number for row in rows) + 1
    for row in rows:
        fate = random.random() / share
        if fate < 0.8:
            changed.append(_edited(row, random))
        elif fate >= 0.9:
            changed.append(row)
            if fate < 1.0:
                changed.append(_row(number, random))
                number += 1
    return changed


def _edited(row: DatasetRow, random: Random) -> DatasetRow:
    value, seal = round(random.uniform(0, 400), 2), f"{random.getrandbits(64):016x}"
    return msgspec.structs.replace(row, value=value, seal=seal)


def _csv(rows: Rows) -> bytes:
    lines = [",".join(map(str, msgspec.structs.astuple(row))) for row in rows]
    return _CSV_HEADER + "\n".join(lines).encode() + b"\n"


def _json(rows: Rows) -> bytes:
    return json.dumps([msgspec.structs.asdict(row) for row in rows], indent=1).encode()


def _ntriples(rows: Rows) -> bytes:
    return "".join(line for row in rows for line in _statements(row)).encode()


def _statements(row: DatasetRow) -> Iterator[str]:
    subject = f"<{_SITE}m/{row.number}>"
    fields = msgspec.structs.asdict(row)
    for name in ("station", "city", "matter"):
        yield f"{subject} <{_SITE}#{name}> <{_SITE}{name}/{fields[name]}> .\n"
    yield f'{subject} <{_SITE}#observed> "{row.observed}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
    for name in ("value", "latitude", "longitude", "seal"):
        yield f'{subject} <{_SITE}#{name}> "{fields[name]}" .\n'


FORMS = (
    DatasetFormat("CSV", "csv", "text/csv", _csv, 91),
    DatasetFormat("JSON", "json", "application/json", _json, 227),
    DatasetFormat("N-Triples", "nt", "application/n-triples", _ntriples, 772),
    DatasetFormat("CSV, shuffled", "csv", "text/csv", _csv, 91, shuffled=True),
)
