"""The history of a resource, how often it changes, and when its next visit is due."""

from itertools import pairwise
from math import exp, expm1, ldexp, log, log1p, sqrt
from typing import Final, Literal

import msgspec

from tamias.schedule.rules import VisitRule, seed_interval_ms

DAY_MS: Final = 86_400_000
WINDOW: Final = 10
"""Observations that stay as they were; the seed's rule looks at so many."""
MEMORY: Final = 100
"""An observation counts 1/e after so many others, so a publisher who changes his ways is noticed."""
_KEEP: Final = 1 - 1 / MEMORY
_CENTROIDS: Final = 8

Seen = Literal["changed", "unchanged", "noise", "failed", "gone"]
"""What a visit saw. Noise: other bytes, the same content. Failed: nothing was learnt of the content."""


class VisitHistory(msgspec.Struct, frozen=True, array_like=True):
    """The history of visits, stored with the resource as MessagePack."""

    visited_at: int | None = None
    """Milliseconds UTC of the last visit that told whether the content changed."""
    fails: int = 0
    """Visits since then that told nothing."""
    unchanged_days: float = 0.0
    """Time between visits over which nothing changed; the old counts less."""
    changed: tuple[tuple[float, float], ...] = ()
    """Days between visits over which something changed, and how many such intervals this stands for."""
    recent: tuple[tuple[int, bool], ...] = ()
    """The last intervals in milliseconds, each with whether it saw a change; oldest first."""
    expected_days: float | None = None
    """How often it changes by the word of others; what is seen soon weighs more."""

    def seeing(self, seen: Seen, at_ms: int) -> "VisitHistory":
        """The history after one more visit.

        A failure is a censored observation: the interval goes on until a visit tells whether it changed.
        """
        if seen in {"failed", "gone"}:
            return msgspec.structs.replace(self, fails=self.fails + 1)
        history = self if self.visited_at is None else self.after(at_ms - self.visited_at, seen == "changed")
        return msgspec.structs.replace(history, visited_at=max(at_ms, self.visited_at or at_ms), fails=0)

    def after(self, interval_ms: int, changed: bool) -> "VisitHistory":
        """The history with one more observed interval. A clock that went back gives none."""
        if interval_ms <= 0:
            return self
        days = interval_ms / DAY_MS
        faded = [(each, count * _KEEP) for each, count in self.changed if count * _KEEP > 1e-3]
        return msgspec.structs.replace(
            self,
            unchanged_days=self.unchanged_days * _KEEP + (0.0 if changed else days),
            changed=_with(faded, days) if changed else tuple(faded),
            recent=(*self.recent[1 - WINDOW :], (interval_ms, changed)),
        )


def _with(centroids: list[tuple[float, float]], days: float) -> tuple[tuple[float, float], ...]:
    """Add an interval in order; if there are too many, merge the two nearest by ratio."""
    ordered = sorted([*centroids, (days, 1.0)])
    if len(ordered) > _CENTROIDS:
        at = min(range(_CENTROIDS), key=lambda i: ordered[i + 1][0] / ordered[i][0])
        (short, many), (long, more) = ordered[at : at + 2]
        ordered[at : at + 2] = [((short * many + long * more) / (many + more), many + more)]
    return tuple(ordered)


def pack(history: VisitHistory) -> bytes:
    """The history as it is kept."""
    return msgspec.msgpack.encode(history)


def unpack(packed: bytes | None) -> VisitHistory:
    """The history as it was kept; an empty one where there is none."""
    return msgspec.msgpack.decode(packed, type=VisitHistory) if packed else VisitHistory()


_SMALL: Final = 1e-4


class VisitTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The aim of the archive's visits, and the shortest and longest time between two, in days."""

    knob: float = 0.3
    minimum: float = 1 / 24
    maximum: float = 180.0


TERMS: Final = VisitTerms()
VISITS_A_CHANGE: Final = 2.0
"""The fewest for each change that is to be expected, without a budget."""


class Thresholds(msgspec.Struct, frozen=True):
    """The threshold of the archive, and those of the hosts that are held to their share."""

    common: float = 0.0
    hosts: dict[str, float] = {}
    share: float = 0.0
    """Visits a day that one host may have."""

    def of(self, host: str) -> float:
        """The threshold for the resources of a host."""
        return self.hosts.get(host, self.common)


def due_after(rate: float, importance: float, threshold: float, terms: VisitTerms = TERMS) -> float:
    """Days until a visit is worth the threshold, V = (w/λ) (1 - (1 + λt) e^-λt) with w = importance · λ^knob.

    What never gets there has its turn after the longest time.

    >>> round(due_after(1.0, 1.0, 0.593994150290162), 9), due_after(50.0, 1.0, 0.5)
    (2.0, 180.0)
    """
    worth = importance * float(rate**terms.knob)
    if threshold * rate >= worth:
        return terms.maximum
    return min(max(_age(-log1p(-threshold * rate / worth)) / rate, terms.minimum), terms.maximum)


def _age(height: float) -> float:
    """The x with x - ln(1 + x) = height, which is where 1 - (1 + x) e^-x is 1 - e^-height.

    The first guess is a bound of Lambert's W that is close everywhere; three Newton steps do the rest.
    """
    x = sqrt(2 * height) + height * (2 / 3)
    if x < _SMALL:
        return x
    for _ in range(3):
        x -= (x - log1p(x) - height) * (1 + x) / x
    return x


class Prior(msgspec.Struct, frozen=True):
    """The assumption about a resource before anything was seen: so many changes in so many days."""

    shape: float = 0.35
    days: float = 7.0

    @property
    def rate(self) -> float:
        """Change a day."""
        return self.shape / self.days


PRIOR: Final = Prior()


def estimate(history: VisitHistory, prior: Prior = PRIOR) -> float:
    """Change a day: the mode over log λ, by Newton's method in log λ.

    Every unchanged day counts against the rate; a changed interval t counts λt / (e^λt - 1) for it.
    A prior that others' word gives (`expected_days`) takes the place of the general one.
    """
    if history.expected_days:
        prior = Prior(prior.shape, prior.shape * history.expected_days)
    quiet = prior.days + history.unchanged_days
    if not history.changed:
        return prior.shape / quiet
    return _root(prior.shape, quiet, history.changed)


def _root(shape: float, quiet: float, changed: tuple[tuple[float, float], ...]) -> float:
    """Return where shape - quiet λ + Σ count λt / (e^λt - 1) falls through zero.

    The first guess takes 1 - λt/2 for each term, which is too little, so it lies at or below the root.
    """
    count = sum(many for _, many in changed)
    time = sum(days * many for days, many in changed)
    low = log((shape + count) / (quiet + time / 2))
    high = log((shape + count) / quiet)
    guess = low
    for _ in range(20):
        height, slope = _height(shape, quiet, changed, exp(guess))
        low, high = (guess, high) if height > 0 else (low, guess)
        step = guess - height / slope
        # Newton may leave the bracket where the curve bends; halving it never does.
        following = step if low <= step <= high else (low + high) / 2
        if abs(following - guess) < 1e-9:
            return exp(following)
        guess = following
    return exp(guess)


def _height(
    shape: float, quiet: float, changed: tuple[tuple[float, float], ...], rate: float
) -> tuple[float, float]:
    """The sum, and its slope in log λ."""
    height = shape - quiet * rate
    slope = -quiet * rate
    for days, many in changed:
        x = rate * days
        # Beyond it e^x overflows, and the term is zero anyway.
        if x > 700.0:
            continue
        over = expm1(x)
        term = many * x / over
        height += term
        slope += term * (1.0 - x * (over + 1.0) / over)
    return height, slope


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
