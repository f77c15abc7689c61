"""The schedule of all resources: the thresholds that spend the budget, set by one process and read by all."""

import time

import msgspec

from tamias.archive.sources.revisits import (
    Revisit,
    read_figure,
    read_rates,
    set_importances,
    write_figure,
)
from tamias.database.connect import Session
from tamias.model.site import HostNote
from tamias.schedule.hints import Trust
from tamias.schedule.rules import parse_importance, parse_rule
from tamias.schedule.value import VISITS_A_CHANGE, Thresholds, VisitTerms
from tamias.schedule.visit import VisitPolicy
from tamias.settings import ScheduleSettings

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
    rows = read_rates(session)
    found = Thresholds()
    if rows:
        import numpy as np

        from tamias.schedule.budget import attentive_thresholds, thresholds

        rates, importances, hosts = zip(*rows, strict=True)
        known, terms = (np.array(rates), np.array(importances), hosts), policy_from(settings).terms
        if settings.budget is None:
            found = attentive_thresholds(
                *known, settings.visits_each * len(rows), host_visits=settings.host_visits, terms=terms
            )
        else:
            found = thresholds(*known, settings.budget, host_share=settings.host_share, terms=terms)
    write_figure(session, _FIGURE, found, session.now())
    return found
