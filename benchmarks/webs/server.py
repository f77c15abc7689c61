"""Servers on one event loop: what they listen to, and the requests that they read."""

import asyncio
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

HEAD_LIMIT = 64 * 1024
HEAD_SECONDS = 20.0
END_SECONDS = 30.0
BACKLOG = 512
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Headers = Iterable[tuple[str, str]]


class WireRequest(msgspec.Struct, frozen=True):
    """One request as it came."""

    host: str
    """Without the port."""
    target: str
    """Path and query."""
    headers: dict[str, str]
    """By name in lower case."""
    at: float
    address: str
    """Where it came to."""

    @property
    def path(self) -> str:
        """Without the query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """Behind the question mark."""
        return self.target.partition("?")[2]


class Listeners:
    """Servers on one event loop. What is said on a connection is a coroutine; `close` ends all of them."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        """Where it listened first; the system's choice, if it was left to it."""

    async def accept(self, address: str, port: int, talk: Talk, tls: ssl.SSLContext | None = None) -> None:
        """Takes connections there too; a client that leaves, or says nothing sound, is no error."""

        async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                with suppress(OSError, EOFError, asyncio.LimitOverrunError):
                    await talk(reader, writer)
            except asyncio.CancelledError:
                writer.transport.abort()
            finally:
                self._tasks.discard(task)
                writer.close()

        server = await asyncio.start_server(taken, address, port, ssl=tls, backlog=BACKLOG, limit=HEAD_LIMIT)
        self._servers.append(server)
        self.port = self.port or int(server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Ends all conversations, also those that would last for ever."""
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0.01)  # a closed connection lets go of its socket a turn later


async def read_request(reader: asyncio.StreamReader, address: str = "") -> WireRequest:
    """The next request of a client. Raises `TimeoutError` or `EOFError` when none comes."""
    return parsed(await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS), address)


def parsed(request: bytes, address: str) -> WireRequest:
    """The request; what is not sound in it is left out."""
    first, *lines = request.decode("latin-1").split("\r\n")
    words = first.split(" ")
    pairs = (line.partition(":") for line in lines if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
    return WireRequest(host.lower(), words[1] if len(words) > 1 else "", headers, time.monotonic(), address)


@contextmanager
def in_thread() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """A loop in a thread of its own; what it yields carries out a coroutine there and waits for it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="web", daemon=True)
    thread.start()
    try:
        yield lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(END_SECONDS)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def head(status: int, headers: Headers, phrase: str = "Hostile") -> bytes:
    """Status line and headers, always with the end of the connection announced."""
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")
