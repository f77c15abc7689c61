"""Delivers beside the service, a few at once; any number of instances share the work."""

import asyncio
import logging
import time
from functools import partial
from typing import Final

from tamias.features.service.events.webhooks.post import Posted, post, signature_headers
from tamias.features.service.events.webhooks.store import (
    ClaimedDelivery,
    claim,
    count_webhooks,
    prepare,
    settle,
)
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.model.errors import TamiasError
from tamias.permit.addresses import forbidden

AT_ONCE: Final = 8
_LOOK_SECONDS: Final = 1.0
_LOG = logging.getLogger("tamias.serve.events.webhooks")


class Sender:
    """Runs until it is cancelled. What it was at is tried again by whoever comes next."""

    def __init__(self, pool: SessionPool, *, allow_private: bool) -> None:
        self._pool = pool
        self._forbidden = (lambda _: None) if allow_private else forbidden
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Looks for what is due, again and again."""
        try:
            while True:
                try:
                    await self._round()
                except (HttpProblem, TamiasError) as error:
                    _LOG.debug("webhooks wait: %s", error)  # a database that is away comes back
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for task in self._under_way:
                task.cancel()

    async def _round(self) -> None:
        room = AT_ONCE - len(self._under_way)
        for claimed in await self._pool.run(partial(_due, room=room)):
            task = asyncio.create_task(self._deliver(claimed))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _deliver(self, claimed: ClaimedDelivery) -> None:
        headers = signature_headers(claimed.key, claimed.delivery, int(time.time()), claimed.body)
        posted: Posted = await asyncio.to_thread(post, claimed.url, claimed.body, headers, self._forbidden)
        try:
            await self._pool.run(lambda db: settle(db.session, claimed, posted))
        except (HttpProblem, TamiasError) as error:
            # Its claim ends, and it is tried once more.
            _LOG.warning("how the delivery %s went could not be noted: %s", claimed.delivery, error)


def _due(db: ServiceSession, room: int) -> list[ClaimedDelivery]:
    if not room or not count_webhooks(db.session):
        return []
    prepare(db.session)
    return claim(db.session, room)
