"""When a host that could not be reached is tried again, and when it is given up."""

import pytest

from tamias.model.capture import Unreached
from tamias.permit.delay import ReachPolicy, failed_again

POLICY = ReachPolicy(retries=3, retry_wait=10_000, max_wait=600_000, least_tries=3, least_time=24 * 3_600_000)
START = 1_800_000_000_000


def tried(why, *, until, policy=POLICY, chance=0.0, before=None, now=START, run_began=START):
    """All tries until a state of which `until` is true."""
    states = []
    while True:
        before = failed_again(
            before, "http://a", why, "no answer", now=now, run_began=run_began, policy=policy, chance=chance
        )
        states.append((now, before))
        if until(before) or len(states) > 100:
            return states
        now = before.next_at


def waits(states):
    return [state.next_at - now for now, state in states]


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_a_refusal_is_final_after_the_usual_retries_and_not_within_a_minute(chance):
    states = tried(Unreached.DEFINITE, until=lambda state: state.given_up, chance=chance)
    assert len(states) == 4
    assert 60_000 < states[-1][0] - START < 100_000


def test_a_time_out_is_repeated_ever_later_until_the_run_has_waited_enough():
    states = tried(Unreached.UNKNOWN, until=lambda state: state.next_at - START > 600_000)
    assert waits(states)[:-1] == [10_000, 10_000, 20_000, 40_000, 80_000, 160_000]
    assert waits(states)[-1] > 600_000
    assert not states[-1][1].given_up


def test_waits_are_longer_by_chance_and_never_shorter():
    plain = tried(Unreached.UNKNOWN, until=lambda state: state.tries == 3)
    longer = tried(Unreached.UNKNOWN, until=lambda state: state.tries == 3, chance=1.0)
    assert all(one < other for one, other in zip(waits(plain), waits(longer), strict=True))


def test_a_host_is_given_up_after_three_tries_over_a_day():
    states = tried(Unreached.UNKNOWN, until=lambda state: state.given_up)
    now, state = states[-1]
    assert now - START >= POLICY.least_time
    assert state.tries >= 3
    assert state.since == START


def test_a_day_with_two_tries_is_not_enough():
    ((_, first),) = tried(Unreached.UNKNOWN, until=lambda _: True)
    later = START + 2 * POLICY.least_time
    ((_, second),) = tried(Unreached.UNKNOWN, until=lambda _: True, before=first, now=later, run_began=later)
    ((_, third),) = tried(
        Unreached.UNKNOWN, until=lambda _: True, before=second, now=later + 1, run_began=later
    )
    assert (second.given_up, third.given_up) == (False, True)


def test_a_later_run_waits_anew():
    ((_, first),) = tried(Unreached.UNKNOWN, until=lambda _: True)
    later = START + 3_600_000
    ((_, second),) = tried(Unreached.UNKNOWN, until=lambda _: True, before=first, now=later, run_began=later)
    assert (second.next_at - later, second.since) == (10_000, START)


def test_a_name_that_does_not_exist_is_given_up_after_one_more_try():
    states = tried(Unreached.NO_NAME, until=lambda state: state.given_up)
    assert [now - START for now, _ in states] == [0, 10_000]


def test_what_was_given_up_gets_one_more_try_and_is_given_up_again():
    *_, (now, state) = tried(Unreached.DEFINITE, until=lambda state: state.given_up)
    ((_, again),) = tried(Unreached.UNKNOWN, until=lambda _: True, before=state, now=state.next_at)
    assert again.given_up
    assert again.next_at > state.next_at > now
