"""Threads: a session with the one it belongs to, and work that is waited for even when cancelled."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from tamias.database.connect import Session

T = TypeVar("T")


class SessionThread:
    """A database session and the one thread that may use it."""

    def __init__(self, session: Session, name: str = "database") -> None:
        self.session = session
        self._thread = ThreadPoolExecutor(1, name)

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """The result of `work` in the thread; for the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def wait(self, work: Callable[..., T], *arguments: Any) -> T:
        """The same for another thread, which waits."""
        return self.submit(work, *arguments).result()

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Has it done, and does not wait."""
        return self._thread.submit(work, *arguments)

    def close(self) -> None:
        """Finish all submitted work and close the session."""
        self._thread.shutdown(wait=True)
        self.session.close()


async def run_uncancelled(work: Callable[[], T], give_up: Callable[[], None] | None = None) -> T:
    """The result of `work` in a thread. When cancelled, `give_up` asks it to end early, and it is waited for.

    There is one writer only: who is cancelled must not leave another one behind.
    """
    return await wait_uncancelled(asyncio.create_task(asyncio.to_thread(work)), give_up)


async def wait_uncancelled(work: asyncio.Future[T], give_up: Callable[[], None] | None = None) -> T:
    """The same for work that is under way."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        if give_up is not None:
            give_up()
        await asyncio.wait([work])
        work.exception()  # seen, and of no interest any more
        raise
