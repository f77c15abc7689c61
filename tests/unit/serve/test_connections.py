"""Who has to leave when there are too many connections, or too many bytes."""

import time

import pytest

from tamias.features.urlfrontier.grpc import http2 as bounds
from tamias.features.urlfrontier.grpc.http2 import Connections


class Peer:
    def __init__(self, peer="a", age=0.0, *, is_busy=False, has_begun=True):
        self.peer = peer
        self.active_at = time.monotonic() - age
        self.is_busy = is_busy
        self.has_begun = has_begun
        self.held = 0
        self.closed = False
        self.dropped = []

    def go_away(self):
        pass

    def close(self):
        self.closed = True

    def drop_newest_call(self, why):
        self.dropped.append(why)

    def drop_stalled_calls(self, begun_before):
        self.dropped.append("stalled")


@pytest.mark.parametrize(
    ("here", "leaves"),
    [
        ([Peer(age=9), Peer(age=3), Peer(age=20)], 2),
        ([Peer(age=9, is_busy=True), Peer(age=7)], 1),
        ([Peer(age=60, is_busy=True), Peer(age=7)], 0),
    ],
    ids=["the quietest", "not who is being answered", "who is being answered for too long"],
)
def test_of_too_many_connections_the_quietest_leaves(here, leaves):
    connections = Connections(len(here), 1000)
    for each in [*here, Peer()]:
        connections.add(each)
    assert [each.closed for each in here] == [at == leaves for at in range(len(here))]


def test_of_too_many_connections_of_one_address_another_address_loses_none():
    connections, stranger, crowd = (
        Connections(1000, 2),
        Peer("b", age=99),
        [Peer(age=each) for each in (3, 2)],
    )
    for each in [stranger, *crowd, Peer()]:
        connections.add(each)
    assert [each.closed for each in (stranger, *crowd)] == [False, True, False]


def test_a_closed_connection_takes_no_room():
    connections, gone, stays = Connections(1, 1), Peer(age=5), Peer()
    connections.add(gone)
    connections.hold(gone, 10)
    connections.discard(gone)
    connections.add(stays)
    assert not stays.closed
    assert list(connections) == [stays]


def test_who_holds_the_most_bytes_loses_a_call_when_all_hold_too_many():
    connections, small, large = Connections(9, 9), Peer(), Peer("b")
    connections.add(small)
    connections.add(large)
    connections.hold(large, bounds.MOST_HELD_BY_ALL - 10)
    connections.hold(small, 10)
    assert large.dropped == []
    connections.hold(small, 1)
    assert (len(large.dropped), small.dropped) == (1, [])


def test_idle_connections_are_closed_and_stalled_messages_given_up():
    silent = Peer(age=bounds.GREETING_SECONDS + 1, has_begun=False)
    idle = Peer(age=bounds.IDLE_SECONDS + 1)
    waiting = Peer(age=bounds.IDLE_SECONDS + 1, is_busy=True)
    connections = Connections(9, 9)
    for each in (silent, idle, waiting):
        connections.add(each)
    connections.sweep()
    assert [each.closed for each in (silent, idle, waiting)] == [True, True, False]
    assert waiting.dropped == ["stalled"]
