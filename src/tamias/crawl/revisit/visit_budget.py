"""The visits of a crawl that goes on: so many a day, a share of them for URLs that were never visited.

Workers ask before they lease; the supervisor sets the thresholds and releases new URLs, the best first.
"""

from functools import partial
from math import ceil
from typing import Any, Final

import msgspec

from tamias.archive.sources.revisits import crawl_rates, read_figure, write_figure
from tamias.crawl.revisit.timetable import policy_from
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.due.make_due import make_due_known
from tamias.frontier.due.waiting import count_waiting, release_waiting
from tamias.frontier.lease_filter import LeaseFilter
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.service.state import WATCH
from tamias.model.lease import Lease
from tamias.schedule.value import Thresholds
from tamias.settings import Settings

_SQL = statements("tamias.crawl.revisit", "continuous.sql")
_DAY_MS: Final = 86_400_000
_BURSTS_A_DAY: Final = 24
_PLAN_PART: Final = 10
_LONGEST_PLAN_MS: Final = 600_000
_SHORTEST_PLAN_MS: Final = 1_000
_RELEASE_MS: Final = 500
_PAGE: Final = 1000


class ContinuousPlan(msgspec.Struct, frozen=True):
    """The division of a crawl's visits among its URLs, for all workers."""

    thresholds: Thresholds = Thresholds()
    new_per_day: float = 0.0
    """URLs that are visited for the first time."""
    known_per_day: float = 0.0
    """Visits to URLs that were visited before."""
    planned_at: int = 0


def read_plan(session: Session, crawl: int) -> ContinuousPlan:
    """Return the plan that was made last."""
    return msgspec.convert(read_figure(session, _figure(crawl)) or {}, ContinuousPlan)


class VisitBudget:
    """The number of URLs that workers of a crawl may lease; unlimited without a budget."""

    def __init__(self, session: Session, crawl: int, per_day: float | None) -> None:
        self._session = session
        self._crawl = crawl
        self._per_day = per_day

    def visits(self, now: int) -> float:
        """Return how many visits may be made now; at most those of an hour."""
        if self._per_day is None:
            return float("inf")
        parameters = {
            "crawl": self._crawl,
            "now": now,
            "burst": max(1.0, self._per_day / _BURSTS_A_DAY),
            "per_ms": self._per_day / _DAY_MS,
        }
        return float(self._session.transact(partial(_value, "grant_visits", parameters)))

    def lease(self, frontier: PostgresFrontier, hosts: int, per_host: int, seconds: float) -> list[Lease]:
        """Leases about as many URLs as may be visited; those beyond are taken from later leases."""
        if self._per_day is None:
            return frontier.lease(hosts, per_host, seconds)
        visits = int(self.visits(frontier.now()))
        if visits <= 0:
            return []
        per_host = min(per_host, visits)
        leases = frontier.lease(min(hosts, ceil(visits / per_host)), per_host, seconds)
        self.charge(sum(task.crawl == self._crawl for lease in leases for task in lease.tasks))
        return leases

    def charge(self, visits: int) -> None:
        """Subtract the leased URLs from the budget."""
        if self._per_day is not None and visits:
            parameters = {"crawl": self._crawl, "visits": float(visits)}
            self._session.transact(lambda cursor: cursor.execute(_SQL["charge_visits"].text, parameters))


def budget_of(session: Session, settings: Settings, lease_filter: LeaseFilter | None) -> VisitBudget:
    """The budget of the crawl that is leased for, if it goes on and has one."""
    crawls = [crawl for crawl in (lease_filter and lease_filter.crawls) or () if crawl != WATCH]
    limited = settings.crawl.continuous and len(crawls) == 1
    return VisitBudget(session, crawls[0] if crawls else 0, settings.crawl.budget if limited else None)


class Continuing:
    """The regular work of a continuous crawl's supervisor, in the database's thread."""

    def __init__(
        self,
        session: Session,
        frontier: PostgresFrontier,
        settings: Settings,
        crawl: int,
        *,
        plan_ms: float | None = None,
    ) -> None:
        """`plan_ms`: between two plans; unless given, a tenth of the shortest interval, or ten minutes."""
        self._session = session
        self._frontier = frontier
        self._settings = settings
        self._crawl = crawl
        self._plan = read_plan(session, crawl)
        shortest = settings.schedule.min_interval * 1000 / _PLAN_PART
        self._plan_ms = plan_ms or min(_LONGEST_PLAN_MS, max(_SHORTEST_PLAN_MS, shortest))
        self._released_at = 0

    def open(self) -> int:
        """Makes due what was read before the crawl went on; returns how many URLs."""
        opened = 0
        for bucket in range(self._frontier.buckets):
            parameters = {"bucket": bucket, "crawl": self._crawl, "page": _PAGE}
            made = 1
            while made and (places := self._session.transact(partial(_rows, "find_unplanned", parameters))):
                named = [(qid, self._crawl, uid) for qid, uid in places]
                made = make_due_known(self._session, self._frontier, bucket, named)
                opened += made
        return opened

    def step(self) -> None:
        """Plans anew if it is time, and releases what may be released."""
        now = self._frontier.now()
        if now - self._plan.planned_at >= self._plan_ms:
            self.plan()
        if self._settings.crawl.budget is not None and now - self._released_at >= _RELEASE_MS:
            self._released_at = now
            self._release(now)

    def plan(self) -> ContinuousPlan:
        """Shares out the visits by all that is known now."""
        rows = crawl_rates(self._session, self._crawl, self._frontier.buckets)
        new, known = self._shares(len(rows))
        found = Thresholds()
        if rows:
            import numpy as np

            from tamias.schedule.budget import thresholds

            rates, importances, hosts = zip(*rows, strict=True)
            found = thresholds(
                np.array(rates),
                np.array(importances),
                hosts,
                known,
                host_share=self._settings.schedule.host_share,
                terms=policy_from(self._settings.schedule).terms,
            )
        self._plan = ContinuousPlan(found, new, known, self._frontier.now())
        write_figure(self._session, _figure(self._crawl), self._plan, self._plan.planned_at)
        return self._plan

    def _shares(self, known: int) -> tuple[float, float]:
        """Visits a day to new and to known URLs: what one side cannot use is the other's."""
        schedule, budget = self._settings.schedule, self._settings.crawl.budget
        if budget is None:
            return 0.0, schedule.visits_each * known
        most = known * _DAY_MS / 1000 / schedule.min_interval
        new = max(budget * self._settings.crawl.new_share, budget - most)
        waiting = count_waiting(self._session, self._frontier, self._crawl, int(new) + 1)
        return new, max(budget - min(new, waiting), budget * 1e-6)

    def _release(self, now: int) -> None:
        VisitBudget(self._session, self._crawl, self._settings.crawl.budget).visits(now)
        parameters = {"crawl": self._crawl, "now": now, "per_ms": self._plan.new_per_day / _DAY_MS}
        most = self._session.transact(partial(_value, "grant_releases", parameters))
        if most:
            release_waiting(self._session, self._frontier, self._crawl, int(most))


def _figure(crawl: int) -> str:
    return f"visits of crawl {crawl}"


def _rows(name: str, parameters: dict[str, Any], cursor: Cursor) -> list[tuple[Any, ...]]:
    return cursor.execute(_SQL[name].text, parameters).fetchall()


def _value(name: str, parameters: dict[str, Any], cursor: Cursor) -> Any:
    return _rows(name, parameters, cursor)[0][0]
