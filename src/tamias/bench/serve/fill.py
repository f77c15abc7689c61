"""An archive of any size, written straight into the tables: as a crawl of years would have left it."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from tamias.archive.blobs import BlobWriter, LocalPacks, insert_blobs
from tamias.archive.catalogues import put_portal
from tamias.crawl.archiving.keeping import WATCH
from tamias.database.connect import Cursor, Database, Session
from tamias.database.sql import statements
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Body
from tamias.model.item import Item
from tamias.model.resource import resource_id
from tamias.model.url_key import url_key

_SQL = statements("tamias.bench.serve", "fill.sql")
DAY_MS = 86_400_000
BODIES = 16
DATASETS_OF_HOST = 200
PORTALS = 10
AT_ONCE = 5000
_RESOURCE_TYPES = ("text",) * 5 + ("int8", "int4", "bytea", "text", "int8", "float8", "int8", "int8", "int8")
_SOURCE_TYPES = ("text",) * 5 + ("int8", "int8")
_DESCRIBED_TYPES = ("int8", "text", "text", "text", "int8", "int8")


class Filled(msgspec.Struct, frozen=True):
    """What there is to be asked for."""

    datasets: int
    versions: int
    hosts: int
    portal: str

    def url(self, number: int) -> str:
        """The address of one of the datasets."""
        return _url(number % self.datasets)

    def id(self, number: int) -> str:
        """Its id."""
        return resource_id(url_key(self.url(number)))

    def host(self, number: int) -> str:
        """Its host."""
        return _host(number % self.datasets)


def fill(database: Database, data: Path, datasets: int, versions: int) -> Filled:
    """Datasets with as many versions each as it takes, on hosts, in portals, in the frontier, with attempts."""
    with closing(database.session()) as session:
        _put_bodies(database, session, data)
        portals = [_put_portal(session, place) for place in range(PORTALS)]
        each = max(1, versions // datasets)
        session.transact(lambda cursor: _copy(cursor, datasets, each, session.now(), portals))
        _put_frontier(session, datasets)
        for name in ("versions", "current", "captures"):
            session.transact(lambda cursor, name=name: cursor.execute(_SQL[name].text, {"bucket": 0}))  # type: ignore[misc]
        session.transact(lambda cursor: cursor.execute("SELECT tamias.recount()"))
        session.transact(lambda cursor: cursor.execute(_SQL["settle"].text))
    hosts = -(-datasets // DATASETS_OF_HOST)
    return Filled(datasets, each * datasets, hosts, _portal(0))


def _put_bodies(database: Database, session: Session, data: Path) -> None:
    with closing(database.session()) as table:
        writer = BlobWriter(LocalPacks(data / "blobs"), table)
        bodies = [_body(number) for number in range(BODIES)]
        prepared = [writer.prepare(body, None) for body in bodies]
        writer.sync()
        session.transact(lambda cursor: insert_blobs(cursor, prepared))
        writer.settled()
        writer.close()


def _body(number: int) -> Body:
    """A small table."""
    lines = [f"station{row},2026-01-{1 + number:02},{(row * 37 + number * 11) % 400 / 10}" for row in range(40)]
    content = "\n".join(["station,day,degrees", *lines, ""]).encode()
    return Body(size=len(content), sha256=hashlib.sha256(content).hexdigest(), data=content)


def _put_portal(session: Session, place: int) -> int:
    return session.transact(lambda cursor: put_portal(cursor, _portal(place), "ckan", session.now()))


def _copy(cursor: Cursor, datasets: int, versions: int, now: int, portals: Sequence[int]) -> None:
    ids = [resource_id(url_key(_url(number))) for number in range(datasets)]
    named = list(enumerate(ids))
    _copied(cursor, "copy_resources", _RESOURCE_TYPES, (_resource(*each, versions, now) for each in named))
    _copied(cursor, "copy_sources", _SOURCE_TYPES, (_source(*each, now) for each in named))
    described = (_described(number, portals[number % PORTALS], now) for number in range(datasets))
    _copied(cursor, "copy_described", _DESCRIBED_TYPES, described)


def _copied(cursor: Cursor, name: str, types: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    with cursor.copy(_SQL[name].text) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)


def _resource(number: int, name: str, versions: int, now: int) -> tuple[Any, ...]:
    seen = now - (number * 7919) % DAY_MS
    next_visit = seen + DAY_MS
    return (
        name, _url(number), _host(number), _title(number), "text/csv", seen - versions * DAY_MS, versions, None,
        "text/csv", seen, 1.0, seen, seen, next_visit,
    )  # fmt: skip


def _source(number: int, name: str, now: int) -> tuple[Any, ...]:
    return name, _record(number), _portal(number % PORTALS), _title(number), "CSV", now, now


def _described(number: int, portal: int, now: int) -> tuple[Any, ...]:
    return portal, f"d{number}", _record(number), _title(number), now, now


def _put_frontier(session: Session, datasets: int) -> None:
    frontier = PostgresFrontier(session)
    for part in _parts(datasets):
        frontier.put([Item(url=_url(number), crawl=WATCH) for number in part])


def _parts(datasets: int) -> Iterator[range]:
    for start in range(0, datasets, AT_ONCE):
        yield range(start, min(datasets, start + AT_ONCE))


def _host(number: int) -> str:
    return f"data{number // DATASETS_OF_HOST}.example"


def _url(number: int) -> str:
    return f"http://{_host(number)}/files/{number}.csv"


def _title(number: int) -> str:
    return f"Temperatures of the stations in district {number}"


def _portal(place: int) -> str:
    return f"http://portal{place}.example/"


def _record(number: int) -> str:
    return f"{_portal(number % PORTALS)}dataset/d{number}"
