"""Queries of pages."""

import re
from collections.abc import Iterator
from typing import Any

from tamias.archive.moments import rfc3339
from tamias.archive.moved_captures import WantedCaptures, fetch_captures
from tamias.crawl.plan.admit import queue_key
from tamias.database.connect import Cursor
from tamias.database.sql import statements
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.frontier.keys import bucket_of, host_hash
from tamias.model.capture import Outcome

SQL = statements("tamias.features.pages", "pages.sql")
NEVER = 253_402_300_799_000
"""The end of the year 9999: what is later is never."""
_TIME = re.compile(r"(.*_)?(at|until|latest|last|seen)")

Record = dict[str, Any]
"""What a page and its JSON show of a thing, by name."""


def rows(db: ServiceSession, name: str, **values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a statement of `pages.sql`."""
    return db.session.fetch_all(SQL[name], values)


def records(db: ServiceSession, name: str, **values: Any) -> list[Record]:
    """Return the rows of a statement by the names of their columns, with times and outcomes in words."""

    def read(cursor: Cursor) -> list[Record]:
        found = cursor.execute(SQL[name].text, values).fetchall()
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, map(_in_words, names, row), strict=True)) for row in found]

    return db.session.transact(read)


def rows_of_captures(db: ServiceSession, name: str, qid: int, **values: Any) -> list[tuple[Any, ...]]:
    """Return rows about captures of a queue, also those in files."""
    wanted = WantedCaptures(queues=[qid])
    return fetch_captures(db.session, SQL[name], {"qid": qid, **values}, wanted)


def rows_of_buckets(db: ServiceSession, name: str, **values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a statement in every bucket of the frontier."""
    buckets = range(db.frontier.buckets)
    return [row for bucket in buckets for row in rows(db, name, bucket=bucket, **values)]


def records_of_buckets(db: ServiceSession, name: str, **values: Any) -> Iterator[Record]:
    """Yield the records of a statement in every bucket of the frontier."""
    for bucket in range(db.frontier.buckets):
        yield from records(db, name, bucket=bucket, **values)


def place_of_host(db: ServiceSession, name: str) -> dict[str, int] | None:
    """Return the place of a host's queue; None where only a name server knows it."""
    if db.settings.frontier.queue == "ip":
        return None
    qid = host_hash(queue_key(db.settings)(f"http://{name}/"))
    return {"bucket": bucket_of(qid, db.frontier.buckets), "qid": qid}


def _in_words(name: str, value: Any) -> Any:
    if not isinstance(value, int):
        return value
    if name == "outcome":
        return Outcome(value).word
    if _TIME.fullmatch(name):
        return rfc3339(value) if value < NEVER else None
    return value
