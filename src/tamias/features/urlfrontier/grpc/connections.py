"""The connections of one service and the bounds they share: number, addresses, bytes held.

Where a bound is met, the connection that was quiet the longest pays, so that a flood of idle connections only
pushes out itself.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

MOST_HELD = 64 << 20
"""Bytes of messages that were received and not worked off yet, of all clients together."""
GREETING_SECONDS = 10.0
"""Until the first call of a connection must have come."""
IDLE_SECONDS = 300.0
"""A connection without a call for so long is closed; gRPC clients open another when they need one."""
BUSY_SECONDS = 5.0
"""So much longer than others may a connection with a call be quiet; not for ever: calls can be idle too."""
MESSAGE_SECONDS = 30.0
"""A message must be complete so long after its first byte."""


class BoundedConnection(Protocol):
    """A connection, as far as the bounds need to know it."""

    peer: str
    held: int
    active_at: float
    """When it was opened, or a call of it begun, or ended well."""

    @property
    def is_busy(self) -> bool:
        """Return whether a call is under way."""
        ...

    @property
    def has_begun(self) -> bool:
        """Return whether a call was ever begun."""
        ...

    def drop_newest_call(self, why: str) -> None:
        """Ends the call that was begun last and holds bytes."""
        ...

    def drop_stalled_calls(self, begun_before: float) -> None:
        """Ends calls whose message was begun before that time and is not complete."""
        ...

    def tasks(self) -> "list[asyncio.Task[None]]":
        """The calls under way."""
        ...

    def go_away(self) -> None:
        """Refuse further calls; those under way may end."""
        ...

    def close(self) -> None:
        """Ends the connection once what was written is sent."""
        ...


class Connections:
    """The connections that are open, and the bytes they hold."""

    def __init__(self, most: int, most_of_one_address: int) -> None:
        self._most = most
        self._most_of_one_address = most_of_one_address
        self._members: set[BoundedConnection] = set()
        self._by_address: Counter[str] = Counter()
        self._held = 0

    def __iter__(self) -> Iterator[BoundedConnection]:
        return iter(list(self._members))

    def add(self, member: BoundedConnection) -> None:
        """Takes one in; where there are too many, another has to leave."""
        self._members.add(member)
        self._by_address[member.peer] += 1
        if self._by_address[member.peer] > self._most_of_one_address:
            self._expel_one_of(member.peer, member)
        elif len(self._members) > self._most:
            self._expel_one_of(self._by_address.most_common(1)[0][0], member)

    def discard(self, member: BoundedConnection) -> None:
        """Remove a connection that is closed."""
        if member in self._members:
            self._members.remove(member)
            self._by_address[member.peer] -= 1
            self._by_address += Counter()  # forgets addresses without connections
            self._held -= member.held

    def hold(self, member: BoundedConnection, length: int) -> None:
        """Count bytes that a connection holds; over the bound, the one that holds the most loses a call."""
        member.held += length
        self._held += length
        if length > 0 and self._held > MOST_HELD:
            largest = max(self._members, key=lambda each: each.held)
            largest.drop_newest_call("the service holds too many bytes; try again later")

    def sweep(self) -> None:
        """Closes what is idle, and ends calls whose message does not come to its end."""
        now = time.monotonic()
        for member in list(self._members):
            patience = IDLE_SECONDS if member.has_begun else GREETING_SECONDS
            if not member.is_busy and now - member.active_at > patience:
                _expel(member)
            else:
                member.drop_stalled_calls(now - MESSAGE_SECONDS)

    def _expel_one_of(self, peer: str, newest: BoundedConnection) -> None:
        others = (each for each in self._members if each.peer == peer and each is not newest)
        _expel(min(others, key=lambda each: each.active_at + BUSY_SECONDS * each.is_busy))


def _expel(member: BoundedConnection) -> None:
    member.go_away()
    member.close()
