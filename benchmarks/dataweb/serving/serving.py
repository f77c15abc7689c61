"""The servers of a web as processes, for as long as a block lasts; their log and their own processor time."""

import asyncio
import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.sharedctypes import RawValue
from pathlib import Path

from benchmarks.dataweb.serving.ftp import serve_ftp
from benchmarks.dataweb.serving.server import Log, NodeSite, listener, serve
from benchmarks.dataweb.web.context import Ports
from benchmarks.measuring.proc import parse_stat
from benchmarks.measuring.reaper import end_with_parent
from tamias.model.errors import TamiasError

START_SECONDS = 30.0
PROCESSES = 2


class Servers:
    """Running servers."""

    def __init__(self, folder: Path, processes: int) -> None:
        self.folder = folder
        self.epoch = RawValue("i", 0)
        self.pids: list[int] = []
        self.processes = processes

    @property
    def logs(self) -> list[Path]:
        return [self.folder / f"log-{turn}" for turn in range(self.processes)]

    def cpu_seconds(self) -> float:
        """What they have used so far."""
        return sum(parse_stat(Path(f"/proc/{pid}/stat").read_bytes()).cpu_seconds for pid in self.pids)


@contextmanager
def serving(
    site_at: Callable[[str], NodeSite | None],
    ports: Ports,
    folder: Path,
    *,
    trees: Mapping[str, Mapping[str, bytes]] | None = None,
    processes: int = PROCESSES,
) -> Iterator[Servers]:
    """Serves in processes that have the whole web from birth; the logs are whole when the block is left."""
    folder.mkdir(parents=True, exist_ok=True)
    servers = Servers(folder, processes)
    context = multiprocessing.get_context("fork")
    listeners = [listener(ports.http) for _ in range(processes)]
    ftp = listener(ports.ftp) if trees else None
    running = []
    for turn, (listening, log) in enumerate(zip(listeners, servers.logs, strict=True)):
        own = (listening, ftp if turn == 0 else None)
        process = context.Process(
            target=_work, args=(own, site_at, trees or {}, log, servers.epoch), daemon=True
        )
        process.start()
        running.append(process)
    for each in (*listeners, *([ftp] if ftp else [])):
        each.close()
    servers.pids = [process.pid for process in running if process.pid]
    try:
        _await(servers)
        yield servers
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.join(START_SECONDS)


def _await(servers: Servers) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not all(log.exists() for log in servers.logs):
        if time.monotonic() > deadline:
            raise TamiasError(f"the servers of the benchmark did not start within {START_SECONDS:.0f} s")
        time.sleep(0.01)


def _work(
    listening: tuple[socket.socket, socket.socket | None],
    site_at: Callable[[str], NodeSite | None],
    trees: Mapping[str, Mapping[str, bytes]],
    file: Path,
    epoch: "RawValue",  # type: ignore[valid-type]
) -> None:
    end_with_parent()
    http, ftp = listening
    log = Log(file)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(serve(http, site_at, log, lambda: int(epoch.value)))  # type: ignore[attr-defined]
        loop.add_signal_handler(15, task.cancel)
        if ftp is not None:
            await serve_ftp(ftp, trees, log)
        try:
            await task
        except asyncio.CancelledError:
            log.flush()
            os._exit(0)  # a loop would first wait for clients that may never leave

    factory = import_module("uvloop").new_event_loop if find_spec("uvloop") else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run())
