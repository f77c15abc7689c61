"""Results that are asked for so often that they may be some seconds old."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service

T = TypeVar("T")
PART = 5
"""A result is remembered so many times as long as it took."""
_results: WeakKeyDictionary[Service, dict[str, tuple[float, asyncio.Future[Any]]]] = WeakKeyDictionary()


async def lately(service: Service, name: str, seconds: float, work: Callable[[ServiceSession], T]) -> T:
    """Return what the work gave at most so many seconds ago, or gives now; all who wait get the same.

    Work that takes long is remembered longer, so that it never takes more than a small part of the database.
    """
    results = _results.setdefault(service, {})
    until, found = results.get(name, (0.0, None))
    if found is None or (found.done() and (until < time.monotonic() or _failed(found))):
        began = time.monotonic()
        found = asyncio.ensure_future(service.pool.run(work))
        results[name] = began + seconds, found
        value: T = await asyncio.shield(found)
        spent = time.monotonic() - began
        results[name] = began + spent + max(seconds, PART * spent), found
        return value
    shared: T = await asyncio.shield(found)
    return shared


def forget_lately(service: Service, name: str) -> None:
    """Forget a result, because somebody has changed what it is about."""
    _results.get(service, {}).pop(name, None)


def _failed(found: asyncio.Future[Any]) -> bool:
    return found.cancelled() or found.exception() is not None
