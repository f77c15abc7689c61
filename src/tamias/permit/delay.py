"""The delays of a host: between requests, when it asks for one (RFC 9110), when it is away."""

from datetime import UTC, datetime
from functools import lru_cache
from math import ceil

import msgspec

from tamias.model.capture import Unreached
from tamias.model.lease import Unreachable

LONGEST_WAIT_MS = 24 * 3600 * 1000
"""A longer wait is taken for this one, after which the host is asked again."""

_HTTP_DATES = ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y")
_LONGEST_DATE = 40


def retry_after_ms(value: str | None, now_ms: int) -> int | None:
    """Milliseconds to wait from now. None where nothing sensible is asked, also for a date that has passed.

    >>> retry_after_ms("120", 0), retry_after_ms("Thu, 01 Jan 1970 00:00:05 GMT", 2000)
    (120000, 3000)
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        # Ten digits are far over the longest wait already.
        return min(int("0" + text.lstrip("0")[:10]) * 1000, LONGEST_WAIT_MS)
    when = _date_ms(text)
    if when is None or when < now_ms:
        return None
    return min(when - now_ms, LONGEST_WAIT_MS)


def _date_ms(text: str) -> int | None:
    if len(text) > _LONGEST_DATE:
        return None
    for form in _HTTP_DATES:
        try:
            return int(datetime.strptime(text, form).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            continue
    return None


LONGEST_DELAY_MS = 2**31 - 1
"""24 days, the most that the frontier can hold; a longer one is taken for this."""


@lru_cache
def host_delay_ms(configured_s: float, crawl_delay_s: float | None, obey_robots: bool) -> int:
    """The longer of the configured delay and, where robots.txt is obeyed, its Crawl-delay.

    >>> host_delay_ms(1.0, 10.0, True), host_delay_ms(1.0, 10.0, False), host_delay_ms(0, None, True)
    (10000, 1000, 0)
    """
    wanted_s = crawl_delay_s if obey_robots and crawl_delay_s is not None else 0.0
    milliseconds = min(max(configured_s, wanted_s) * 1000, LONGEST_DELAY_MS)
    # Rounded first, as 1.1 * 1000 is a little more than 1100.
    return ceil(round(milliseconds, 6))


LONGEST_WAIT = 4 * 3_600_000
GIVEN_UP_WAIT = 600_000
"""After so long a host that was given up gets one more try, if there are new URLs for it."""
JITTER = 0.25
"""Waits are up to so much longer, so that hosts that were lost together do not come back together."""
_JUST_AFTER = 60_000


class ReachPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Times are milliseconds."""

    retries: int
    retry_wait: int
    """Before the first retry."""
    max_wait: int
    """How long a run waits for a host before it leaves it to a later run."""
    least_tries: int
    least_time: int
    """A host that may be away for a while is given up after so many tries over so long a time."""


def failed_again(
    before: Unreachable | None, authority: str, why: Unreached, reason: str, *,
    now: int, run_began: int, policy: ReachPolicy, chance: float,
) -> Unreachable:  # fmt: skip
    """Return what is known after one more try in vain; `chance` is a random number from 0 to 1."""
    since = before.since if before else now
    tries = before.tries + 1 if before else 1
    over = tries > (1 if why is Unreached.NO_NAME else policy.retries)
    definite = why in (Unreached.DEFINITE, Unreached.NO_NAME)
    waited = now - max(since, run_began)
    if definite:
        wait, given_up = policy.retry_wait * 2 ** min(tries - 1, 30), over
    else:
        wait = max(policy.retry_wait, waited)
        given_up = tries >= policy.least_tries and now - since >= policy.least_time
    given_up = given_up or (before is not None and before.given_up)
    wait = int(min(wait, LONGEST_WAIT) * (1 + JITTER * chance))
    patient = definite or waited + wait <= policy.max_wait
    if not patient:
        wait = max(wait, policy.max_wait + _JUST_AFTER)
    return Unreachable(
        authority=authority,
        since=since,
        tries=tries,
        next_at=now + (GIVEN_UP_WAIT if given_up else wait),
        reason=reason,
        given_up=given_up,
    )
