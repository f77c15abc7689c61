"""The worker processes of a supervisor: started, listened to, restarted when they die, ended."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal

import msgspec

from tamias.crawl.store.disk_space import Pause
from tamias.crawl.store.progress import Progress
from tamias.crawl.worker.fork_server import fork_server
from tamias.model.errors import TamiasError

STOP_SECONDS = 1.5
DEATH_SECONDS = 0.05
"""Longer from death to death: whatever kills workers may be asked for by each of them."""
MOST_DEATHS = 100
"""Of workers in one run without any page between them: more is a fault of ours, not of a document."""

Stopping = asyncio.Task[Literal[True]]
"""Done when the pool is to stop."""
PutRight = Callable[[Progress], Awaitable[None]]
"""Cleans up after a dead worker."""


class ProcessPool:
    """Keeps so many workers at work."""

    def __init__(
        self, module: str, plan: msgspec.Struct, put_right: PutRight, pause: Pause, *, count: int
    ) -> None:
        """`module` is what each worker's process runs, and `plan` what it reads first.

        `pause` waits where there is no room on the disk.
        """
        self._server = fork_server(module)
        self._plan = plan
        self._put_right = put_right
        self._pause = pause
        self._count = count
        self._progress: dict[int, Progress] = {}
        self._finished: list[Progress] = []
        self._stop = asyncio.Event()
        self._deaths = 0
        self.error: Progress | None = None
        """What made it stop, if something did."""

    @property
    def working(self) -> list[Progress]:
        """The progress of those at work."""
        return list(self._progress.values())

    @property
    def progress(self) -> list[Progress]:
        """The progress of all, also of those that ended."""
        return [*self._finished, *self._progress.values()]

    @property
    def stopped(self) -> bool:
        """Return whether it was told to stop."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Let `run` come to its end."""
        self._stop.set()

    async def run(self) -> None:
        """Run workers until `stop` is called, or all have ended."""
        stopping = asyncio.create_task(self._stop.wait())
        keeping = [self._keep(index, stopping) for index in range(self._count)]
        try:
            await asyncio.gather(*keeping)
        finally:
            stopping.cancel()
            self._server.close()

    async def news(self, running: "asyncio.Task[None]", seconds: float) -> None:
        """Wait until it is told to stop or has ended, but not longer than so many seconds."""
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait([running, stopping], timeout=seconds, return_when="FIRST_COMPLETED")
        stopping.cancel()

    def trouble(self) -> TamiasError | None:
        """Return what made it stop, as an error."""
        if self.error is None:
            return None
        error = TamiasError(self.error.error or "a worker failed")
        error.exit_code = self.error.exit_code or 1  # type: ignore[misc]
        return error

    async def _keep(self, index: int, stopping: Stopping) -> None:
        """Run one worker after another until the crawl is over; what a dead one left is put right."""
        while not self.stopped:
            code = await self._one(index, stopping)
            progress = self._progress.pop(index, Progress())
            self._finished.append(progress)
            # Worth another try: there is room on the disk, or the store may be back.
            passing = progress.retry_can_help or self._pause.is_to_blame(progress.exit_code)
            why, visited = progress.error or "no disk space left", bool(progress.tally.visited)
            if progress.error is not None and not (
                passing and await self._pause.over(why, stopping, progress=visited)
            ):
                self._fail(progress)
            if code == 0 or self.stopped:
                return
            if not passing:
                self._count_death(progress)
            await self._put_right(progress)
            await asyncio.wait([stopping], timeout=self._deaths * DEATH_SECONDS)

    def _count_death(self, progress: Progress) -> None:
        self._deaths = 1 if progress.tally.visited else self._deaths + 1
        if self._deaths > MOST_DEATHS:
            self._fail(
                Progress(error=f"{MOST_DEATHS} workers died in a row; see what they said", exit_code=1)
            )

    def _fail(self, progress: Progress) -> None:
        self.error = self.error or progress
        self._stop.set()

    async def _one(self, index: int, stopping: Stopping) -> int:
        try:
            process = await self._server.fork()
        except ChildProcessError:
            return 1
        process.stdin.write(msgspec.json.encode(self._plan) + b"\n")
        reading = asyncio.create_task(self._read(index, process.stdout))
        await asyncio.wait([reading, stopping], return_when="FIRST_COMPLETED")
        # How a worker learns that it is to end, also when this process is killed.
        process.stdin.close()
        try:
            code = await asyncio.wait_for(process.wait(), None if reading.done() else STOP_SECONDS)
        except TimeoutError:
            process.kill()
            code = await process.wait()
        await reading
        process.close()
        return code

    async def _read(self, index: int, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            with suppress(msgspec.DecodeError):
                self._progress[index] = msgspec.json.decode(line, type=Progress)
