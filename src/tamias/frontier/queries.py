"""Execute the statements of the frontier by name, and convert rows and values for leases."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from tamias.database.columns import Bools, Floats, Ints, Kinds, Longs, Shorts, Texts, columns, packed
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.capture import Outcome
from tamias.model.item import CLASSES
from tamias.model.lease import CrawlStats, Lease, Return, Task

Row = tuple[Any, ...]


@lru_cache(maxsize=1024)
def probes(rotating: int, hosts: int) -> dict[str, Any]:
    """Return a slot for a rotating class, then all classes downward, where its host may be met again."""
    downward = range(CLASSES - 1, -1, -1)
    slots = (1, *[hosts + int(each == rotating) for each in downward])
    return packed({"class": Shorts, "slots": Ints}, ((rotating, *downward), slots))


def leases_from(rows: Iterable[Row], bucket: int, token: int, ends_at: int) -> list[Lease]:
    """The rows of `lease`, one for each task; a host with nothing due has one row without a task."""
    leases = []
    for _, group in groupby(rows, key=itemgetter(0)):
        of_host = list(group)
        qid, host, delay_ms, visits, earned, _, alike = of_host[0][:7]
        tasks = [
            Task(*(*row[7:12], Outcome(row[12]), *row[13:17], tuple(row[17] or ()), row[18]))
            for row in of_host
            if row[7] is not None
        ]
        leases.append(
            Lease(
                host=host,
                qid=qid,
                bucket=bucket,
                token=token,
                ends_at=ends_at,
                delay_ms=delay_ms,
                visits=visits,
                earned=earned,
                alike=alike or b"",
                tasks=tuple(tasks),
            )
        )
    return leases


def by_bucket(leases: Iterable[Lease]) -> Iterator[tuple[int, list[Lease]]]:
    """The leases of each bucket, in the order in which their hosts are locked."""
    ordered = sorted(leases, key=attrgetter("bucket", "qid"))
    for bucket, group in groupby(ordered, key=attrgetter("bucket")):
        yield bucket, list(group)


_HELD: Kinds = {"qid": Longs, "token": Longs}
_NEWS: Kinds = {
    "qid": Longs,
    "crawl": Ints,
    "uid": Longs,
    "due": Longs,
    "status": Ints,
    "fails": Ints,
    "etag": Texts,
    "last_modified": Texts,
    "depth": Ints,
    "cut": Ints,
}
_RELEASED: Kinds = {
    "qid": Longs,
    "token": Longs,
    "delay_ms": Ints,
    "blocked_until": Longs,
    "touched": Bools,
    "visits": Longs,
    "earned": Floats,
}
_RELEASED_OF = attrgetter("lease.qid", "lease.token", *list(_RELEASED)[2:])


def held_columns(bucket: int, leases: Iterable[Lease]) -> dict[str, Any]:
    """The parameters of `lock_held` and `renew`."""
    return {"bucket": bucket, **columns(_HELD, map(attrgetter("qid", "token"), leases))}


def news_columns(bucket: int, returns: Iterable[Return]) -> dict[str, Any]:
    """The parameters of `settle`."""
    news = [
        (
            *(each.lease.qid, task.crawl, task.uid, done.due, int(done.outcome), done.fails, done.etag),
            *(done.last_modified, task.depth, -1 if done.cut is None else done.cut),
        )
        for each in returns
        for done in each.done
        for task in (done.task,)
    ]
    return {"bucket": bucket, **columns(_NEWS, news)}


def release_columns(bucket: int, returns: Iterable[Return]) -> dict[str, Any]:
    """The parameters of `refresh_queues` and `release_hosts`."""
    return {"bucket": bucket, **columns(_RELEASED, map(_RELEASED_OF, returns))}


def crawl_figures(crawl: int, name: str, rows: list[Row]) -> CrawlStats:
    """The rows of one crawl from `crawl_figures`, one for each bucket, added up."""
    waiting = [row[5] for row in rows if row[5] is not None]
    due = [row[6] for row in rows if row[6] is not None]
    return CrawlStats(
        crawl=crawl,
        name=name,
        known=sum(row[1] for row in rows),
        open=sum(row[2] for row in rows),
        hosts=sum(row[3] for row in rows),
        leased=sum(row[4] for row in rows),
        next_at=min(waiting, default=None),
        next_due=min(due, default=None),
        again=sum(row[7] for row in rows),
    )


_FILES = ("due.sql", "frontier.sql", "service.sql", "tags.sql")
_SQL = {name: each for file in _FILES for name, each in statements("tamias.frontier", file).items()}


def add_statements(folder: str, file: str) -> None:
    """Add the statements of a feature's file."""
    _SQL.update(statements(folder, file))


def rows_of(cursor: Cursor, name: str, parameters: dict[str, Any]) -> list[Row]:
    """Return all rows that a statement gives."""
    return cursor.execute(_SQL[name].text, parameters).fetchall()


def done_by(cursor: Cursor, name: str, parameters: dict[str, Any]) -> int:
    """Execute a statement; return how many rows it changed."""
    return cursor.execute(_SQL[name].text, parameters).rowcount


def refresh(cursor: Cursor, hosts: dict[str, Any]) -> None:
    """Find out when queues of locked hosts have something to do, and with them the hosts."""
    done_by(cursor, "refresh_queues", hosts)
    done_by(cursor, "refresh_hosts", hosts)


def ask(session: Session, name: str, /, **parameters: Any) -> list[Row]:
    """Return all rows that a statement gives, in a transaction of its own and one round trip."""
    return session.fetch_all(_SQL[name], parameters)


def tell(session: Session, name: str, /, **parameters: Any) -> None:
    """Execute a statement in a transaction of its own."""
    session.execute(_SQL[name], parameters)


def read_buckets(session: Session) -> int:
    """Return how many parts the frontier has."""
    return int(ask(session, "read_buckets")[0][0])
