"""Fills an archive, serves it, asks it for everything, and compares with a bare handler in the same run."""

import platform
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from benchmarks.measuring.ports import free_ports
from benchmarks.measuring.targets import report_targets
from benchmarks.measuring.workspace import workspace
from benchmarks.serve.fill import Filled, fill
from benchmarks.serve.load import CONNECTIONS, RouteLoad, load, wrk
from benchmarks.serve.pages import measure_pages
from benchmarks.serve.report import Route, ServeReport, lines
from benchmarks.serve.servers import ServerProcess, bare, service
from benchmarks.serve.silence import silence
from tamias import __version__
from tamias.crawl.catalogue.catalogue import rebuild
from tamias.database.connect import Database
from tamias.settings import ServeSettings

CATALOGUE = 2000
SILENT = 10_000
POPULAR = 1000
"""Datasets that most requests are about."""
_LISTED = 50_000
_WARM_SECONDS = 1.0

Out = Callable[[str], object]


def run(
    datasets: int = 100_000,
    versions: int = 800_000,
    seconds: float = 5.0,
    catalogue: int = CATALOGUE,
    silent: int = SILENT,
    *,
    out: Out = print,
) -> dict[str, Any]:
    """Measures all; `ok` is false when a target is missed."""
    out(f"Tamias {__version__}, Python {platform.python_version()}; {CONNECTIONS} connections by wrk")
    filled = Filled(datasets, max(1, versions // datasets) * datasets)
    with workspace(None) as data:
        (port,), first = free_ports(1), min(catalogue, datasets)
        took = _fill(data, filled, port, first)
        out(
            f"{filled.datasets:,} datasets, {filled.versions:,} versions, made in {took:.0f} s; "
            f"{first:,} of the datasets in the SPARQL store"
        )
        report = _measure(data, filled, port, first, seconds=seconds, silent=silent, took=took)
    for line in lines(report):
        out(line)
    return {**msgspec.to_builtins(report), **report_targets(report.targets, out)}


def _fill(data: Path, filled: Filled, port: int, first: int) -> float:
    started = time.monotonic()
    settings = ServeSettings(address=f"http://127.0.0.1:{port}")
    with closing(Database(data)) as database:
        fill(database, data, filled, lambda: _into_catalogue(database, data, settings), first)
    return time.monotonic() - started


def _into_catalogue(database: Database, data: Path, settings: ServeSettings) -> None:
    rebuild(database, data, settings)


def _measure(
    data: Path, filled: Filled, port: int, first: int, *, seconds: float, silent: int, took: float
) -> ServeReport:
    with service(data, port) as server:
        pages = measure_pages(server, filled)
        measured = list(_loads(server, filled, first, seconds)) if wrk() else []
        dropped = silence(server, silent)
    peer = next((each for name, each in measured if name == "bare"), None)
    return ServeReport(
        datasets=filled.datasets,
        versions=filled.versions,
        catalogue=first,
        filled_seconds=took,
        bare=peer,
        routes=[_beside(each, peer) for _, each in measured if peer is not None and each is not peer],
        pages=pages,
        silence=dropped,
        skipped="" if measured else "not measured: wrk is not installed (Debian: apt install wrk)",
    )


def _beside(each: RouteLoad, peer: RouteLoad) -> Route:
    return Route(
        load=each,
        json=each.name.startswith(("dataset JSON", "version list")),
        page=each.name.endswith("page"),
        ratio=each.per_second / peer.per_second,
        cpu_ratio=peer.cpu_ms / each.cpu_ms if each.cpu_ms else 0.0,
    )


def _loads(
    server: ServerProcess, filled: Filled, first: int, seconds: float
) -> Iterator[tuple[str, RouteLoad]]:
    with bare() as peer:
        load(peer, "bare", ["/"], _WARM_SECONDS)
        yield "bare", load(peer, "bare Starlette handler", ["/"], seconds)
    for name, paths in _requests(server, filled, first).items():
        load(server, name, paths, _WARM_SECONDS)
        yield name, load(server, name, paths, seconds)


def _requests(server: ServerProcess, filled: Filled, first: int) -> dict[str, Sequence[str]]:
    chance = random.Random(1)
    every = [chance.randrange(filled.datasets) for _ in range(min(_LISTED, filled.datasets))]
    few = every[:POPULAR]
    return {
        f"dataset JSON, {len(few):,} of them": [_dataset(filled, number) for number in few],
        f"dataset JSON, {len(every):,} of them": [_dataset(filled, number) for number in every],
        f"version list, {len(few):,} of them": [_versions(filled, number) for number in few],
        f"small file, {len(few):,} of them": [f"/api/v1/get/file/{filled.url(number)}" for number in few],
        "SPARQL point query": [_query(server, filled.id(number % first)) for number in few],
        "overview page": ["/"],
    }


def _dataset(filled: Filled, number: int) -> str:
    return f"/api/v1/get/dataset/{filled.url(number)}"


def _versions(filled: Filled, number: int) -> str:
    return "/api/v1/versions?url=" + quote(filled.url(number), safe="")


def _query(server: ServerProcess, name: str) -> str:
    query = f"SELECT ?title {{ GRAPH ?g {{ <{server.address}/dataset/{name}> dct:title ?title }} }}"
    return "/sparql?query=" + quote(query, safe="")
