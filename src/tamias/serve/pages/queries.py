"""How pages ask the database; and what is asked for so often that an answer may be some seconds old."""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tamias.archive.forgetting.tombstones import check_forgotten
from tamias.archive.moved_captures import WantedCaptures, fetch_captures
from tamias.archive.reader.library import NotArchived
from tamias.archive.versions.resources import read_resources
from tamias.crawl.plan.admit import queue_key
from tamias.database.sql import statements
from tamias.frontier.keys import bucket_of, host_hash
from tamias.model.resource import Resource
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.service import Service

T = TypeVar("T")
PART = 5
"""Figures are remembered so many times as long as they took."""
SQL = statements("tamias.serve.pages", "pages.sql")
_kept: WeakKeyDictionary[Service, dict[str, tuple[float, asyncio.Future[Any]]]] = WeakKeyDictionary()


def rows(db: ServiceSession, name: str, **asked: Any) -> list[tuple[Any, ...]]:
    """What one statement of `pages.sql` reads."""
    return db.session.fetch_all(SQL[name], asked)


def rows_of_captures(db: ServiceSession, name: str, qid: int, **asked: Any) -> list[tuple[Any, ...]]:
    """What one statement reads about captures of a queue, also of those that stand in files."""
    wanted = WantedCaptures(queues=[qid])
    return fetch_captures(db.session, SQL[name], {"qid": qid, **asked}, wanted)


def rows_of_buckets(db: ServiceSession, name: str, **asked: Any) -> list[tuple[Any, ...]]:
    """The same of every bucket of the frontier."""
    buckets = range(db.frontier.buckets)
    return [row for bucket in buckets for row in rows(db, name, bucket=bucket, **asked)]


def place_of_host(db: ServiceSession, name: str) -> dict[str, int] | None:
    """Where a host's queue is; None where only a name server could say."""
    if db.settings.frontier.queue == "ip":
        return None
    qid = host_hash(queue_key(db.settings)(f"http://{name}/"))
    return {"bucket": bucket_of(qid, db.frontier.buckets), "qid": qid}


async def lately(service: Service, name: str, seconds: float, work: Callable[[ServiceSession], T]) -> T:
    """What the work gave at most so many seconds ago, or gives now; all who ask meanwhile wait for the same.

    Work that takes long is remembered longer, so that it never takes more than a small part of the database.
    """
    kept = _kept.setdefault(service, {})
    until, found = kept.get(name, (0.0, None))
    if found is None or (found.done() and (until < time.monotonic() or _failed(found))):
        began = time.monotonic()
        found = asyncio.ensure_future(service.pool.run(work))
        kept[name] = began + seconds, found
        value: T = await asyncio.shield(found)
        spent = time.monotonic() - began
        kept[name] = began + spent + max(seconds, PART * spent), found
        return value
    shared: T = await asyncio.shield(found)
    return shared


def forget_lately(service: Service, name: str) -> None:
    """What was remembered is read anew: somebody has changed it."""
    _kept.get(service, {}).pop(name, None)


def _failed(found: asyncio.Future[Any]) -> bool:
    return found.cancelled() or found.exception() is not None


_ID = re.compile(r"[0-9a-f]{24}")


def resource_named(db: ServiceSession, named: str) -> Resource:
    """A resource by its id. Raises `NotArchived`."""
    found = read_resources(db.session, [named]) if _ID.fullmatch(named) else []
    if not found:
        check_forgotten(db.session, named)
        raise NotArchived(f"{named[:100]} is not in the archive")
    return found[0]
