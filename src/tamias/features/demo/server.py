"""Serves a web: one process, one port, an address for every node, HTTP/1.1 with keep-alive, and a log.

Only loopback addresses are bound, one by one, so that nobody outside the machine can reach it.
"""

import asyncio
import errno
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Self

import msgspec

from tamias.features.demo.answers import DemoRequest, DemoResponse, answer
from tamias.features.demo.expected import Expected, expected_of
from tamias.features.demo.kinds import KINDS, DemoSite, DemoWeb, File
from tamias.features.demo.oddities import ODDITIES
from tamias.features.demo.plan import NodeWriter, WebPlan


class LoggedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request, from its last header line until its response was written, in seconds."""

    host: str
    """Address and port."""
    path: str
    status: int
    """0 if the client left before the answer."""
    start: float
    end: float
    in_flight: int
    """Requests in progress at this host when it came, itself included."""
    agent: str

    @property
    def url(self) -> str:
        """The address asked for."""
        return f"http://{self.host}{self.path}"


def max_in_flight(log: Iterable[LoggedRequest]) -> dict[str, int]:
    """Return the most requests at once, by host."""
    most: dict[str, int] = {}
    for visit in log:
        most[visit.host] = max(visit.in_flight, most.get(visit.host, 0))
    return most


def requests_of_disallowed(log: Iterable[LoggedRequest], disallowed: Collection[str]) -> list[LoggedRequest]:
    """The visits that should never have been."""
    return [visit for visit in log if visit.url in disallowed]


def build_web(plan: WebPlan, port: int) -> DemoWeb:
    """Build the documents of the web as served at `port`."""
    entrances = [f"http://{node.address}:{port}{KINDS[node.kind].entrance(node)}" for node in plan.nodes]
    vocabulary = f"http://{plan.nodes[0].address}:{port}/vocab"
    sites = {
        node.address: build_site(
            NodeWriter(node, port, entrances, vocabulary, random.Random(f"{plan.seed}/{node.number}"))
        )
        for node in plan.nodes
    }
    return DemoWeb(sites=sites, seeds=tuple(entrances[number] for number in plan.seeds))


def build_site(writer: NodeWriter) -> DemoSite:
    """The pages of the node's kind, with its oddities linked from the first of them."""
    oddities = [ODDITIES[name](writer) for name in writer.node.oddities]
    pages = KINDS[writer.node.kind].pages(writer, [link for oddity in oddities for link in oddity.links])
    for oddity in oddities:
        pages |= oddity.pages
    rules = [line for oddity in oddities for line in oddity.robots]
    if rules:
        pages["/robots.txt"] = File("\n".join(["User-agent: *", *rules, ""]).encode(), "text/plain")
    return DemoSite(
        authority=f"{writer.node.address}:{writer.port}",
        kind=writer.node.kind,
        pages=pages,
        disallowed=frozenset(path for oddity in oddities for path in oddity.disallowed),
    )


HEAD_LIMIT = 16 * 1024
PORT_TRIALS = 20
BACKLOG = 1024
LATENCY = 0.002
"""Seconds before an answer: from a server that answers at once nobody learns that two came together."""
LOOK_SECONDS = 0.05
"""How often a visitor who waits is looked for."""
SHUTDOWN_SECONDS = 30.0
UNREADABLE = DemoRequest("", "", {}, keep_alive=False)


