"""Conversion between rows and values for leases."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from tamias.database.columns import Bools, Floats, Ints, Longs, Shorts, Texts
from tamias.model.capture import Outcome
from tamias.model.item import CLASSES
from tamias.model.lease import CrawlStats, Done, Lease, Return, Task

Row = tuple[Any, ...]


def probes(rotating: int, hosts: int) -> dict[str, list[int | None]]:
    """Return a slot for a rotating class, then all classes downward, where its host may be met again."""
    downward = list(range(CLASSES - 1, -1, -1))
    return {
        "class": Shorts([rotating, *downward]),
        "slots": Ints([1, *(hosts + int(each == rotating) for each in downward)]),
    }


def leases_from(rows: Iterable[Row], bucket: int, token: int, ends_at: int) -> list[Lease]:
    """The rows of `lease`, one for each task; a host with nothing due has one row without a task."""
    leases = []
    for _, group in groupby(rows, key=itemgetter(0)):
        of_host = list(group)
        qid, host, delay_ms, visits, earned, _, alike = of_host[0][:7]
        tasks = tuple([_task(row[7:]) for row in of_host if row[7] is not None])
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
                tasks=tasks,
            )
        )
    return leases


def _task(row: Row) -> Task:
    uid, url, crawl, depth, score, status, fails, deaths, etag, last_modified, tags, cut = row
    return Task(
        uid=uid,
        url=url,
        crawl=crawl,
        depth=depth,
        score=score,
        status=Outcome(status),
        fails=fails,
        deaths=deaths,
        etag=etag,
        last_modified=last_modified,
        tags=tuple(tags or ()),
        cut=cut,
    )


def bare_lease(bucket: int, qid: int, token: int) -> Lease:
    """A lease known by its row only, to be given back."""
    return Lease(host="", qid=qid, bucket=bucket, token=token, ends_at=0, delay_ms=0, tasks=())


def until(lease: Lease, ends_at: int) -> Lease:
    """The same lease with another end."""
    return msgspec.structs.replace(lease, ends_at=ends_at)


def by_bucket(leases: Iterable[Lease]) -> Iterator[tuple[int, list[Lease]]]:
    """The leases of each bucket, in the order in which their hosts are locked."""
    ordered = sorted(leases, key=lambda lease: (lease.bucket, lease.qid))
    for bucket, group in groupby(ordered, key=lambda lease: lease.bucket):
        yield bucket, list(group)


def held_columns(bucket: int, leases: list[Lease]) -> dict[str, Any]:
    """The parameters of `lock_held` and `renew`."""
    return {
        "bucket": bucket,
        "qid": Longs([each.qid for each in leases]),
        "token": Longs([each.token for each in leases]),
    }


def news_columns(bucket: int, returns: list[Return]) -> dict[str, Any]:
    """The parameters of `settle`."""
    news: list[tuple[int, Done]] = [(each.lease.qid, done) for each in returns for done in each.done]
    return {
        "bucket": bucket,
        "qid": Longs([qid for qid, _ in news]),
        "crawl": Ints([done.task.crawl for _, done in news]),
        "uid": Longs([done.task.uid for _, done in news]),
        "due": Longs([done.due for _, done in news]),
        "status": Ints([int(done.outcome) for _, done in news]),
        "fails": Ints([done.fails for _, done in news]),
        "etag": Texts([done.etag for _, done in news]),
        "last_modified": Texts([done.last_modified for _, done in news]),
        "depth": Ints([done.task.depth for _, done in news]),
        "cut": Ints([-1 if done.cut is None else done.cut for _, done in news]),
    }


def release_columns(bucket: int, returns: list[Return]) -> dict[str, Any]:
    """The parameters of `refresh_queues` and `release_hosts`."""
    return {
        **held_columns(bucket, [each.lease for each in returns]),
        "delay_ms": Ints([each.delay_ms for each in returns]),
        "blocked_until": Longs([each.blocked_until for each in returns]),
        "touched": Bools([each.touched for each in returns]),
        "visits": Longs([each.visits for each in returns]),
        "earned": Floats([each.earned for each in returns]),
    }


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
