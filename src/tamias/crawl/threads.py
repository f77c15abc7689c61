"""Work in a thread that is waited for even when its visit is cancelled: there is one writer only."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_uncancelled(work: Callable[[], T], give_up: Callable[[], None] | None = None) -> T:
    """The result of `work`. When cancelled, `give_up` asks it to end early, and its end is waited for."""
    task = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if give_up is not None:
            give_up()
        await asyncio.wait([task])
        task.exception()  # seen, and of no interest any more
        raise
