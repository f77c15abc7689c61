"""Serves the web on loopback addresses, one for each host, and notes in which order pages were asked for."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, cast

from benchmarks.strategy.web import Web, html, page_of
from tamias.demo.answers import Answer
from tamias.demo.server import bind, parse_head, written_reply

START_SECONDS = 60.0
LONGEST_HEAD = 16 * 1024
HTML = (("Content-Type", "text/html; charset=utf-8"),)

Visit = tuple[int, int]
"""Host and page."""


class Served:
    """A web that runs."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self.visits: list[Visit] = []
        """In the order in which pages were asked for."""
        self.connections: set[asyncio.Transport] = set()
        self._port = 0
        self._servers: list[asyncio.Server] = []

    def url(self, host: int) -> str:
        """The address of a host."""
        return f"http://{_address(host)}:{self._port}"

    def answer(self, host: int, path: str) -> Answer:
        """The page, if there is one."""
        page = page_of(path)
        if page is None or page >= self.web.pages:
            return Answer(404)
        self.visits.append((host, page))
        return Answer(200, HTML, html(self.web, host, page, self.url))

    async def start(self) -> None:
        """Listens."""
        listeners = bind([_address(host) for host in range(self.web.hosts)], 0)
        self._port = listeners[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        for host, listener in enumerate(listeners):
            self._servers.append(await loop.create_server(self._connections_to(host), sock=listener))

    async def stop(self) -> None:
        """Ends all connections."""
        for server in self._servers:
            server.close()
        for connection in list(self.connections):
            connection.abort()
        await asyncio.sleep(0)  # lets every connection learn that it is lost

    def _connections_to(self, host: int) -> Callable[[], "Connection"]:
        return lambda: Connection(self, host)


class Connection(asyncio.Protocol):
    """One client's connection to one host."""

    def __init__(self, served: Served, host: int) -> None:
        self._served = served
        self._host = host
        self._buffer = bytearray()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._served.connections.add(self._transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._served.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            ask = parse_head(self._buffer[:end])
            del self._buffer[: end + 4]
            if ask is None:
                self._transport.abort()
                return
            self._transport.write(written_reply(self._served.answer(self._host, ask.path), ask))
        if len(self._buffer) > LONGEST_HEAD:
            self._transport.abort()


@contextmanager
def serving(web: Web) -> Iterator[Served]:
    """The web in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="strategy-web", daemon=True)
    thread.start()

    def carry_out(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(START_SECONDS)

    served = Served(web)
    try:
        carry_out(served.start())
        try:
            yield served
        finally:
            carry_out(served.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _address(host: int) -> str:
    return f"127.9.{host // 250}.{host % 250 + 1}"
