"""The control connections to FTP servers, each with its handle, and the threads that wait for them."""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tamias.features.ftp.transfer import FtpTransfer
from tamias.fetch.multi import GIVEN_UP
from tamias.fetch.options import HttpOptions

_IDLE_SECONDS = 30
"""FTP servers have few seats, often one for each guest; none is kept for longer than this."""
_MOST_THREADS = 64
_CLOSED = "the fetcher was closed"


class FtpConnections:
    """Lends a handle to one attempt at a time, the one that is logged in there if it is free."""

    def __init__(self, options: HttpOptions, forbidden: Callable[[str], str | None]) -> None:
        self._options = options
        self._forbidden = forbidden
        self._threads = ThreadPoolExecutor(min(_MOST_THREADS, options.connections), "ftp")
        self._busy: set[FtpTransfer] = set()
        self._idle: dict[str, tuple[FtpTransfer, asyncio.TimerHandle]] = {}
        self._closed = False
        os.makedirs(options.spool_dir, mode=0o700, exist_ok=True)

    @contextmanager
    def lent(self, place: str) -> Iterator[FtpTransfer]:
        """A handle for this place; what it saw and its body are forgotten when the block ends."""
        transfer = self._taken(place)
        self._busy.add(transfer)
        try:
            yield transfer
        finally:
            self._busy.discard(transfer)
            self._give_back(place, transfer)

    async def run(self, transfer: FtpTransfer, asking: Callable[[], tuple[int, str]]) -> tuple[int, str]:
        """Carries out an errand in a thread, and never leaves it there: who is cancelled waits for it."""
        if self._closed:
            return GIVEN_UP, _CLOSED
        work = asyncio.get_running_loop().run_in_executor(self._threads, asking)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            transfer.give_up("cancelled")
            await asyncio.wait([work])
            raise

    def close(self) -> None:
        """Gives up what is under way and hangs up everywhere. May be called twice."""
        self._closed = True
        for transfer in self._busy:
            transfer.give_up(_CLOSED)
        for place in list(self._idle):
            self._taken(place).close()
        self._threads.shutdown(wait=False)

    def _taken(self, place: str) -> FtpTransfer:
        if place not in self._idle:
            return FtpTransfer(self._options, self._forbidden)
        transfer, timer = self._idle.pop(place)
        timer.cancel()
        return transfer

    def _give_back(self, place: str, transfer: FtpTransfer) -> None:
        if self._closed or transfer.stopped is not None or place in self._idle:
            transfer.close()
            return
        transfer.clear()
        timer = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._hang_up, place)
        self._idle[place] = (transfer, timer)

    def _hang_up(self, place: str) -> None:
        self._taken(place).close()
