"""`python -m benchmarks pages`: how long every page takes over a large archive, asked for again and again."""

import platform
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

from benchmarks.measuring.ports import free_ports
from benchmarks.measuring.targets import BenchmarkTarget, report_targets
from benchmarks.measuring.workspace import workspace
from benchmarks.serve.fill import DOCUMENTS_OF_HOST, Filled, fill, fill_documents
from benchmarks.serve.pages import ask, paths_of_pages
from benchmarks.serve.servers import ServerProcess, service
from tamias import __version__
from tamias.database.connect import Database

MOST_MS = 100.0
"""What the slowest twentieth of the requests for a page may take."""


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
            fill(database, data, filled, lambda: None, 0)
            fill_documents(database, hosts)
        took = time.monotonic() - started
        out(
            f"{filled.datasets:,} datasets, {filled.versions:,} versions, {hosts * DOCUMENTS_OF_HOST:,} "
            f"documents, made in {took:.0f} s; {repeats} requests for each page, one after another"
        )
        (port,) = free_ports(1)
        started = time.monotonic()
        with service(data, port) as server:
            listening = time.monotonic() - started
            ask(server, "/")
            first_page = time.monotonic() - started
            out(
                f"first page {first_page:.2f} s after `tamias serve` was started, listening {listening:.2f} s"
            )
            found = [_measured(server, name, path, repeats) for name, path in paths(filled).items()]
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
    return paths_of_pages(filled) | {
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


def _measured(server: ServerProcess, name: str, path: str, repeats: int) -> PagePercentiles:
    first = ask(server, path)
    asked = [ask(server, path) for _ in range(repeats)]
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
