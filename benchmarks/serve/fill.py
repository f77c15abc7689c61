"""An archive of any size, written straight into the tables: as a crawl of years would have left it."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tamias.archive.blobs import BlobWriter, LocalPacks, insert_blobs
from tamias.crawl.plan.admit import same_url
from tamias.crawl.plan.policy import CRAWL
from tamias.database.connect import Cursor, Database, Session
from tamias.database.sql import statements
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.capture import Body
from tamias.model.item import WATCH, Item
from tamias.model.resource import resource_id
from tamias.model.url import DEFAULT_SESSION_NAMES, url_key

_SQL = statements("benchmarks.serve", "fill.sql")
DAY_MS = 86_400_000
BODIES = 16
DATASETS_OF_HOST = 200
DOCUMENTS_OF_HOST = 200
PORTALS = 10
AT_ONCE = 5000
_RESOURCE_TYPES = ("text",) * 5 + ("int8", "int4", "bytea", "text", "int8", "float8", "int8", "int8", "int8")
_SOURCE_TYPES = ("text",) * 5 + ("int8", "int8")
_DESCRIBED_TYPES = ("int8", "text", "text", "text", "int8", "int8", "int8")


class Filled(msgspec.Struct, frozen=True):
    """An archive of so many datasets and versions, and what there is to be asked for in it."""

    datasets: int
    versions: int

    @property
    def portal(self) -> str:
        """One of the portals."""
        return _portal(0)

    def url(self, number: int) -> str:
        """The address of one of the datasets."""
        return _url(number % self.datasets)

    def id(self, number: int) -> str:
        """Its id."""
        return resource_id(url_key(self.url(number)))

    def host(self, number: int) -> str:
        """Its host."""
        return _host(number % self.datasets)


def fill(database: Database, data: Path, filled: Filled) -> None:
    """Datasets on hosts, in portals, in the frontier, with versions and attempts."""
    with closing(database.session()) as session:
        _put_bodies(database, session, data)
        portals = [_put_portal(session, place) for place in range(PORTALS)]
        _put(session, filled, range(filled.datasets), portals)
        _run(session, "recount")
        _run(session, "settle")


def fill_documents(database: Database, hosts: int) -> None:
    """Crawled documents on hosts of their own, which link to each other."""
    asked = {"bucket": 0, "each": DOCUMENTS_OF_HOST, "hosts": hosts}
    with closing(database.session()) as session:
        frontier = PostgresFrontier(session, same_url=same_url(DEFAULT_SESSION_NAMES))
        items = [_seed(f"doc{number}.example") for number in range(hosts)]
        for start in range(0, hosts, AT_ONCE):
            frontier.put(items[start : start + AT_ONCE])
        for name in ("documents", "count_documents", "host_links"):
            session.transact(partial(_execute, name=name, values={**asked, "now": session.now()}))
        _run(session, "settle_documents")


def _execute(cursor: Cursor, name: str, values: dict[str, Any]) -> None:
    cursor.execute(_SQL[name].text, values)


def _seed(name: str) -> Item:
    url = f"http://{name}/0.ttl"
    return Item(url=url, key=url_key(url), host=name, crawl=CRAWL)


def _put(session: Session, filled: Filled, numbers: range, portals: Sequence[int]) -> None:
    now, each = session.now(), filled.versions // filled.datasets

    def copy(cursor: Cursor) -> None:
        # No triggers: they would tell the catalogue, and count row by row what is counted at the end.
        cursor.execute(_SQL["stop_triggers"].text)
        names = [resource_id(url_key(_url(number))) for number in numbers]
        _copy(cursor, list(zip(numbers, names, strict=True)), each, now, portals)
        cursor.execute(_SQL["versions"].text)
        cursor.execute(_SQL["current"].text)
        cursor.execute(_SQL["words"].text, {"resource": names})
        cursor.execute(_SQL["start_triggers"].text)

    session.transact(copy)
    _put_frontier(session, numbers)
    session.transact(lambda cursor: cursor.execute(_SQL["captures"].text, {"bucket": 0}))


def _run(session: Session, name: str) -> None:
    session.transact(lambda cursor: cursor.execute(_SQL[name].text))


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
    lines = [
        f"station{row},2026-01-{1 + number:02},{(row * 37 + number * 11) % 400 / 10}" for row in range(40)
    ]
    content = "\n".join(["station,day,degrees", *lines, ""]).encode()
    return Body(size=len(content), sha256=hashlib.sha256(content).hexdigest(), data=content)


def _put_portal(session: Session, place: int) -> int:
    values = {"url": _portal(place), "now": session.now()}
    ((number,),) = session.transact(lambda cursor: cursor.execute(_SQL["portal"].text, values).fetchall())
    return int(number)


def _copy(
    cursor: Cursor, named: Sequence[tuple[int, str]], versions: int, now: int, portals: Sequence[int]
) -> None:
    _copied(cursor, "copy_resources", _RESOURCE_TYPES, (_resource(*each, versions, now) for each in named))
    _copied(cursor, "copy_sources", _SOURCE_TYPES, (_source(*each, now) for each in named))
    described = (_described(number, portals[number % PORTALS], now) for number, _ in named)
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
        name, _url(number), _host(number), _title(number), "text/csv", seen - versions * DAY_MS, versions,
        None, "text/csv", seen, 1.0, seen, seen, next_visit,
    )  # fmt: skip


def _source(number: int, name: str, now: int) -> tuple[Any, ...]:
    return name, _record(number), _portal(number % PORTALS), _title(number), "CSV", now, now


def _described(number: int, portal: int, now: int) -> tuple[Any, ...]:
    return portal, f"d{number}", _record(number), _title(number), now, now, now


def _put_frontier(session: Session, numbers: range) -> None:
    frontier = PostgresFrontier(session, same_url=same_url(DEFAULT_SESSION_NAMES))
    for start in range(0, len(numbers), AT_ONCE):
        frontier.put([_item(number) for number in numbers[start : start + AT_ONCE]])


def _item(number: int) -> Item:
    return Item(url=_url(number), key=url_key(_url(number)), host=_host(number), crawl=WATCH)


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
