"""Queries of pages."""

from typing import Any

from tamias.archive.moved_captures import WantedCaptures, fetch_captures
from tamias.crawl.plan.admit import queue_key
from tamias.database.sql import statements
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.frontier.keys import bucket_of, host_hash

SQL = statements("tamias.features.pages", "pages.sql")


def rows(db: ServiceSession, name: str, **values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a statement of `pages.sql`."""
    return db.session.fetch_all(SQL[name], values)


def rows_of_captures(db: ServiceSession, name: str, qid: int, **values: Any) -> list[tuple[Any, ...]]:
    """Return rows about captures of a queue, also those in files."""
    wanted = WantedCaptures(queues=[qid])
    return fetch_captures(db.session, SQL[name], {"qid": qid, **values}, wanted)


def rows_of_buckets(db: ServiceSession, name: str, **values: Any) -> list[tuple[Any, ...]]:
    """The same of every bucket of the frontier."""
    buckets = range(db.frontier.buckets)
    return [row for bucket in buckets for row in rows(db, name, bucket=bucket, **values)]


def place_of_host(db: ServiceSession, name: str) -> dict[str, int] | None:
    """Return the place of a host's queue; None where only a name server knows it."""
    if db.settings.frontier.queue == "ip":
        return None
    qid = host_hash(queue_key(db.settings)(f"http://{name}/"))
    return {"bucket": bucket_of(qid, db.frontier.buckets), "qid": qid}
