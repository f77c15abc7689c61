"""After a visit: what is known now, and when the next one is due."""

from math import ldexp
from typing import Final

import msgspec

from tamias.schedule.history import Seen, VisitHistory
from tamias.schedule.rate import PRIOR, Prior, estimate
from tamias.schedule.rules import VisitRule, parse_rule, seed_interval_ms
from tamias.schedule.value import TERMS, VisitTerms, due_after

_DAY: Final = 86_400.0
_MOST_DOUBLINGS: Final = 40


class VisitPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How visits are timed."""

    rule: VisitRule = VisitRule()
    terms: VisitTerms = TERMS
    retry_wait: float = 3600.0
    """Seconds after the first failure; doubled with each, up to the longest interval."""
    gone_wait: float = 86_400.0
    """The same for what is gone."""
    prior: Prior = PRIOR


def policy_of(
    *, rule: str, knob: float, min_interval: float, max_interval: float, retry_wait: float, gone_wait: float
) -> VisitPolicy:
    """The policy from the settings of the same names; times in seconds."""
    terms = VisitTerms(knob=knob, minimum=min_interval / _DAY, maximum=max(min_interval, max_interval) / _DAY)
    return VisitPolicy(rule=parse_rule(rule), terms=terms, retry_wait=retry_wait, gone_wait=gone_wait)


class NextVisit(msgspec.Struct, frozen=True):
    """What a visit leaves behind."""

    history: VisitHistory
    rate: float
    """Changes a day."""
    due_ms: int


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
) -> NextVisit:
    """What is known after a visit and when the next is due.

    `threshold` is the archive's, or the host's own; `expected_days` is what `first_interval` made of hints,
    if there are any; `chance`, from 0 to 1, spreads the retries of what failed together.
    """
    history = history.seeing(seen, now_ms)
    if expected_days is not None:
        history = msgspec.structs.replace(history, expected_days=expected_days)
    rate = estimate(history, policy.prior)
    if history.fails:
        wait = policy.gone_wait if seen == "gone" else policy.retry_wait
        seconds = backoff(history.fails, wait, policy.terms.maximum * _DAY, chance)
    else:
        seconds = _interval(history, rate, importance, threshold, policy)
    return NextVisit(history, rate, now_ms + round(seconds * 1000))


def backoff(fails: int, first: float, longest: float, chance: float) -> float:
    """Seconds before another try: doubled with each failure, a quarter shorter or longer by chance.

    >>> backoff(1, 3600, 1e6, 0.5), backoff(3, 3600, 1e6, 0.0), backoff(99, 3600, 1e6, 1.0)
    (3600.0, 10800.0, 1000000.0)
    """
    return min(ldexp(first, min(fails - 1, _MOST_DOUBLINGS)) * (0.75 + chance / 2), longest)


def _interval(
    history: VisitHistory, rate: float, importance: float, threshold: float, policy: VisitPolicy
) -> float:
    """Seconds until the next visit of what answers."""
    if policy.rule.name == "fixed":
        return policy.rule.seconds
    if policy.rule.name == "seed":
        return seed_interval_ms(history.recent) / 1000
    return _DAY * due_after(rate, importance, threshold, policy.terms)
