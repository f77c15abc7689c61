"""Whose document gets a sandbox: fair by host, small ones first, and nobody keeps it while others wait."""

import pytest

from tamias.crawl.sandbox.pool import QUANTUM, Turn, Turns

MB = 1_000_000


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def turns(clock):
    return Turns(2, clock)


def waiting(turns, clock, host, size=MB, *, packed=False, tries=0):
    turn = Turn(host, size, packed, since=clock(), tries=tries)
    turns.wait(turn)
    return turn


def order(turns, sandbox=1):
    return [turn.host for turn in iter(lambda: turns.next(sandbox), None)]


def test_small_ones_come_first_and_a_packed_one_counts_for_what_it_unpacks_to(turns, clock):
    waiting(turns, clock, "large", 20 * MB)
    waiting(turns, clock, "packed", 2 * MB, packed=True)
    waiting(turns, clock, "small")
    assert order(turns) == ["small", "large", "packed"]


def test_a_host_whose_documents_cost_much_waits_longer(turns, clock):
    turns.charge("dear", 30.0)
    waiting(turns, clock, "dear")
    waiting(turns, clock, "cheap", 50 * MB)
    assert order(turns) == ["cheap", "dear"]


def test_who_has_waited_long_enough_comes_before_those_who_cost_less(turns, clock):
    turns.charge("dear", 30.0)
    waiting(turns, clock, "dear")
    clock.now += 100
    waiting(turns, clock, "cheap")
    assert order(turns) == ["dear", "cheap"]


def test_what_was_stopped_comes_after_all_others_and_not_to_the_first_sandbox(turns, clock):
    waiting(turns, clock, "stopped", tries=1)
    assert turns.next(0) is None
    waiting(turns, clock, "new", 90 * MB)
    assert order(turns) == ["new", "stopped"]


def test_the_only_sandbox_takes_everything(clock):
    turns = Turns(1, clock)
    waiting(turns, clock, "stopped", tries=3)
    assert order(turns, 0) == ["stopped"]


def test_nobody_is_stopped_as_long_as_nobody_waits(turns, clock):
    turn = Turn("a", MB, False)
    assert not turns.is_over(turn, 1, 1000.0)
    waiting(turns, clock, "b")
    assert not turns.is_over(turn, 1, QUANTUM / 2)
    assert turns.is_over(turn, 1, QUANTUM)


def test_each_time_it_is_stopped_it_gets_twice_as_long(turns, clock):
    turn = Turn("a", MB, False, tries=2)
    waiting(turns, clock, "b")
    assert not turns.is_over(turn, 1, QUANTUM * 3.9)
    assert turns.is_over(turn, 1, QUANTUM * 4)


def test_nobody_is_stopped_for_one_that_was_stopped_more_often(turns, clock):
    waiting(turns, clock, "b", tries=2)
    assert not turns.is_over(Turn("a", MB, False, tries=1), 1, 1000.0)


def test_who_leaves_is_not_called(turns, clock):
    turns.leave(waiting(turns, clock, "a"))
    assert turns.next(1) is None
