"""The schedule of all resources, and the visits of a crawl that goes on.

Workers ask before they lease; the supervisor sets the thresholds and releases new URLs, the best first.
"""

import time
from collections.abc import Sequence
from math import ceil
from typing import Final

import msgspec

from tamias.archive.blobs import BlobReader
from tamias.archive.sources.revisits import (
    Revisit,
    read_figure,
    read_rates,
    set_importances,
    write_figure,
)
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.frontier.lease_filter import LeaseFilter
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.item import WATCH
from tamias.model.lease import Lease
from tamias.model.site import HostNote
from tamias.plugins import load_all
from tamias.schedule.hints import Trust
from tamias.schedule.rules import parse_importance, parse_rule
from tamias.schedule.visit import VISITS_A_CHANGE, Thresholds, VisitPolicy, VisitTerms
from tamias.settings import ScheduleSettings, Settings

_FIGURE = "thresholds"
_FRESH_SECONDS = 60.0
_DAY = 86_400.0


class PlannedVisit(msgspec.Struct, frozen=True, kw_only=True):
    """The consequences of a visit in a continuous crawl."""

    revisit: Revisit
    due: int
    same: bool
    """Whether the body is the one that was read before."""
    moved_due: int | None = None
    """When the address is due that a permanent redirect led to."""
    trust: tuple[str, Trust] | None = None
    """In the dates of the host's sitemaps, after this visit."""


class Timetable:
    """The thresholds as the database last gave them. For one thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._thresholds = Thresholds()
        self._read_at = float("-inf")

    def of(self, host: str) -> tuple[float, bool]:
        """The threshold of a host, and whether it has as many visits as one host may."""
        if time.monotonic() > self._read_at + _FRESH_SECONDS:
            self._thresholds = msgspec.convert(read_figure(self._session, _FIGURE) or {}, Thresholds)
            self._read_at = time.monotonic()
        return self._thresholds.of(host), host in self._thresholds.hosts


def host_notes(session: Session) -> list[HostNote]:
    """Return a note about each host whose watched resources get as many visits as one host may have."""
    found = msgspec.convert(read_figure(session, _FIGURE) or {}, Thresholds)
    text = f"its watched resources get at most {found.share:,.6g} visits a day, as many as one host may have"
    return [HostNote(host=host, text=text) for host in sorted(found.hosts)]


def policy_from(settings: ScheduleSettings) -> VisitPolicy:
    """Return the visit policy of the settings."""
    shortest, longest = settings.min_interval / _DAY, settings.max_interval / _DAY
    return VisitPolicy(
        rule=parse_rule(settings.rule),
        terms=VisitTerms(knob=settings.knob, minimum=shortest, maximum=max(shortest, longest)),
        retry_wait=settings.retry_wait,
        gone_wait=settings.gone_wait,
        visits_a_change=VISITS_A_CHANGE if settings.budget is None else 0.0,
    )


def set_thresholds(session: Session, settings: ScheduleSettings) -> Thresholds:
    """Computes the thresholds from all that is known, for everybody."""
    rules = parse_importance(settings.importance)
    set_importances(session, rules.named("portal"), rules.named("quality"))
    found = share_visits(read_rates(session), settings, settings.budget)
    write_figure(session, _FIGURE, found, session.now())
    return found


def share_visits(
    rows: Sequence[tuple[float, float, str]], settings: ScheduleSettings, budget: float | None
) -> Thresholds:
    """Share visits out by rates of change, importances and hosts: a budget a day, or so many for each."""
    if not rows:
        return Thresholds()
    import numpy as np

    from tamias.schedule.budget import attentive_thresholds, thresholds

    rates, importances, hosts = zip(*rows, strict=True)
    known, terms = (np.array(rates), np.array(importances), hosts), policy_from(settings).terms
    if budget is not None:
        return thresholds(*known, budget, host_share=settings.host_share, terms=terms)
    return attentive_thresholds(
        *known, settings.visits_each * len(rows), host_visits=settings.host_visits, terms=terms
    )


def keep_house(session: Session, blobs: BlobReader, settings: Settings) -> None:
    """Do all of it once. Each part may be repeated, and is harmless when two do it at the same time."""
    set_thresholds(session, settings.schedule)
    for chore in load_all("chores").values():
        chore(session, blobs, settings)


_SQL = statements("tamias.crawl.revisit", "visit_budget.sql")
_DAY_MS: Final = 86_400_000
_BURSTS_A_DAY: Final = 24


class VisitBudget:
    """The number of URLs that workers of a crawl may lease."""

    def __init__(self, session: Session, crawl: int, per_day: float) -> None:
        self._session = session
        self._crawl = crawl
        self._per_day = per_day

    def visits(self, now: int) -> float:
        """Return how many visits may be made now; at most those of an hour."""
        burst, per_ms = max(1.0, self._per_day / _BURSTS_A_DAY), self._per_day / _DAY_MS
        parameters = {"crawl": self._crawl, "now": now, "burst": burst, "per_ms": per_ms}
        return float(self._session.fetch_all(_SQL["grant_visits"], parameters)[0][0])

    def lease(self, frontier: PostgresFrontier, hosts: int, per_host: int, seconds: float) -> list[Lease]:
        """Leases about as many URLs as may be visited; those beyond are taken from later leases."""
        visits = int(self.visits(frontier.now()))
        if visits <= 0:
            return []
        per_host = min(per_host, visits)
        leases = frontier.lease(min(hosts, ceil(visits / per_host)), per_host, seconds)
        taken = sum(task.crawl == self._crawl for lease in leases for task in lease.tasks)
        self._session.execute(_SQL["charge_visits"], {"crawl": self._crawl, "visits": float(taken)})
        return leases


def budget_of(session: Session, settings: Settings, lease_filter: LeaseFilter | None) -> VisitBudget | None:
    """Return the budget of the crawl that is leased for, if it goes on and has one."""
    crawls = [crawl for crawl in (lease_filter and lease_filter.crawls) or () if crawl != WATCH]
    per_day = settings.crawl.budget if settings.crawl.continuous and len(crawls) == 1 else None
    return None if per_day is None else VisitBudget(session, crawls[0], per_day)
