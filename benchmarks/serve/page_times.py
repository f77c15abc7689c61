"""`python -m benchmarks pages`: how long every page takes over a large archive, asked for again and again."""

import http.client
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from benchmarks.measuring.children import answers, free_ports, running
from benchmarks.measuring.targets import BenchmarkTarget, report_targets
from benchmarks.measuring.workspace import workspace
from benchmarks.serve.fill import DOCUMENTS_OF_HOST, Filled, fill, fill_documents
from tamias import __version__
from tamias.database.connect import Database

MOST_MS = 100.0
"""What the slowest twentieth of the requests for a page may take."""
MOST_READ = 64 << 20
_START_SECONDS = 120.0
_HEADERS = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Encoding": "gzip, deflate, br"}


class PagePercentiles(msgspec.Struct, frozen=True, kw_only=True):
    """One page: milliseconds of warm requests, and of the first."""

    name: str
    path: str
    status: int
    p50: float
    p95: float
    first: float
    bytes: int


def run(
    datasets: int = 20_000,
    versions: int = 160_000,
    documents: int = 1_000_000,
    repeats: int = 40,
    *,
    out: Callable[[str], object] = print,
) -> dict[str, Any]:
    """Fills an archive and asks for each of its pages; `ok` is false when one is slow or fails."""
    filled = Filled(datasets, max(1, versions // datasets) * datasets)
    hosts = max(1, documents // DOCUMENTS_OF_HOST)
    out(f"Tamias {__version__}, Python {platform.python_version()}")
    with workspace(None) as data:
        started = time.monotonic()
        with closing(Database(data)) as database:
            fill(database, data, filled)
            fill_documents(database, hosts)
        took = time.monotonic() - started
        out(
            f"{filled.datasets:,} datasets, {filled.versions:,} versions, {hosts * DOCUMENTS_OF_HOST:,} "
            f"documents, made in {took:.0f} s; {repeats} requests for each page, one after another"
        )
        (port,) = free_ports(1)
        started = time.monotonic()
        with service(data, port):
            listening = time.monotonic() - started
            ask(port, "/")
            first_page = time.monotonic() - started
            out(
                f"first page {first_page:.2f} s after `tamias serve` was started, listening {listening:.2f} s"
            )
            found = [_measured(port, name, path, repeats) for name, path in paths(filled).items()]
    out(f"{'page':<28}{'p50 ms':>9}{'p95 ms':>9}{'first':>9}{'kB':>8}")
    for each in found:
        out(f"{each.name:<28}{each.p50:>9.1f}{each.p95:>9.1f}{each.first:>9.1f}{each.bytes / 1000:>8.1f}")
    slow = [each for each in found if each.status != 200 or each.p95 >= MOST_MS]
    said = ", ".join(f"{each.name} {each.status} {each.p95:.0f} ms" for each in slow)
    targets = [BenchmarkTarget(f"every page: p95 under {MOST_MS:g} ms", said, not slow)]
    return {"first_page": first_page, "pages": msgspec.to_builtins(found), **report_targets(targets, out)}


def paths(filled: Filled) -> dict[str, str]:
    """Every page, of something that is there."""
    one, portal = filled.id(7), quote(filled.portal, safe="")
    document = quote("http://doc0.example/1.ttl", safe="")
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
        "datasets": "/datasets",
        "datasets, failing": "/datasets?state=failing",
        "datasets of a type": "/datasets?type=csv",
        "datasets of a portal": f"/datasets?portal={portal}",
        "datasets of a host": f"/datasets?host={filled.host(7)}",
        "version": f"/dataset/{one}/2",
        "portal at a time": f"/portal/at?url={portal}&at={datetime.now(UTC):%Y-%m-%d}",
        "documents": "/documents",
        "documents by words": "/documents?q=doc1",
        "documents of a host": "/documents?host=doc0.example",
        "document": f"/document?url={document}",
        "host of documents": "/host/doc0.example",
        "crawl": "/crawl/default",
        "feed": "/api/v1/changes.atom?limit=50",
        "feed of a portal": f"/api/v1/changes.atom?portal={portal}",
    }


def _measured(port: int, name: str, path: str, repeats: int) -> PagePercentiles:
    first = ask(port, path)
    asked = [ask(port, path) for _ in range(repeats)]
    times = sorted(1000 * seconds for _, seconds, _ in asked)
    return PagePercentiles(
        name=name,
        path=path,
        status=max(status for status, _, _ in [first, *asked]),
        p50=times[len(times) // 2],
        p95=times[min(len(times) - 1, int(0.95 * len(times)))],
        first=1000 * first[1],
        bytes=max(size for _, _, size in asked),
    )


def ask(port: int, path: str) -> tuple[int, float, int]:
    """Status, seconds and bytes of one answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.connect()
        started = time.perf_counter()
        connection.request("GET", path, headers=_HEADERS)
        answer = connection.getresponse()
        body = answer.read(MOST_READ)
        seconds = time.perf_counter() - started
        head = sum(len(name) + len(value) + 4 for name, value in answer.getheaders())
        return answer.status, seconds, len(body) + head


@contextmanager
def service(data: Path, port: int) -> Iterator[None]:
    """`tamias serve --no-crawl` over an archive, until the end of the block."""
    options = ["--data", str(data), "--port", str(port)]
    words = [sys.executable, "-m", "tamias", "serve", "--no-crawl", "-q", *options]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
    out = subprocess.DEVNULL
    with running(words, ready=lambda: answers(port), seconds=_START_SECONDS, env=clean, stdout=out):
        yield
