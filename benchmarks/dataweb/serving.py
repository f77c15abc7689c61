"""The HTTP servers of a web as processes, for as long as a block lasts: many addresses, one socket each.

Answers are ready for the wire, so that the servers are not what is measured.
"""

import asyncio
import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import cast
from urllib.parse import unquote

from benchmarks.dataweb.answers import Answer, NodeRequest, response
from benchmarks.measuring.proc import parse_stat
from benchmarks.measuring.reaper import end_with_parent
from tamias.model.errors import TamiasError

START_SECONDS = 30.0
PROCESSES = 2
MISSING = response(404)
UNREADABLE = response(400)
HEAD_LIMIT = 64 * 1024
FLUSH_SECONDS = 0.5
BACKLOG = 4096
LOOPBACK = "127."


Pages = Mapping[str, Answer]
SiteAt = Callable[[str], Pages | None]
"""The pages at an address; None where nothing is."""


class Log:
    """One line for each request: monotonic time, address, status, target. Written now and then."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("ab")
        self._lines: list[str] = []

    def note(self, address: str, status: str, target: str) -> None:
        """Keeps a request."""
        self._lines.append(f"{time.monotonic():.4f} {address} {status} {target}\n")

    def flush(self) -> None:
        """Writes what was kept."""
        lines, self._lines = self._lines, []
        self._file.write("".join(lines).encode("utf-8", "replace"))
        self._file.flush()


class NodeConnection(asyncio.Protocol):
    """One client's connection to one address."""

    def __init__(self, site_at: SiteAt, log: Log) -> None:
        self._site_at, self._log = site_at, log
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._address = transport.get_extra_info("sockname")[0]
        self._site = self._site_at(self._address) if self._address.startswith(LOOPBACK) else None
        if self._site is None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data if self._buffer else data
        while True:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                break
            length = content_length(data[:end])
            if len(data) < end + 4 + length:
                break
            self._answer(data[:end], data[end + 4 : end + 4 + length])
            data = data[end + 4 + length :]
        self._buffer = data
        if len(data) > HEAD_LIMIT:
            self._transport.abort()

    def _answer(self, head: bytes, body: bytes) -> None:
        words = head[: head.find(b"\r\n")].split(b" ")
        if len(words) != 3 or self._site is None:
            self._transport.write(UNREADABLE)
            return
        target = words[1].decode("latin-1")
        page = self._site.get(target)
        if page is None and "?" in target:
            page = self._site.get(target.partition("?")[0])
        elif page is None and "%" in target:
            page = self._site.get(unquote(target))
        reply = page if type(page) is bytes else self._made(page, head, target, body)
        self._log.note(self._address, reply[9:12].decode(), target)
        if words[0] == b"HEAD":
            reply = reply[: reply.find(b"\r\n\r\n") + 4]
        self._transport.write(reply)
        if b"onnection: close" in head or words[2] == b"HTTP/1.0":
            self._transport.close()

    def _made(self, page: Answer | None, head: bytes, target: str, body: bytes) -> bytes:
        if page is None or isinstance(page, bytes):
            return page or MISSING
        return page.reply(NodeRequest(target, header(head, b"accept") or "*/*", body))


def header(head: bytes, name: bytes) -> str:
    """The value of a header, empty if it is not there."""
    start = head.lower().find(b"\r\n" + name + b":")
    if start < 0:
        return ""
    end = head.find(b"\r\n", start + 2)
    return head[start + len(name) + 3 : end if end >= 0 else None].strip().decode("latin-1")


def content_length(head: bytes) -> int:
    """How much follows the head; most requests have nothing."""
    if not head.startswith(b"POST"):
        return 0
    length = header(head, b"content-length")
    return min(int(length), HEAD_LIMIT) if length.isdigit() else 0


def listener(port: int) -> socket.socket:
    """A socket on all loopback addresses that several processes can share; nobody outside can reach it."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    listening.bind(("0.0.0.0", port))  # noqa: S104 (bound to the loopback device the line before)
    listening.listen(BACKLOG)
    listening.setblocking(False)
    return listening


async def serve(listening: socket.socket, site_at: SiteAt, log: Log) -> None:
    """Serves until it is cancelled."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: NodeConnection(site_at, log), sock=listening, backlog=BACKLOG)
    try:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            log.flush()
    finally:
        server.close()
        log.flush()


class Servers:
    """Running servers."""

    def __init__(self, folder: Path, processes: int) -> None:
        self.folder = folder
        self.pids: list[int] = []
        self.processes = processes

    @property
    def logs(self) -> list[Path]:
        return [self.folder / f"log-{turn}" for turn in range(self.processes)]

    def cpu_seconds(self) -> float:
        """What they have used so far."""
        return sum(parse_stat(Path(f"/proc/{pid}/stat").read_bytes()).cpu_seconds for pid in self.pids)


@contextmanager
def serving(site_at: SiteAt, port: int, folder: Path, processes: int = PROCESSES) -> Iterator[Servers]:
    """Serves in processes that have the whole web from birth; the logs are whole when the block is left."""
    folder.mkdir(parents=True, exist_ok=True)
    servers = Servers(folder, processes)
    context = multiprocessing.get_context("fork")
    listeners = [listener(port) for _ in range(processes)]
    running = []
    for listening, log in zip(listeners, servers.logs, strict=True):
        running.append(context.Process(target=_work, args=(listening, site_at, log), daemon=True))
        running[-1].start()
    for each in listeners:
        each.close()
    servers.pids = [process.pid for process in running if process.pid]
    try:
        deadline = time.monotonic() + START_SECONDS
        while not all(log.exists() for log in servers.logs):
            if time.monotonic() > deadline:
                raise TamiasError(f"the servers of the benchmark did not start within {START_SECONDS:.0f} s")
            time.sleep(0.01)
        yield servers
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.join(START_SECONDS)


def _work(listening: socket.socket, site_at: SiteAt, file: Path) -> None:
    end_with_parent()
    log = Log(file)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(serve(listening, site_at, log))
        loop.add_signal_handler(15, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            log.flush()
            os._exit(0)  # a loop would first wait for clients that may never leave

    factory = import_module("uvloop").new_event_loop if find_spec("uvloop") else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run())
