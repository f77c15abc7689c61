"""Looks after workers without a database, until somebody says stop."""

import asyncio
import logging
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tamias.crawl.analysing.marker import left_by
from tamias.crawl.remote.client import FrontierClient
from tamias.crawl.remote.grpc.channel import CallFailed
from tamias.crawl.remote.grpc.reconnecting import HungUp, ReconnectingChannel, ServiceTarget
from tamias.crawl.remote.store import RemotePlan
from tamias.crawl.store.disk_space import DiskSpace, Pause
from tamias.crawl.store.progress import Progress
from tamias.crawl.worker.process_pool import ProcessPool
from tamias.settings import Settings

SHOW_SECONDS = 1.0
_FOLDERS = ("spool", "quads", "rules")
_log = logging.getLogger(__name__)


class RemoteSupervisor:
    """One `tamias worker --frontier`. Any number of them may work for one service."""

    def __init__(self, target: ServiceTarget, scratch: Path, own: Settings) -> None:
        """`own`: the settings of this machine."""
        self._target = target
        self._clients: list[FrontierClient] = []
        self._scratch = scratch.absolute()
        self._scratch.mkdir(parents=True, mode=0o700, exist_ok=True)
        plan = RemotePlan(target=target, scratch=str(self._scratch), own=own)
        self._pool = ProcessPool(
            "tamias.crawl.remote.worker",
            lambda _share: plan,
            self._put_right,
            Pause(DiskSpace(self._scratch, own.crawl.room), None),
            count=own.crawl.workers or os.cpu_count() or 1,
        )

    async def run(self, show: Callable[[Sequence[Progress], int], None]) -> None:
        """Works until a signal comes; `show` is told of all workers so far, and how many are at work."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        working = loop.create_task(self._pool.run())
        while not working.done():
            await self._pool.news(working, SHOW_SECONDS)
            if self._pool.stopped:
                await working
            show(self._pool.progress, len(self._pool.working))
        if (trouble := self._pool.trouble()) is not None:
            raise trouble
        working.result()

    def _stop(self) -> None:
        self._pool.stop()
        for client in self._clients:
            client.stop()

    async def _put_right(self, dead: Progress, _count: bool) -> int:
        """Its hosts are given back; a document over which it died is known for that."""
        if dead.worker:
            client = FrontierClient(ReconnectingChannel(self._target), dead.worker)
            self._clients.append(client)
            try:
                analysed = left_by(self._scratch / "analysing", dead.worker)
                await client.report_death(dead.worker, analysed)
            except (HungUp, CallFailed) as error:
                _log.info("the death of worker %d could not be reported: %s", dead.worker, error)
            finally:
                self._clients.remove(client)
                await client.close()
            for folder in _FOLDERS:
                shutil.rmtree(self._scratch / folder / str(dead.worker), ignore_errors=True)
        return 0


class RemoteSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """How workers without a database stand."""

    visited: int
    quads: int
    bytes: int
    in_flight: int
    workers: int
    outcomes: dict[str, int]
    paused: str | None = None
    """Why workers wait: there is no network."""


def snapshot(progress: Sequence[Progress], workers: int) -> RemoteSnapshot:
    """All workers together."""
    outcomes: dict[str, int] = {}
    for each in progress:
        for word, count in each.tally.outcomes.items():
            outcomes[word] = outcomes.get(word, 0) + count
    return RemoteSnapshot(
        visited=sum(each.tally.visited for each in progress),
        quads=sum(each.tally.quads for each in progress),
        bytes=sum(each.tally.bytes for each in progress),
        in_flight=sum(each.in_flight for each in progress),
        workers=workers,
        outcomes=outcomes,
        paused=next((each.paused for each in progress if each.paused), None),
    )
