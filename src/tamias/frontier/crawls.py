"""Crawls side by side in one frontier: listed, paused, limited, deleted."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from tamias.database.columns import Ints, Texts
from tamias.database.connect import Session
from tamias.frontier.lease_filter import LeaseFilter
from tamias.frontier.queries import ask, crawl_figures, read_buckets, rows_of, tell
from tamias.frontier.service import Queues
from tamias.model.errors import NodeAway, UsageError
from tamias.model.item import WATCH

ACTIVE, PAUSED, STOPPED = "active", "paused", "stopped"
SERVED = "service"
"""Active, and the service works on it although no run handed it over."""
_LOOK_MS = 1000


class CrawlState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a crawl, with its counts."""

    name: str
    state: str
    limit: int | None
    """It is paused when so many of its URLs are done."""
    known: int
    open: int
    hosts: int
    """Queues: of a host, or of what else shares one."""


class Crawl(CrawlState, frozen=True, kw_only=True):
    """Crawl, with its options."""

    number: int
    policy: dict[str, Any]


def crawls(session: Session) -> list[Crawl]:
    """Return all crawls, the oldest first."""
    query = {"now": session.now(), "require": None, "forbid": None}
    queues = [
        row
        for bucket in range(read_buckets(session))
        for row in ask(session, "crawl_figures", bucket=bucket, **query)
    ]
    found = []
    for number, name, state, limit, policy in ask(session, "crawl_rows"):
        stats = crawl_figures(number, name, [row for row in queues if row[0] == number])
        counts = {"known": stats.known, "open": stats.open, "hosts": stats.hosts}
        found.append(Crawl(number=number, name=name, state=state, limit=limit, policy=policy, **counts))
    return found


def named(session: Session, name: str) -> int:
    """The number of a crawl. Raises `UsageError` where there is none of that name."""
    known = {row[1]: row[0] for row in ask(session, "crawl_rows")}
    if name not in known:
        raise UsageError(f"there is no crawl '{name}'; there are: {', '.join(sorted(known))}")
    return int(known[name])


def pause(session: Session, crawl: int) -> None:
    """Pause a crawl: no URL of it is lent any more. May be done twice."""
    tell(session, "set_state", crawl=crawl, state=PAUSED)
    Queues(session, same_url=str.__eq__).pause_crawl(crawl, paused=True)


def resume(session: Session, crawl: int) -> None:
    """Resume a crawl. Raises `UsageError` where its limit is reached: that would only pause it again."""
    if (limit := _reached(session, crawl)) is not None:
        raise UsageError(
            f"the crawl has reached its limit of {limit} URLs; "
            "'tamias crawls limit NAME --max-urls N' sets a higher one, 0 removes it"
        )
    tell(session, "next_run", crawl=crawl)
    tell(session, "set_state", crawl=crawl, state=ACTIVE)
    Queues(session, same_url=str.__eq__).pause_crawl(crawl, paused=False)


def resume_run(session: Session, crawl: int) -> None:
    """Resume a crawl that its user runs again. It stays paused where its limit is reached."""
    tell(session, "next_run", crawl=crawl)
    tell(session, "change_state", crawl=crawl, before=Texts([STOPPED]), state=ACTIVE)
    rows = ask(session, "crawl_rows")
    if (crawl, PAUSED) in {(row[0], row[2]) for row in rows} and _reached(session, crawl) is None:
        resume(session, crawl)


def stop(session: Session, crawl: int) -> None:
    """Stop a crawl whose user ended the run: nobody works on it until it is resumed. A pause stays."""
    tell(session, "change_state", crawl=crawl, before=Texts([ACTIVE, SERVED]), state=STOPPED)


def end_run(session: Session, crawl: int) -> None:
    """Stop a crawl, also a paused one."""
    tell(session, "set_state", crawl=crawl, state=STOPPED)
    Queues(session, same_url=str.__eq__).pause_crawl(crawl, paused=False)


def resume_in_service(session: Session, crawl: int) -> None:
    """Let the service work on a crawl. Raises `UsageError` where its limit is reached."""
    resume(session, crawl)
    tell(session, "set_state", crawl=crawl, state=SERVED)


def set_limit(session: Session, crawl: int, urls: int | None) -> None:
    """Limit a crawl: it is paused soon after so many of its URLs are done, those of earlier runs included."""
    tell(session, "set_most_done", crawl=crawl, limit=urls)


def delete(session: Session, crawl: int) -> int:
    """Remove its queues and URLs, not what was captured; return how many URLs went.

    Raises `UsageError` for the archive's own: what is under watch is not a crawl of somebody.
    """
    if crawl == WATCH:
        raise UsageError("the crawl 'watch' is the archive's own: it cannot be deleted, only paused")
    gone = Queues(session, same_url=str.__eq__).delete(crawl)
    for name in ("forget_budget", "forget_shares", "forget_crawl"):
        tell(session, name, crawl=crawl)
    return gone


class Neighbours:
    """Crawls beside those of a frontier: whether there are any, and their limits."""

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
        """Pause, from time to time, crawls that have reached their limit."""
        if self._looked_at is not None and self._now() - self._looked_at < _LOOK_MS:
            return
        self._looked_at = self._now()
        limited, known = ask(self._session, "limited_crawls")[0]
        for crawl in limited:
            if _reached(self._session, crawl) is not None:
                pause(self._session, crawl)
        own = self._lease_filter.crawls
        if own is not None and not self._others:
            self._others = self._have_queues(sorted(set(known) - set(own)))

    def concern(self) -> bool:
        """Return whether ready hosts may have nothing to lend on the terms of this frontier."""
        return self._lease_filter.interest is not None or self._others

    def _have_queues(self, crawls: list[int]) -> bool:
        for bucket in range(self._buckets):
            place = {"bucket": bucket, "crawls": Ints(crawls)}
            with suppress(NodeAway):
                if self._session.transact(partial(rows_of, name="have_queues", parameters=place), bucket):
                    return True
        return False


def _reached(session: Session, crawl: int) -> int | None:
    """The limit of a crawl, if so many of its URLs are done."""
    rows = ask(session, "crawl_rows")
    limit: int | None = next((row[3] for row in rows if row[0] == crawl), None)
    if limit is None:
        return None
    buckets = range(read_buckets(session))
    done = sum(ask(session, "count_done", bucket=bucket, crawl=crawl)[0][0] for bucket in buckets)
    return limit if done >= limit else None
