"""An archive of any size, written straight into the tables: as a crawl of years would have left it."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import closing
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
        urls = [
            (name, f"http://{name}/0.ttl") for name in (f"doc{number}.example" for number in range(hosts))
        ]
        items = [Item(url=url, key=url_key(url), host=name, crawl=CRAWL) for name, url in urls]
        _put_urls(session, items)
        for name in ("documents", "count_documents", "host_links"):
            _run(session, name, **asked, now=session.now())
        _run(session, "settle_documents")


def _put_urls(session: Session, items: Sequence[Item]) -> None:
    frontier = PostgresFrontier(session, same_url=same_url(DEFAULT_SESSION_NAMES))
    for start in range(0, len(items), AT_ONCE):
        frontier.put(items[start : start + AT_ONCE])


def _put(session: Session, filled: Filled, numbers: range, portals: Sequence[int]) -> None:
    now, each = session.now(), filled.versions // filled.datasets

    def copy(cursor: Cursor) -> None:
        # No triggers: they would tell the catalogue, and count row by row what is counted at the end.
        cursor.execute(_SQL["stop_triggers"].text)
        names = [resource_id(url_key(_url(number))) for number in numbers]
        resources = (_resource(number, name, each, now) for number, name in zip(numbers, names, strict=True))
        _copied(cursor, "copy_resources", _RESOURCE_TYPES, resources)
        sources = (
            (name, _record(number), _portal(number % PORTALS), _title(number), "CSV", now, now)
            for number, name in zip(numbers, names, strict=True)
        )
        _copied(cursor, "copy_sources", _SOURCE_TYPES, sources)
        described = (
            (portals[number % PORTALS], f"d{number}", _record(number), _title(number), now, now, now)
            for number in numbers
        )
        _copied(cursor, "copy_described", _DESCRIBED_TYPES, described)
        cursor.execute(_SQL["versions"].text)
        cursor.execute(_SQL["current"].text)
        cursor.execute(_SQL["words"].text, {"resource": names})
        cursor.execute(_SQL["start_triggers"].text)

    session.transact(copy)
    urls = [(_host(number), _url(number)) for number in numbers]
    _put_urls(session, [Item(url=url, key=url_key(url), host=host, crawl=WATCH) for host, url in urls])
    _run(session, "captures", bucket=0)


def _run(session: Session, name: str, **values: Any) -> None:
    session.transact(lambda cursor: cursor.execute(_SQL[name].text, values or None))


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
