"""Small sites on loopback addresses, which write down what was asked of them and what they gave."""

import asyncio
import os
import socket
import struct
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise

import msgspec

from benchmarks.webs.server import Listeners, WireRequest, head, in_thread, read_request

ROBOTS = "/robots.txt"
_BEAT_SECONDS = 0.01
_RECENT_SECONDS = 0.5
_RESET = struct.pack("ii", 1, 0)


class SiteAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What comes back, and how."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/turtle"),)
    pause: float = 0.0
    """Seconds before it."""


class ServedRequest(msgspec.Struct, kw_only=True):
    """One request as the server saw it. Times are monotonic."""

    host: str
    path: str
    agent: str
    at: float
    late: float = 0.0
    """How late the server itself may have been to look at the clock."""
    sent: float | None = None
    """Just before the answer was sent: no client can have had it earlier."""
    ended: float | None = None
    status: int = 0
    retry_after: float = 0.0


Site = Callable[[WireRequest], SiteAnswer]
NOTHING = SiteAnswer(status=404)


class LoopbackSites(Listeners):
    """Sites that are being served: the same site on every address."""

    def __init__(self, site: Site, hosts: Sequence[str]) -> None:
        super().__init__()
        self.site = site
        self.hosts = hosts
        self.log: list[ServedRequest] = []
        self._lateness: deque[tuple[float, float]] = deque()

    def url(self, host: str, path: str, port: int | None = None) -> str:
        """An address of it."""
        return f"http://{host}:{port or self.port}{path}"

    def pages(self, since: int = 0) -> list[ServedRequest]:
        """The requests for anything but robots.txt."""
        return [visit for visit in self.log[since:] if visit.path != ROBOTS]

    async def open(self) -> None:
        """Listens everywhere, at one port; before all others where allowed, so the log is not late."""
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        for host in self.hosts:
            await self.accept(host, self.port, self._talk)
        self._tasks.add(asyncio.ensure_future(self._watch_itself()))

    async def _watch_itself(self) -> None:
        """How late this loop runs: by so much the log may be wrong."""
        while True:
            wanted = time.monotonic() + _BEAT_SECONDS
            await asyncio.sleep(_BEAT_SECONDS)
            now = time.monotonic()
            self._lateness.append((now, now - wanted))
            while self._lateness[0][0] < now - _RECENT_SECONDS:
                self._lateness.popleft()

    def _late(self) -> float:
        """The most that it was late of late, with the beat that is overdue."""
        overdue = time.monotonic() - self._lateness[-1][0] - _BEAT_SECONDS if self._lateness else 0.0
        return max(overdue, *(late for _, late in self._lateness), 0.0)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await read_request(reader)
        answer = self.site(asked)
        visit = ServedRequest(
            host=asked.host,
            path=asked.target,
            agent=asked.headers.get("user-agent", ""),
            at=asked.at,
            late=self._late(),
            status=answer.status,
            retry_after=float(dict(answer.headers).get("Retry-After", 0)),
        )
        self.log.append(visit)
        try:
            await asyncio.sleep(answer.pause)
            visit.sent = time.monotonic()
            length = ("Content-Length", str(len(answer.body)))
            writer.write(head(answer.status, (*answer.headers, length)) + answer.body)
            await writer.drain()
        finally:
            visit.ended = time.monotonic()


def reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection so that the other side is told of an error."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


@contextmanager
def serving(site: Site, hosts: int, network: str = "127.70") -> Iterator[LoopbackSites]:
    """Serves on so many addresses in a thread of its own."""
    web = LoopbackSites(site, [f"{network}.{number // 250}.{number % 250 + 1}" for number in range(hosts)])
    with in_thread() as do:
        do(web.open())
        try:
            yield web
        finally:
            do(web.close())


def by_host(visits: Iterable[ServedRequest]) -> dict[str, list[ServedRequest]]:
    """The visits to each host, in order."""
    found: dict[str, list[ServedRequest]] = defaultdict(list)
    for visit in visits:
        found[visit.host].append(visit)
    return found


def gaps(visits: Iterable[ServedRequest]) -> list[float]:
    """Seconds from one request to a host to the next, with what the server was late to note the first."""
    hosts = by_host(visits).values()
    return [after.at - before.at + before.late for each in hosts for before, after in pairwise(each)]


def waits(visits: Iterable[ServedRequest]) -> list[float]:
    """Seconds from the end of one request to a host to the start of the next; negative for two at once."""
    hosts = by_host(visits).values()
    pairs = (pair for each in hosts for pair in pairwise(each))
    return [after.at - (before.sent or before.ended or after.at) for before, after in pairs]


def most_at_once(visits: Iterable[ServedRequest]) -> int:
    """The most requests that any host had under way at one moment."""
    most = 0
    for of_host in by_host(visits).values():
        moments = [(visit.at, 1) for visit in of_host]
        moments += [(visit.ended or float("inf"), -1) for visit in of_host]
        under_way = 0
        for _, step in sorted(moments):
            under_way += step
            most = max(most, under_way)
    return most
