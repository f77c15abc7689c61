"""Change when URLs are due, other than by a put or a finish: now, never, again, or when their share comes."""

from collections.abc import Iterator, Sequence
from functools import partial
from heapq import nlargest
from typing import Any, Final

import msgspec

from tamias.database.columns import Ints, Kinds, Longs, columns
from tamias.database.connect import Cursor, Session
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.put import WOKEN, by_bucket, numbered, queue_news
from tamias.frontier.queries import Row, ask, done_by, read_buckets, refresh, rows_of
from tamias.model.cut import REOPENED, WIDENED
from tamias.model.item import Item

UrlPlaces = Sequence[tuple[int, int, int]]
"""URLs of a bucket by their numbers: queue, crawl and URL."""
_CHOSEN: Kinds = {"qid": Longs, "uid": Longs}
_PLACE: Kinds = {"qid": Longs, "crawl": Ints, "uid": Longs}


def make_due(session: Session, frontier: PostgresFrontier, items: Sequence[Item]) -> int:
    """Make items due now, known ones and new ones; return how many were not. May be done twice.

    What is being visited at this moment is not visited once more for that.
    """
    new = frontier.put(items)
    places = _places_of(items, frontier)
    return new + sum(make_due_known(session, frontier, bucket, some) for bucket, some in places)


def make_due_known(
    session: Session, frontier: PostgresFrontier, bucket: int, places: UrlPlaces, *, unread: bool = False
) -> int:
    """Make known URLs due now, to be asked whether they changed; return how many were not due.

    `unread`: they are read as if for the first time.
    """

    def work(cursor: Cursor) -> int:
        wanted = {"bucket": bucket, "now": frontier.now(), **columns(_PLACE, places)}
        done_by(cursor, "lock_hosts", wanted)
        if unread:
            done_by(cursor, "forget_answers", wanted)
        return _change(cursor, "make_urls_due", wanted)

    return session.transact(work)


def retire(session: Session, frontier: PostgresFrontier, items: Sequence[Item]) -> int:
    """Let none of them be visited any more; return how many would have been. May be done twice."""
    return sum(
        session.transact(partial(retire_places, bucket, places, frontier.now()))
        for bucket, places in _places_of(items, frontier)
    )


def _places_of(items: Sequence[Item], frontier: PostgresFrontier) -> Iterator[tuple[int, UrlPlaces]]:
    for bucket, rows in by_bucket(numbered(items, 0)[0], frontier.buckets).items():
        yield bucket, [row.place for row in rows]


def _change(cursor: Cursor, name: str, places: dict[str, Any]) -> int:
    """Execute a statement that makes URLs of locked hosts due, and wake their queues; return how many."""
    changed = rows_of(cursor, name, places)
    if changed:
        done_by(cursor, "wake", {**places, **columns(WOKEN, queue_news((), changed, places["now"]))})
    return len(changed)


def retire_places(bucket: int, places: UrlPlaces, now: int, cursor: Cursor) -> int:
    """Let URLs of a bucket not be visited any more, in a transaction; return how many would have been."""
    there = {"bucket": bucket, "now": now, **columns(_PLACE, places)}
    done_by(cursor, "lock_hosts", there)
    rows = rows_of(cursor, "retire_urls", there)
    if rows:
        queues = {**there, **columns({"qid": Longs, "crawl": Ints, "lane": Ints}, rows)}
        done_by(cursor, "count_retired", queues)
        done_by(cursor, "refresh_queues", queues)
    return len(rows)


LONGEST_WAIT_MS: Final = 2 * 86_400_000
"""No lease and no wait of a host is as long."""


def count_far_times(session: Session, longest: float) -> list[int]:
    """Return how many hosts, URLs and records have them, where a visit may be so many seconds away."""
    found = _each_bucket(session, read_buckets(session), "count_far_times", _far_times(session, longest))
    return [sum(each) for each in zip(*found, strict=True)]


def mend_far_times(session: Session, longest: float) -> None:
    """End such leases and waits, make such URLs due now, and let such records be replaced."""
    times = _far_times(session, longest)
    for bucket in range(read_buckets(session)):
        session.transact(partial(_mend, {"bucket": bucket, **times}), bucket)


def _far_times(session: Session, longest: float) -> dict[str, int]:
    now = session.now()
    return {"now": now, "soon": now + LONGEST_WAIT_MS, "late": now + int(longest * 1000) + LONGEST_WAIT_MS}


def _mend(times: dict[str, Any], cursor: Cursor) -> None:
    found = sorted(row[0] for row in rows_of(cursor, "find_far_hosts", times))
    if found:
        hosts = {**times, "qid": Longs(found)}
        for name in ("lock_hosts", "end_far_leases", "advance_far_visits"):
            done_by(cursor, name, hosts)
        refresh(cursor, hosts)
    done_by(cursor, "mend_far_records", times)


_PAGE = 1000
Place = tuple[int, int, int]
"""A bucket, and the URL of it behind which the next page begins."""
FIRST: Place = (0, -(2**63), -(2**63))


class ReopenFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The URLs to reopen, by their latest visit; None means all."""

    outcome: int | None = None
    reason: str | None = None
    """What its reason contains."""
    match: str | None = None
    """A regular expression for the URL, as PostgreSQL reads it."""
    media_type: str | None = None
    """A regular expression for the media type that was found."""


def reopen(session: Session, frontier: PostgresFrontier, crawl: int, reasons: int) -> int:
    """Make due what was cut for one of `reasons`, bits of `tamias.model.cut`; return how many.

    May be repeated. Each is read once more, and what then cuts its links is noted anew.
    """
    return _reopen(session, frontier, crawl, "find_cut", {"reasons": reasons})


def reopen_visited(session: Session, frontier: PostgresFrontier, crawl: int, which: ReopenFilter) -> int:
    """Make due what was visited and is done with; return how many. May be repeated."""
    return _reopen(session, frontier, crawl, "find_by_visit", msgspec.structs.asdict(which))


def visit_again(session: Session, frontier: PostgresFrontier, crawl: int) -> int:
    """Make due all that was visited, to be read where it has changed; return how many. May be repeated."""
    values = {**msgspec.structs.asdict(ReopenFilter()), "bits": 0}
    return _reopen(session, frontier, crawl, "find_by_visit", values)


def reopen_visited_page(
    session: Session, frontier: PostgresFrontier, crawl: int, which: ReopenFilter, after: Place
) -> tuple[int, Place | None]:
    """The same for one page of URLs: how many it opened, and where the next begins; None at the end."""
    return _reopen_page(session, frontier, crawl, "find_by_visit", msgspec.structs.asdict(which), after)


def count_cut(session: Session, buckets: int, crawl: int, reasons: int) -> tuple[int, int]:
    """Return how many queues have URLs that were cut for one of `reasons`, and how many URLs these are."""
    found = _each_bucket(session, buckets, "count_cut", {"crawl": crawl, "reasons": reasons})
    return sum(queues for queues, _ in found), sum(urls for _, urls in found)


def count_visited(session: Session, buckets: int, crawl: int, which: ReopenFilter) -> int:
    """Return how many URLs `reopen_visited` would open."""
    values = {"crawl": crawl, **msgspec.structs.asdict(which)}
    return sum(row[0] for row in _each_bucket(session, buckets, "count_by_visit", values))


def _each_bucket(session: Session, buckets: int, name: str, values: dict[str, Any]) -> list[Row]:
    def count(cursor: Cursor) -> list[Row]:
        return [rows_of(cursor, name, {"bucket": bucket, **values})[0] for bucket in range(buckets)]

    return session.transact(count)


def _reopen(
    session: Session, frontier: PostgresFrontier, crawl: int, name: str, wanted: dict[str, Any]
) -> int:
    opened = 0
    after: Place | None = FIRST
    while after is not None:
        count, after = _reopen_page(session, frontier, crawl, name, wanted, after)
        opened += count
    return opened


def _reopen_page(
    session: Session, frontier: PostgresFrontier, crawl: int, name: str, wanted: dict[str, Any], after: Place
) -> tuple[int, Place | None]:
    bucket, qid, uid = after
    query = {"bucket": bucket, "crawl": crawl, "page": _PAGE, "bits": REOPENED | WIDENED, **wanted}
    query |= {"after_qid": qid, "after_uid": uid}
    count, last = session.transact(partial(_open_found, name, query, frontier))
    if last is not None:
        return count, (bucket, *last)
    return count, (bucket + 1, *FIRST[1:]) if bucket + 1 < frontier.buckets else None


def _open_found(
    name: str, query: dict[str, Any], frontier: PostgresFrontier, cursor: Cursor
) -> tuple[int, tuple[int, int] | None]:
    """Return how many of a page were opened, and the last that was looked at."""
    there = {"bucket": query["bucket"], "crawl": query["crawl"]}
    found = rows_of(cursor, name, query)
    if not found:
        return 0, None
    places = {**there, "now": frontier.now(), "bits": query["bits"], **columns(_CHOSEN, found)}
    done_by(cursor, "lock_hosts", places)
    return _change(cursor, "reopen_urls", places), found[-1]


WAITING: Final = 2**63 - 2
"""The due time of a URL that waits to be released: later than any other, and not never."""


def release_waiting(session: Session, frontier: PostgresFrontier, crawl: int, most: int) -> int:
    """Make the best of those that wait due now; return how many."""
    found = [
        (score, bucket, qid, uid)
        for bucket in range(frontier.buckets)
        for qid, uid, score in ask(session, "find_waiting", bucket=bucket, crawl=crawl, most=most)
    ]
    chosen: dict[int, list[tuple[int, int]]] = {}
    for _, bucket, qid, uid in nlargest(most, found):
        chosen.setdefault(bucket, []).append((qid, uid))
    return sum(
        session.transact(partial(_release, bucket, crawl, places, frontier))
        for bucket, places in chosen.items()
    )


def count_waiting(session: Session, frontier: PostgresFrontier, crawl: int, most: int) -> int:
    """Return how many wait; in each bucket no more are counted than `most`."""
    query = [{"bucket": bucket, "crawl": crawl, "most": most} for bucket in range(frontier.buckets)]
    return sum(ask(session, "count_waiting", **each)[0][0] for each in query)


def is_first_visit_due(session: Session, frontier: PostgresFrontier, crawl: int) -> bool:
    """Return whether a URL is due that was never visited."""
    now = frontier.now()
    query = [{"bucket": bucket, "crawl": crawl, "now": now} for bucket in range(frontier.buckets)]
    return any(ask(session, "find_first_visit", **each) for each in query)


def _release(
    bucket: int, crawl: int, places: list[tuple[int, int]], frontier: PostgresFrontier, cursor: Cursor
) -> int:
    there = {"bucket": bucket, "crawl": crawl, "now": frontier.now(), **columns(_CHOSEN, places)}
    done_by(cursor, "lock_hosts", there)
    return _change(cursor, "release", there)
