"""The results of a visit: what is known now, and when the next one is due."""

from itertools import pairwise
from math import expm1, ldexp
from typing import Final

import msgspec

from tamias.schedule.history import DAY_MS, WINDOW, Seen, VisitHistory
from tamias.schedule.rate import PRIOR, Prior, estimate
from tamias.schedule.rules import VisitRule, seed_interval_ms
from tamias.schedule.value import TERMS, VISITS_A_CHANGE, VisitTerms, due_after

_DAY: Final = 86_400.0
_FIRST_DAYS: Final = 0.25
"""Before the second visit, where nobody says how often it changes."""
_SOON_DAYS: Final = 0.125
"""At most, after a change, where changes come in bursts."""
_RESTLESS_DAYS: Final = 1.0
"""Between visits to a page that has changed at each of the last ones: it is made for each request."""


class VisitPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The policy for the times of visits."""

    rule: VisitRule = VisitRule()
    terms: VisitTerms = TERMS
    retry_wait: float = 3600.0
    """Seconds after the first failure; doubled with each, up to the longest interval."""
    gone_wait: float = 86_400.0
    """The same for what is gone."""
    prior: Prior = PRIOR
    visits_a_change: float = VISITS_A_CHANGE
    """The fewest for each change that is to be expected; 0 where a budget limits the visits."""


class NextVisit(msgspec.Struct, frozen=True):
    """The consequences of a visit."""

    history: VisitHistory
    rate: float
    """Changes a day."""
    due_ms: int
    missed: float = 0.0
    """Versions between this visit and the one before that probably nobody saw."""


DEFAULT: Final = VisitPolicy()


def next_visit(
    history: VisitHistory,
    seen: Seen,
    now_ms: int,
    *,
    threshold: float,
    importance: float = 1.0,
    policy: VisitPolicy = DEFAULT,
    expected_days: float | None = None,
    chance: float = 0.5,
    is_limited: bool = False,
    is_page: bool = False,
) -> NextVisit:
    """Return what is known after a visit and when the next is due.

    `threshold` is the archive's, or the host's own; `expected_days` is what `first_interval` made of hints,
    if there are any; `chance`, from 0 to 1, spreads the retries of what failed together. With `is_limited`
    the host gets as many visits as it may, and no more for changes. A page that changes at every visit is
    visited once a day.
    """
    since = history.visited_at
    history = history.seeing(seen, now_ms)
    if expected_days is not None:
        history = msgspec.structs.replace(history, expected_days=expected_days)
    rate = estimate(history, policy.prior)
    if history.fails:
        wait = policy.gone_wait if seen == "gone" else policy.retry_wait
        seconds = backoff(history.fails, wait, policy.terms.maximum * _DAY, chance)
    else:
        policy = msgspec.structs.replace(policy, visits_a_change=0.0) if is_limited else policy
        seconds = _interval(history, rate, importance, threshold, policy)
        if is_page and len(history.recent) == WINDOW and all(changed for _, changed in history.recent):
            seconds = max(seconds, _RESTLESS_DAYS * _DAY)
    missed = 0.0
    if seen == "changed" and since is not None and now_ms > since:
        missed = unseen_changes(rate * (now_ms - since) / DAY_MS)
    return NextVisit(history, rate, now_ms + round(seconds * 1000), missed)


def unseen_changes(expected: float) -> float:
    """Return how many more than one change there were, where one was seen and so many were to be expected.

    >>> unseen_changes(0.0), round(unseen_changes(1.0), 2), round(unseen_changes(20.0))
    (0.0, 0.58, 19)
    """
    return expected / -expm1(-expected) - 1 if expected > 1e-9 else 0.0


def backoff(fails: int, first: float, longest: float, chance: float) -> float:
    """Seconds before another try: doubled with each failure, a quarter shorter or longer by chance.

    >>> backoff(1, 3600, 1e6, 0.5), backoff(3, 3600, 1e6, 0.0), backoff(99, 3600, 1e6, 1.0)
    (3600.0, 10800.0, 1000000.0)
    """
    return min(ldexp(first, min(fails - 1, 40)) * (0.75 + chance / 2), longest)


def _interval(
    history: VisitHistory, rate: float, importance: float, threshold: float, policy: VisitPolicy
) -> float:
    """Seconds until the next visit of what answers."""
    if policy.rule.name == "fixed":
        return policy.rule.seconds
    if policy.rule.name == "seed":
        return seed_interval_ms(history.recent) / 1000
    days = due_after(rate, importance, threshold, policy.terms)
    if policy.visits_a_change:
        days = min(days, _attentive(history, rate * policy.visits_a_change))
    return _DAY * min(max(days, policy.terms.minimum), policy.terms.maximum)


def _attentive(history: VisitHistory, visits_a_day: float) -> float:
    """Return days until the next visit: after a change at the latest as soon as before, in bursts sooner."""
    if not history.recent:
        return 1 / visits_a_day if history.expected_days else _FIRST_DAYS
    last_ms, changed = history.recent[-1]
    last = last_ms / DAY_MS
    after_change = min(last / 2, _SOON_DAYS) if _is_bursty(history) else last
    return min(1 / visits_a_day, after_change if changed else last * 2)


def _is_bursty(history: VisitHistory) -> bool:
    """Tell if at least half of the known visits soon after a change found another."""
    found = [
        changed
        for (_, before), (interval_ms, changed) in pairwise(history.recent)
        if before and interval_ms < 2 * _SOON_DAYS * DAY_MS
    ]
    return 2 * sum(found) >= len(found)
