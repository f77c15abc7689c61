"""Looks after workers without a database, until somebody says stop."""

import asyncio
import logging
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from tamias.cli.worker import WorkerTarget
from tamias.crawl.analysis.marker import left_by
from tamias.crawl.store.disk_space import DiskSpace, Pause
from tamias.crawl.store.progress import CrawlSnapshot, Progress, snapshot
from tamias.crawl.worker.process_pool import ProcessPool
from tamias.features.remote_workers.grpc.channel import CallFailed, HungUp, ReconnectingChannel, ServiceTarget
from tamias.features.remote_workers.store import FrontierClient, RemotePlan
from tamias.model.errors import UsageError
from tamias.settings import Settings

SHOW_SECONDS = 1.0
_FOLDERS = ("spool", "quads", "rules")
_log = logging.getLogger(__name__)


def run_workers(
    target: WorkerTarget, scratch: Path, own: Settings, show: Callable[[CrawlSnapshot], None]
) -> None:
    """Run workers for a service until a signal comes."""
    address, token, crawl, tls, authority = target
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise UsageError(f"--frontier takes HOST:PORT, not '{address}'")
    service = ServiceTarget(address=address, token=token, crawl=crawl, tls=tls, authority=authority)
    asyncio.run(RemoteSupervisor(service, scratch, own).run(show))


class RemoteSupervisor:
    """The supervisor of a `tamias worker --frontier`; any number may work for one service."""

    def __init__(self, target: ServiceTarget, scratch: Path, own: Settings) -> None:
        """`own`: the settings of this machine."""
        self._target = target
        self._clients: list[FrontierClient] = []
        self._scratch = scratch.absolute()
        self._scratch.mkdir(parents=True, mode=0o700, exist_ok=True)
        plan = RemotePlan(target=target, scratch=str(self._scratch), own=own)
        self._pool = ProcessPool(
            "tamias.features.remote_workers.worker",
            plan,
            self._put_right,
            Pause(DiskSpace(self._scratch, own.crawl.room), None),
            count=own.crawl.workers or os.cpu_count() or 1,
        )

    async def run(self, show: Callable[[CrawlSnapshot], None]) -> None:
        """Work until a signal comes; `show` gets a snapshot now and then."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        working = loop.create_task(self._pool.run())
        while not working.done():
            await self._pool.news(working, SHOW_SECONDS)
            if self._pool.stopped:
                await working
            show(snapshot(self._pool.progress, self._pool.working))
        if (trouble := self._pool.trouble()) is not None:
            raise trouble
        working.result()

    def _stop(self) -> None:
        self._pool.stop()
        for client in self._clients:
            client.stop()

    async def _put_right(self, dead: Progress) -> None:
        """Report a dead worker, so that its hosts are released and its documents suspected."""
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
