"""The hostile web on one event loop: hosts by name, an answer for each path, a log of requests."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from benchmarks.webs.wire import Answer, Asked, Wire, status

HEAD_LIMIT = 64 * 1024
HEAD_SECONDS = 20.0
END_SECONDS = 30.0
BACKLOG = 512
Site = Mapping[str, Answer]
"""Answers by path; `*` answers all others."""
_NOTHING = status(404)


class Web:
    """Sites that are being served. Used by the loop's thread, read by others when it has ended."""

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self._sites = sites
        self.log: list[Asked] = []
        self._servers: list[asyncio.Server] = []
        self._talks: set[asyncio.Task[None]] = set()

    async def listen(self, address: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Takes connections there too."""
        self._servers.append(
            await asyncio.start_server(
                self._taken(address), address, port, ssl=tls, backlog=BACKLOG, limit=HEAD_LIMIT
            )
        )

    @property
    def port(self) -> int:
        """Where it listens first, if it was left to the system."""
        return int(self._servers[0].sockets[0].getsockname()[1])

    async def watch(self, address: str, port: int, seen: Callable[[str], None]) -> None:
        """Takes connections that should never come, and tells of each."""

        async def caught(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen(f"{address}:{port}")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            writer.close()

        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._servers.append(await asyncio.start_server(caught, address, port, family=family))

    async def close(self) -> None:
        """Ends all talks, also those that would last for ever."""
        for server in self._servers:
            server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def _taken(self, address: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            talk = asyncio.current_task()
            assert talk is not None
            self._talks.add(talk)
            try:
                with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                    await self._talk(reader, writer, address)
            except (asyncio.CancelledError, ssl.SSLError, TimeoutError):
                writer.transport.abort()
            finally:
                self._talks.discard(talk)
                writer.close()

        return taken

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str) -> None:
        asked = parsed(await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS), address)
        self.log.append(asked)
        site = self._sites.get(asked.host, {})
        answer = site.get(asked.target) or site.get(asked.path) or site.get("*")
        if asked.path == "/robots.txt" and "/robots.txt" not in site:
            answer = None
        await (answer or _NOTHING)(Wire(asked, writer))


def parsed(request: bytes, address: str) -> Asked:
    """The request; what is not sound in it is left out."""
    first, *lines = request.decode("latin-1").split("\r\n")
    words = first.split(" ")
    pairs = (line.partition(":") for line in lines if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
    return Asked(host.lower(), words[1] if len(words) > 1 else "", headers, time.monotonic(), address)


@contextmanager
def in_thread() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """A loop in a thread of its own; what it yields carries out a coroutine there and waits for it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="hostile", daemon=True)
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
