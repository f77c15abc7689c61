"""A worker's sandboxes: documents wait for one in turn, and are stopped when they take too long."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from tamias.crawl.analysing.contexts import ContextCache
from tamias.crawl.sandbox.sandbox import MakeRoom, Sandbox
from tamias.crawl.sandbox.turns import Turn, Turns
from tamias.database.threads import run_uncancelled
from tamias.settings import Settings

T = TypeVar("T")
Work = Callable[[Sandbox, threading.Event], T]
"""Reads one document, in a thread; the event tells it to give up."""


class SandboxPool:
    """Lends sandboxes to documents. For the event loop's thread."""

    def __init__(self, settings: Settings, contexts: ContextCache) -> None:
        count = settings.sandbox.processes
        self.takes_all = settings.sandbox.use == "always"
        """Whether every document is analysed in a sandbox."""
        self._turns = Turns(count)
        self._sandboxes = [Sandbox(settings, contexts) for _ in range(count)]
        self._free = set(range(count))
        self._called: dict[Turn, asyncio.Future[int]] = {}

    async def read(self, turn: Turn, work: Work[T]) -> T:
        """Does the work in a sandbox when its turn comes; more than once if others had to be let in."""
        while True:
            number = await self._wait(turn)
            sandbox, given_up = self._sandboxes[number], threading.Event()
            sandbox.lend(lambda seconds, number=number: self._turns.is_over(turn, number, seconds))  # type: ignore[misc]
            try:
                return await run_uncancelled(lambda: work(sandbox, given_up), given_up.set)  # noqa: B023
            except MakeRoom:
                turn.tries += 1
            finally:
                self._turns.charge(turn.host, sandbox.spent)
                self._free.add(number)
                self._call()

    async def _wait(self, turn: Turn) -> int:
        """The number of the sandbox that it gets."""
        called: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._called[turn] = called
        self._turns.wait(turn)
        self._call()
        try:
            return await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self._free.add(called.result())
                self._call()
            raise
        finally:
            self._called.pop(turn, None)
            self._turns.leave(turn)

    def _call(self) -> None:
        for number in sorted(self._free):
            turn = self._turns.next(number)
            if turn is not None:
                self._free.discard(number)
                self._called[turn].set_result(number)

    def close(self) -> None:
        """Ends the processes."""
        for sandbox in self._sandboxes:
            sandbox.close()
