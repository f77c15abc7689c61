"""How a hostile server answers: ways to misbehave on the wire, each writing to a connection."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import msgspec

PIECE = 64 * 1024


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
Headers = Iterable[tuple[str, str]]


def head(status: int, headers: Headers, phrase: str = "Hostile") -> bytes:
    """Status line and headers, always with the end of the connection announced."""
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


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
