"""How a hostile server answers: hosts by name, an answer for each path, ways to misbehave on the wire."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from benchmarks.webs.server import Listeners, WireRequest, head, read_request

PIECE = 64 * 1024


class Wire:
    """The server's end of a connection, with one request to answer. It is closed afterwards."""

    def __init__(self, asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        self.asked = asked
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Raises `ConnectionError` when the crawler has gone."""
        self._writer.write(data)
        await self._writer.drain()

    def cut(self) -> None:
        """Ends the connection without a farewell."""
        transport = self._writer.transport
        transport.abort()


Answer = Callable[[Wire], Awaitable[None]]


def whole(body: bytes | str, media_type: str = "text/turtle", *headers: tuple[str, str]) -> Answer:
    """A well-formed answer; what is evil about it stands in the body or in a header."""
    content = body.encode() if isinstance(body, str) else body
    fields = (("Content-Type", media_type), ("Content-Length", str(len(content))), *headers)

    async def answer(wire: Wire) -> None:
        await wire.send(head(200, fields) + content)

    return answer


def made(make: Callable[[WireRequest], bytes | str], media_type: str = "text/html") -> Answer:
    """A well-formed answer that is made for the request."""

    async def answer(wire: Wire) -> None:
        await whole(make(wire.asked), media_type)(wire)

    return answer


def status(code: int, *headers: tuple[str, str]) -> Answer:
    """No body."""
    return raw(head(code, (*headers, ("Content-Length", "0"))))


def redirect(target: str, code: int = 302) -> Answer:
    """Somewhere else."""
    return status(code, ("Location", target))


def raw(data: bytes) -> Answer:
    """These bytes, whatever they are."""

    async def answer(wire: Wire) -> None:
        await wire.send(data)

    return answer


def drip(start: bytes, piece: bytes, seconds: float) -> Answer:
    """Begins well, and then goes on as slowly as it can, for ever."""

    async def answer(wire: Wire) -> None:
        await wire.send(start)
        while True:
            await asyncio.sleep(seconds)
            await wire.send(piece)

    return answer


def endless(start: bytes, piece: bytes) -> Answer:
    """Begins well and never ends, as fast as it can."""

    async def answer(wire: Wire) -> None:
        await wire.send(start)
        block = piece * (PIECE // len(piece) + 1)
        while True:
            await wire.send(block)

    return answer


async def silent(_: Wire) -> None:
    """Says nothing, for ever."""
    await asyncio.sleep(3600)


async def reset(wire: Wire) -> None:
    """Begins an answer and breaks the connection."""
    await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
    wire.cut()


Site = Mapping[str, Answer]
"""Answers by path; `*` answers all others."""
_NOTHING = status(404)


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


def addresses(sites: Sequence[str], network: str) -> dict[str, str]:
    """An address of the network `a.b.` for each site.

    >>> addresses(["one.test", "two.test"], "127.66.")
    {'one.test': '127.66.0.1', 'two.test': '127.66.0.2'}
    """
    return {name: f"{network}{number // 250}.{number % 250 + 1}" for number, name in enumerate(sites)}
