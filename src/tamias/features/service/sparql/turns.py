"""Turns for queries: fair between clients, with a share for short ones, and never a long wait."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from tamias.features.service.http.problems import HttpProblem

T = TypeVar("T")
QUICK_SECONDS = 1.0
"""A query that takes longer is a long one."""
WAIT_SECONDS = 10.0
"""No query waits longer for its turn."""
MOST_WAITING = 64
MOST_OF_A_CLIENT = 16
_REFUSED = {"Retry-After": "10"}


class _WaitingQuery:
    def __init__(self, client: str, give_up: Callable[[], None]) -> None:
        self.client = client
        self.give_up = give_up
        self.begun = 0.0
        self.comes = asyncio.Event()
        self.is_ended = False


class QueryTurns:
    """Places for queries: the client with the fewest queries under way is next, and the eldest query of it.

    Half of the places are for long queries. When others wait, one that is long beyond that number ends, of
    the client with the most: it would have made short ones wait.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._working: list[_WaitingQuery] = []
        self._waiting: list[_WaitingQuery] = []

    async def take(self, client: str, work: Callable[[], Awaitable[T]], give_up: Callable[[], None]) -> T:
        """Return the result of the work when it is its turn; `give_up` makes it end. Raises `HttpProblem`."""
        turn = _WaitingQuery(client, give_up)
        ours = sum(each.client == client for each in self._waiting)
        if len(self._waiting) >= MOST_WAITING or ours >= MOST_OF_A_CLIENT:
            raise HttpProblem(503, f"{len(self._waiting)} queries are waiting already", _REFUSED)
        self._waiting.append(turn)
        self._assign()
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(turn.comes.wait(), WAIT_SECONDS)
            if not turn.comes.is_set():
                raise HttpProblem(503, f"{len(self._working)} other queries are under way", _REFUSED)
            return await work()
        except Exception:
            if not turn.is_ended:
                raise
            detail = "the query was stopped for shorter ones: too many long queries are under way"
            raise HttpProblem(503, detail, _REFUSED) from None
        finally:
            (self._working if turn in self._working else self._waiting).remove(turn)
            self._assign()

    def _assign(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and len(self._working) < self._places:
            turn = min(self._waiting, key=self._under_way)
            self._waiting.remove(turn)
            self._working.append(turn)
            turn.begun = loop.time()
            turn.comes.set()
            loop.call_later(QUICK_SECONDS, self._assign)
        if self._waiting and not any(each.is_ended for each in self._working):
            self._end_one(loop.time() - QUICK_SECONDS)

    def _end_one(self, begun_before: float) -> None:
        long = [each for each in self._working if each.begun <= begun_before]
        if len(long) > self._places // 2:
            turn = max(long, key=lambda each: (self._under_way(each), each.begun))
            turn.is_ended = True
            turn.give_up()

    def _under_way(self, turn: _WaitingQuery) -> int:
        return sum(each.client == turn.client for each in self._working)
