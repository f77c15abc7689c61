"""The hostile web on one event loop: hosts by name, an answer for each path, a log of requests."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from benchmarks.webs.wire import Answer, Wire, WireRequest, status

HEAD_LIMIT = 64 * 1024
HEAD_SECONDS = 20.0
END_SECONDS = 30.0
BACKLOG = 512
Site = Mapping[str, Answer]
"""Answers by path; `*` answers all others."""
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_NOTHING = status(404)


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


class VirtualHosts(Listeners):
    """Sites that are being served. Used by the loop's thread, read by others when it has ended."""

    def __init__(self, sites: Mapping[str, Site]) -> None:
        super().__init__()
        self._sites = sites
        self.log: list[WireRequest] = []

    async def listen(self, address: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Serves there too."""
        await self.accept(address, port, partial(self._talk, address), tls)

    async def watch(self, address: str, port: int, seen: Callable[[str], None]) -> None:
        """Takes connections that should never come, and tells of each."""

        async def caught(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen(f"{address}:{port}")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            writer.close()

        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._servers.append(await asyncio.start_server(caught, address, port, family=family))

    async def _talk(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await read_request(reader, address)
        self.log.append(asked)
        site = self._sites.get(asked.host, {})
        answer = site.get(asked.target) or site.get(asked.path) or site.get("*")
        if asked.path == "/robots.txt" and "/robots.txt" not in site:
            answer = None
        await (answer or _NOTHING)(Wire(asked, writer))


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


def addresses(sites: Sequence[str], network: str) -> dict[str, str]:
    """An address of the network `a.b.` for each site.

    >>> addresses(["one.test", "two.test"], "127.66.")
    {'one.test': '127.66.0.1', 'two.test': '127.66.0.2'}
    """
    return {name: f"{network}{number // 250}.{number % 250 + 1}" for number, name in enumerate(sites)}
