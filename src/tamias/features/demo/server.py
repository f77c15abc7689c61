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
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

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
PIPELINE_LIMIT = 4 * HEAD_LIMIT
PORT_TRIALS = 20
BACKLOG = 1024
LATENCY = 0.002
"""Seconds before an answer: from a server that answers at once nobody learns that two came together."""
SHUTDOWN_SECONDS = 30.0
UNREADABLE = DemoRequest("", "", {}, keep_alive=False)


class DataWeb:
    """A plan as running servers: `async with DataWeb(plan) as web:`. Port 0 takes any that is free."""

    web: DemoWeb
    expected: Expected

    def __init__(
        self, plan: WebPlan, port: int = 0, *, latency: float = LATENCY, log_file: Path | None = None
    ) -> None:
        self.plan = plan
        self.port = port
        self.latency = latency
        self.log: list[LoggedRequest] = []
        self.request_counts: Counter[tuple[str, str]] = Counter()
        self.in_flight: Counter[str] = Counter()
        self.connections: set[asyncio.Transport] = set()
        self._log_file = log_file
        self._log_out: BinaryIO | None = None
        self._servers: list[asyncio.Server] = []

    @property
    def seeds(self) -> tuple[str, ...]:
        """The URLs from which all the rest can be reached."""
        return self.web.seeds

    async def __aenter__(self) -> Self:
        listeners = bind([node.address for node in self.plan.nodes], self.port)
        self.port = listeners[0].getsockname()[1]
        self.web = build_web(self.plan, self.port)
        self.expected = expected_of(self.web)
        if self._log_file:
            self._log_out = self._log_file.open("wb")
        loop = asyncio.get_running_loop()
        for listener, site in zip(listeners, self.web.sites.values(), strict=True):
            self._servers.append(
                await loop.create_server(self._connections_to(site), sock=listener, backlog=BACKLOG)
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        for transport in list(self.connections):
            transport.abort()
        await asyncio.sleep(0)  # lets every connection learn that it is lost
        if self._log_out:
            self._log_out.close()

    def record(self, visit: LoggedRequest) -> None:
        """Keeps a visit that has ended."""
        self.in_flight[visit.host] -= 1
        self.log.append(visit)
        if self._log_out:
            self._log_out.write(msgspec.json.encode(visit) + b"\n")

    def _connections_to(self, site: DemoSite) -> Callable[[], "DemoConnection"]:
        return lambda: DemoConnection(self, site)


class DemoConnection(asyncio.Protocol):
    """A connection to a site; requests are answered in their order, one at a time."""

    def __init__(self, web: DataWeb, site: DemoSite) -> None:
        self._web = web
        self._site = site
        self._buffer = bytearray()
        self._waiting: tuple[asyncio.TimerHandle, DemoRequest, float, int] | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._web.connections.add(self._transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._web.connections.discard(self._transport)
        if self._waiting:
            self._waiting[0].cancel()
            self._end(0)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()
        if len(self._buffer) > PIPELINE_LIMIT:
            self._transport.abort()

    def _next(self) -> None:
        """Begins the next request, if one is complete and none is under way."""
        if self._waiting or self._transport.is_closing():
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 and len(self._buffer) <= HEAD_LIMIT:
            return
        ask = parse_head(self._buffer[:end]) if 0 <= end <= HEAD_LIMIT else None
        del self._buffer[: end + 4]
        self._begin(ask or UNREADABLE)

    def _begin(self, ask: DemoRequest) -> None:
        start = time.monotonic()
        host, key = self._site.authority, (self._site.authority, ask.path)
        self._web.in_flight[host] += 1
        reply = answer(self._site.pages.get(ask.path), ask, self._web.request_counts[key])
        self._web.request_counts[key] += 1
        timer = asyncio.get_running_loop().call_later(self._web.latency + reply.delay, self._send, reply)
        self._waiting = (timer, ask, start, self._web.in_flight[host])

    def _send(self, reply: DemoResponse) -> None:
        ask = self._end(reply.status)
        self._transport.write(written_reply(reply, ask))
        if ask.keep_alive and ask.method in {"GET", "HEAD"}:
            self._next()
        else:
            self._transport.close()

    def _end(self, status: int) -> DemoRequest:
        """Takes the request out of waiting and into the log, before its client can know the answer."""
        assert self._waiting
        _, ask, start, in_flight = self._waiting
        self._waiting = None
        self._web.record(
            LoggedRequest(
                host=self._site.authority,
                path=ask.path,
                status=status,
                start=start,
                end=time.monotonic(),
                in_flight=in_flight,
                agent=ask.headers.get("user-agent", ""),
            )
        )
        return ask


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