class DataWeb:
    """A plan as running servers: `async with DataWeb(plan) as web:`. Port 0 takes any that is free."""

    web: DemoWeb
    expected: Expected

    def __init__(self, plan: WebPlan, port: int = 0, *, latency: float = LATENCY) -> None:
        self.plan = plan
        self.port = port
        self.log: list[LoggedRequest] = []
        self.in_flight: Counter[str] = Counter()
        self._latency = latency
        self._request_counts: Counter[tuple[str, str]] = Counter()
        self._servers: list[asyncio.Server] = []
        self._visitors: set[asyncio.Task[None] | None] = set()

    @property
    def seeds(self) -> tuple[str, ...]:
        """The URLs from which all the rest can be reached."""
        return self.web.seeds

    async def __aenter__(self) -> Self:
        listeners = bind([node.address for node in self.plan.nodes], self.port)
        self.port = listeners[0].getsockname()[1]
        self.web = build_web(self.plan, self.port)
        self.expected = expected_of(self.web)
        for listener, site in zip(listeners, self.web.sites.values(), strict=True):
            serve = partial(self._serve, site)
            self._servers.append(
                await asyncio.start_server(serve, sock=listener, backlog=BACKLOG, limit=HEAD_LIMIT)
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        visitors = [each for each in self._visitors if each is not None]
        for each in visitors:
            each.cancel()
        await asyncio.gather(*visitors, return_exceptions=True)

    async def _serve(
        self, site: DemoSite, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the requests of a connection in their order, one at a time."""
        self._visitors.add(task := asyncio.current_task())
        try:
            while await self._answer(site, reader, writer):
                pass
            writer.close()
        except (ConnectionError, EOFError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._visitors.discard(task)

    async def _answer(
        self, site: DemoSite, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer a request; return whether the connection stays open. Raise when the client has left."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            head = b""
        ask = parse_head(head[:-4]) or UNREADABLE
        host, key = site.authority, (site.authority, ask.path)
        reply = answer(site.pages.get(ask.path), ask, self._request_counts[key])
        self._request_counts[key] += 1
        self.in_flight[host] += 1
        start, in_flight, status = time.monotonic(), self.in_flight[host], 0
        try:
            await _wait(reader, self._latency + reply.delay)
            status = reply.status
        finally:  # in the log before its client can know the answer
            self.in_flight[host] -= 1
            agent, end = ask.headers.get("user-agent", ""), time.monotonic()
            self.log.append(
                LoggedRequest(
                    host=host, path=ask.path, status=status, start=start, end=end, in_flight=in_flight,
                    agent=agent,
                )
            )  # fmt: skip
        writer.write(written_reply(reply, ask))
        await writer.drain()
        return ask.keep_alive and ask.method in {"GET", "HEAD"}


async def _wait(reader: asyncio.StreamReader, seconds: float) -> None:
    """Wait before an answer. Raise `ConnectionError` when the client leaves meanwhile."""
    looks = 1 + int(seconds / LOOK_SECONDS)
    for _ in range(looks):
        await asyncio.sleep(seconds / looks)
        if reader.at_eof():
            raise ConnectionResetError


def parse_head(head: bytes | bytearray) -> DemoRequest | None:
    """The request line and headers; None if that is not what it is."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    closing = headers.get("connection", "").lower() == "close" or words[2] == "HTTP/1.0"
    return DemoRequest(words[0], words[1], headers, keep_alive=not closing)


def written_reply(reply: DemoResponse, ask: DemoRequest) -> bytes:
    """The response on the wire. To HEAD it is only said what there would be."""
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in reply.headers]
    if reply.status != HTTPStatus.NOT_MODIFIED:
        lines.append(f"Content-Length: {len(reply.body)}")
    if not ask.keep_alive:
        lines.append("Connection: close")
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return head if ask.method == "HEAD" else head + reply.body


def bind(addresses: Sequence[str], port: int) -> list[socket.socket]:
    """A listening socket on each address, all on one port; with port 0, one that is free on all of them."""
    for _ in range(PORT_TRIALS if port == 0 else 1):
        listeners: list[socket.socket] = []
        chosen = port
        try:
            for address in addresses:
                listeners.append(socket.create_server((address, chosen), backlog=BACKLOG))
                chosen = listeners[0].getsockname()[1]
        except OSError as error:
            for listener in listeners:
                listener.close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return listeners
    raise OSError(errno.EADDRINUSE, f"port {port or 'any'} is not free on {addresses[0]} to {addresses[-1]}")


@contextmanager
def serving(plan: WebPlan, port: int = 0, *, latency: float = LATENCY) -> Iterator[DataWeb]:
    """The web in a thread of its own, for callers that are not asynchronous."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="dataweb", daemon=True)
    thread.start()

    def carry_out(work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(SHUTDOWN_SECONDS)

    web = DataWeb(plan, port, latency=latency)
    try:
        carry_out(web.__aenter__())
        try:
            yield web
        finally:
            carry_out(web.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
