"""When a host that could not be reached is tried again, and when it is given up. Pure."""

import msgspec

from tamias.model.capture import Unreached
from tamias.model.lease import Unreachable

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
    """What is known after one more try in vain; `chance` is a random number from 0 to 1."""
    since = before.since if before else now
    tries = before.tries + 1 if before else 1
    over = tries > policy.retries
    waited = now - max(since, run_began)
    if why is Unreached.DEFINITE:
        wait, given_up = policy.retry_wait * 2 ** min(tries - 1, 30), over
    else:
        wait = max(policy.retry_wait, waited)
        given_up = tries >= policy.least_tries and now - since >= policy.least_time
    given_up = given_up or (before is not None and before.given_up)
    wait = int(min(wait, LONGEST_WAIT) * (1 + JITTER * chance))
    patient = why is Unreached.DEFINITE or waited + wait <= policy.max_wait
    if not patient or (why is Unreached.DOUBTFUL and over):
        wait = max(wait, policy.max_wait + _JUST_AFTER)
    return Unreachable(
        authority=authority,
        since=since,
        tries=tries,
        next_at=now + (GIVEN_UP_WAIT if given_up else wait),
        reason=reason,
        given_up=given_up,
    )
