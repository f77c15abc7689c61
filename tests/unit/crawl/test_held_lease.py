"""A lease in hand: when the host may be asked, and when not any more."""

import asyncio
import time

import msgspec
import pytest

from tamias.crawl.store.held_lease import LONGEST_TURN, HeldLease, NotNow
from tamias.model.lease import Lease


def held(seconds=30.0, delay_ms=0):
    lease = Lease(host="example.org", qid=1, bucket=0, token=1, ends_at=0, delay_ms=delay_ms, tasks=())
    return HeldLease(lease, time.monotonic(), seconds)


def test_the_first_turn_comes_at_once():
    one = held(delay_ms=60_000)
    assert one.wait < 0
    asyncio.run(one.turn())


def test_the_delay_runs_from_the_end_of_the_last_request():
    one = held(delay_ms=200)
    one.note_request()
    begun = time.monotonic()
    asyncio.run(one.turn())
    assert time.monotonic() - begun >= 0.199


def test_a_delay_learnt_after_a_request_holds_for_the_next():
    one = held(delay_ms=0)
    one.note_request()
    one.delay_ms = 5_000
    assert one.wait > 4.0


def test_there_is_no_turn_after_the_lease():
    with pytest.raises(NotNow):
        asyncio.run(held(seconds=0.0).turn())


def test_nobody_waits_longer_than_the_longest_turn():
    one = held(delay_ms=int(LONGEST_TURN * 1000) + 5_000)
    one.note_request()
    with pytest.raises(NotNow):
        asyncio.run(one.turn())


def test_a_renewed_lease_lasts_longer():
    one = held(seconds=0.0)
    assert one.over
    longer = msgspec.structs.replace(one.lease, ends_at=one.lease.ends_at + 30_000)
    one.renewed(longer, time.monotonic(), 30.0)
    assert not one.over


def test_a_lease_that_could_not_be_renewed_ends_when_it_ends():
    one = held(seconds=0.0)
    as_it_came = msgspec.json.decode(msgspec.json.encode(one.lease), type=Lease)  # from a service, say
    one.renewed(as_it_came, time.monotonic(), 30.0)
    assert one.over


def test_what_is_given_up_is_cancelled_and_lost():
    async def give_up():
        one = held()
        one.task = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        one.give_up()
        await asyncio.wait([one.task])
        return one

    one = asyncio.run(give_up())
    assert (one.lost, one.task.cancelled()) == (True, True)
