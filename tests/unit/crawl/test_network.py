"""Is it me? An outage of our own is told from hosts that are down, and ends with the first answer."""

import asyncio
from itertools import pairwise

import pytest

from tamias.crawl.request.gate import GRACE_SECONDS, LEASE_SECONDS, LONGEST_PROBE, Network
from tamias.crawl.store.held_lease import HeldLease, NotNow
from tamias.model.lease import Lease


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def network(clock, monkeypatch):
    """A network whose waits take no time of ours."""
    network = Network(600, clock)

    async def passing(seconds):
        clock.now += seconds
        await asyncio.sleep(0)

    monkeypatch.setattr(network, "_news", passing)
    return network


def held(seconds=float("inf")):
    lease = Lease(host="a", qid=1, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())
    return HeldLease(lease, 0.0, seconds)


async def lose(network, *places):
    return [await network.holds(place) for place in places]


def test_hosts_that_stop_answering_together_are_our_own_fault(network):
    for place in "abcd":
        network.answered(place)
    assert asyncio.run(lose(network, "a", "b", "c", "d")) == [False, False, True, True]
    assert network.words.startswith("no network? 3 hosts")


def test_one_host_or_two_are_not(network):
    for place in "ab":
        network.answered(place)
    assert asyncio.run(lose(network, "a", "b")) == [False, False]


def test_hosts_that_never_answered_prove_nothing(network):
    network.answered("a")
    assert not any(asyncio.run(lose(network, "b", "c", "d", "e", "f")))


def test_while_most_others_answer_it_is_not_us(network, clock):
    for place in "abcdefgh":
        network.answered(place)

    async def some():
        lost = []
        for place, other in zip("abc", "def", strict=True):
            lost.append(await network.holds(place))
            clock.now += 1
            network.answered(other)
        return lost

    assert asyncio.run(some()) == [False, False, False]


def test_hosts_that_answered_long_ago_do_not_count(network, clock):
    for place in "abcd":
        network.answered(place)
    clock.now += 100
    assert not any(asyncio.run(lose(network, "a", "b", "c", "d")))


def test_the_first_answer_ends_it(network):
    for place in "abc":
        network.answered(place)
    asyncio.run(lose(network, "a", "b", "c"))
    assert network.is_lost
    network.answered("b")
    assert (network.is_lost, network.words) == (False, None)


def test_probes_are_few_and_ever_fewer(network, clock):
    for place in "abc":
        network.answered(place)
    asyncio.run(lose(network, "a", "b", "c"))
    times = []

    async def probe():
        for _ in range(8):
            await network.probe_turn(held())
            times.append(clock.now)

    asyncio.run(probe())
    gaps = [later - now for now, later in pairwise(times)]
    assert gaps[0] < 5
    assert gaps[-1] >= LONGEST_PROBE


def test_a_lease_that_ends_meanwhile_is_given_back(network):
    for place in "abc":
        network.answered(place)
    asyncio.run(lose(network, "a", "b", "c"))
    with pytest.raises(NotNow):
        asyncio.run(network.probe_turn(held(seconds=0)))


def test_an_outage_without_an_end_is_taken_for_granted(network, clock):
    for place in "abc":
        network.answered(place)
    asyncio.run(lose(network, "a", "b", "c"))
    clock.now += 601
    asyncio.run(network.probe_turn(held()))
    assert not network.is_lost


def test_hosts_are_leased_one_by_one_meanwhile(network, clock):
    assert network.may_lease()
    assert network.may_lease()
    for place in "abc":
        network.answered(place)
    asyncio.run(lose(network, "a", "b", "c"))
    assert not network.may_lease()
    clock.now += LEASE_SECONDS
    assert network.may_lease()
    assert not network.may_lease()


def test_a_failure_waits_a_moment_for_those_of_others(clock):
    async def together():
        network = Network(600)
        for place in "abc":
            network.answered(place)
        return await asyncio.wait_for(
            asyncio.gather(*(network.holds(place) for place in "abc")), GRACE_SECONDS
        )

    assert asyncio.run(together()) == [True, True, True]
