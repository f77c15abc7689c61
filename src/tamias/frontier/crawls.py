"""Several crawls side by side in one frontier: listed, paused, limited, deleted."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from tamias.database.columns import Ints, Texts
from tamias.database.connect import Session
from tamias.frontier.lease_filter import LeaseFilter
from tamias.frontier.queries import count_of, done_by, rows_of
from tamias.frontier.service.queues import Queues
from tamias.frontier.service.state import WATCH
from tamias.model.errors import NodeAway, UsageError

ACTIVE, PAUSED, STOPPED = "active", "paused", "stopped"
SERVED = "service"
"""Active, and the service works on it although no run handed it over."""
_LOOK_MS = 1000


class Crawl(msgspec.Struct, frozen=True, kw_only=True):
    """One crawl, and what it has."""

    number: int
    name: str
    state: str
    limit: int | None
    """It is paused when so many of its URLs are done."""
    known: int
    open: int
    hosts: int
    policy: dict[str, Any]


def crawls(session: Session) -> list[Crawl]:
    """All crawls, the oldest first."""
    queues = Queues(session, same_url=str.__eq__)
    return [_crawl(queues, row) for row in session.transact(lambda cursor: rows_of(cursor, "crawl_rows", {}))]


def _crawl(queues: Queues, row: tuple[Any, ...]) -> Crawl:
    number, name, state, limit, policy = row
    figures = queues.figures(number, None)
    return Crawl(
        number=number,
        name=name,
        state=state,
        limit=limit,
        known=figures.scheduled + figures.done,
        open=figures.scheduled,
        hosts=figures.queues,
        policy=policy,
    )


def named(session: Session, name: str) -> int:
    """The number of a crawl. Raises `UsageError` where there is none of that name."""
    known = {row[1]: row[0] for row in session.transact(lambda cursor: rows_of(cursor, "crawl_rows", {}))}
    if name not in known:
        raise UsageError(f"there is no crawl '{name}'; there are: {', '.join(sorted(known))}")
    return int(known[name])


def pause(session: Session, crawl: int) -> None:
    """No URL of it is lent any more; what workers hold they finish. May be done twice."""
    _set_state(session, crawl, PAUSED)
    Queues(session, same_url=str.__eq__).pause_crawl(crawl, paused=True)


def resume(session: Session, crawl: int) -> None:
    """It goes on. Raises `UsageError` where its limit is reached: that would only pause it again."""
    if (limit := _reached(session, crawl)) is not None:
        raise UsageError(
            f"the crawl has reached its limit of {limit} URLs; "
            "'tamias crawls limit NAME --max-urls N' sets a higher one, 0 removes it"
        )
    _set_state(session, crawl, ACTIVE)
    Queues(session, same_url=str.__eq__).pause_crawl(crawl, paused=False)


def resume_run(session: Session, crawl: int) -> None:
    """Its user runs it again. It stays paused where its limit is reached."""
    _change_state(session, crawl, (STOPPED,), ACTIVE)
    rows = session.transact(lambda cursor: rows_of(cursor, "crawl_rows", {}))
    if (crawl, PAUSED) in {(row[0], row[2]) for row in rows} and _reached(session, crawl) is None:
        resume(session, crawl)


def stop(session: Session, crawl: int) -> None:
    """Its user ended the run: nobody works on it until its user resumes it. A pause stays a pause."""
    _change_state(session, crawl, (ACTIVE, SERVED), STOPPED)


def resume_in_service(session: Session, crawl: int) -> None:
    """Let the service work on a crawl. Raises `UsageError` where its limit is reached."""
    resume(session, crawl)
    _set_state(session, crawl, SERVED)


def set_limit(session: Session, crawl: int, urls: int | None) -> None:
    """It is paused soon after so many of its URLs are done, those of earlier runs included."""
    asked = {"crawl": crawl, "limit": urls}
    session.transact(lambda cursor: done_by(cursor, "set_most_done", asked))


def delete(session: Session, crawl: int) -> int:
    """Removes its queues and URLs, not what was captured; returns how many URLs went.

    Raises `UsageError` for the archive's own: what is under watch is not a crawl of somebody.
    """
    if crawl == WATCH:
        raise UsageError("the crawl 'watch' is the archive's own: it cannot be deleted, only paused")
    gone = Queues(session, same_url=str.__eq__).delete(crawl)
    for name in ("forget_budget", "forget_crawl"):
        session.transact(partial(done_by, name=name, parameters={"crawl": crawl}))
    return gone


class Neighbours:
    """What a frontier must know of crawls beside its own: whether there are any, and limits to be kept."""

    def __init__(
        self, session: Session, now: Callable[[], int], lease_filter: LeaseFilter, buckets: int
    ) -> None:
        self._session = session
        self._now = now
        self._lease_filter = lease_filter
        self._buckets = buckets
        self._looked_at: int | None = None
        self._others = False

    def look(self) -> None:
        """From time to time: pauses crawls that have reached their limit."""
        if self._looked_at is not None and self._now() - self._looked_at < _LOOK_MS:
            return
        self._looked_at = self._now()
        found = self._session.transact(lambda cursor: rows_of(cursor, "limited_crawls", {}))
        limited, known = found[0]
        for crawl in limited:
            if _reached(self._session, crawl) is not None:
                pause(self._session, crawl)
        own = self._lease_filter.crawls
        if own is not None and not self._others:
            self._others = self._have_queues(sorted(set(known) - set(own)))

    def concern(self) -> bool:
        """Whether ready hosts may have nothing to lend on the terms of this frontier."""
        return self._lease_filter.interest is not None or self._others

    def _have_queues(self, crawls: list[int]) -> bool:
        for bucket in range(self._buckets):
            place = {"bucket": bucket, "crawls": Ints(crawls)}
            with suppress(NodeAway):
                if self._session.transact(partial(count_of, name="have_queues", parameters=place), bucket):
                    return True
        return False


def _set_state(session: Session, crawl: int, state: str) -> None:
    session.transact(lambda cursor: done_by(cursor, "set_state", {"crawl": crawl, "state": state}))


def _change_state(session: Session, crawl: int, before: tuple[str, ...], after: str) -> None:
    values = {"crawl": crawl, "before": Texts(before), "state": after}
    session.transact(lambda cursor: done_by(cursor, "change_state", values))


def _reached(session: Session, crawl: int) -> int | None:
    """The limit of a crawl, if so many of its URLs are done."""
    rows = session.transact(lambda cursor: rows_of(cursor, "crawl_rows", {}))
    limit: int | None = next((row[3] for row in rows if row[0] == crawl), None)
    if limit is None:
        return None
    buckets = session.transact(lambda cursor: count_of(cursor, "read_buckets", {}))
    done = sum(_count_done(session, bucket, crawl) for bucket in range(buckets))
    return limit if done >= limit else None


def _count_done(session: Session, bucket: int, crawl: int) -> int:
    asked = {"bucket": bucket, "crawl": crawl}
    return session.transact(partial(count_of, name="count_done", parameters=asked))
