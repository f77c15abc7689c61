"""Every page as a browser asks for it: its status, how long it takes and what goes over the wire."""

import http.client
import statistics
import time
from contextlib import closing
from urllib.parse import quote

import msgspec

from benchmarks.serve.fill import Filled
from benchmarks.serve.servers import HOST, ServerProcess

REPEATS = 5
MOST_READ = 64 << 20
_HEADERS = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Encoding": "gzip, deflate, br"}


class PageTimes(msgspec.Struct, frozen=True, kw_only=True):
    """One page."""

    name: str
    path: str
    status: int
    ms: float
    """Of the middle one of some requests."""
    first_ms: float
    """Of the first, when nothing is kept yet."""
    bytes: int
    """Of the answer's head and body, packed."""


def paths_of_pages(filled: Filled) -> dict[str, str]:
    """Each page, of something that is there."""
    one = filled.id(7)
    return {
        "overview": "/",
        "search": "/search?q=" + quote("stations district 77"),
        "search, many hits": "/search?q=temperatures",
        "dataset": f"/dataset/{one}",
        "diff": f"/dataset/{one}/diff?a=1&b=2",
        "hosts": "/hosts",
        "host": f"/host/{filled.host(7)}",
        "portals": "/portals",
        "portal": "/portal?url=" + quote(filled.portal, safe=""),
        "frontier": "/frontier",
        "graph": "/graph",
        "query": "/query",
        "add": "/add",
        "api": "/api",
    }


def measure_pages(server: ServerProcess, filled: Filled) -> list[PageTimes]:
    """All of them, one after another."""
    return [_measured(server, name, path) for name, path in paths_of_pages(filled).items()]


def _measured(server: ServerProcess, name: str, path: str) -> PageTimes:
    asked = [ask(server, path) for _ in range(REPEATS)]
    return PageTimes(
        name=name,
        path=path,
        status=max(status for status, _, _ in asked),
        ms=1000 * statistics.median(seconds for _, seconds, _ in asked),
        first_ms=1000 * asked[0][1],
        bytes=max(size for _, _, size in asked),
    )


def ask(server: ServerProcess, path: str) -> tuple[int, float, int]:
    """Status, seconds and bytes of one answer."""
    with closing(http.client.HTTPConnection(HOST, server.port, timeout=60)) as connection:
        connection.connect()
        started = time.perf_counter()
        connection.request("GET", path, headers=_HEADERS)
        answer = connection.getresponse()
        body = answer.read(MOST_READ)
        seconds = time.perf_counter() - started
        head = sum(len(name) + len(value) + 4 for name, value in answer.getheaders())
        return answer.status, seconds, len(body) + head
