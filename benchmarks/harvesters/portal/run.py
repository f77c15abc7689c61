"""Harvests a small portal and a large one, and the large one with a plain loop, and compares."""

import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import msgspec

from benchmarks.harvesters.portal.harvest import HarvestFigures
from benchmarks.harvesters.portal.server import MOST_ROWS, portal
from benchmarks.measuring.targets import BenchmarkTarget, report_targets
from tamias import __version__

MOST_GROWTH = 1.25
"""How much more memory the large portal may take than the small one."""
_SECONDS = 600

Out = Callable[[str], object]


class LoopFigures(msgspec.Struct, kw_only=True):
    """The same pages by urllib and json, one after the other, with nothing made of them."""

    datasets: int = 0
    seconds: float = 0.0


def run(datasets: int = 10_000, small: int = 2_000, out: Out = print) -> dict[str, Any]:
    """Measures all; `ok` is false when a dataset is missing or memory grew."""
    out(f"Tamias {__version__}, Python {platform.python_version()}; a CKAN on the loopback address")
    little, large = _harvested(small), _harvested(datasets)
    with portal(datasets) as url:
        loop = looped(url)
    for size, figures in ((small, little), (datasets, large)):
        out(_line(size, figures))
    rate, plain = large.datasets / large.seconds, loop.datasets / loop.seconds
    out(
        f"plain loop (urllib, json, no DCAT): {loop.datasets:,} datasets, {plain:,.0f} a second; "
        f"the harvester with all its DCAT is {rate / plain:.2f} x of that"
    )
    growth = large.peak_pss / little.peak_pss
    whole = all(
        figures.complete and figures.datasets == size
        for size, figures in ((small, little), (datasets, large))
    )
    memory = f"memory at {datasets:,} at most {MOST_GROWTH} x that at {small:,}"
    targets = (
        BenchmarkTarget("every dataset read", "", whole),
        BenchmarkTarget(memory, f"{growth:.2f} x", growth <= MOST_GROWTH),
    )
    return {
        "small": msgspec.to_builtins(little),
        "large": msgspec.to_builtins(large),
        "loop": msgspec.to_builtins(loop),
        "datasets_per_second": rate,
        "ratio": rate / plain,
        "growth": growth,
        **report_targets(targets, out),
    }


def _harvested(datasets: int) -> HarvestFigures:
    with portal(datasets) as url:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.harvesters.portal.harvest", url],
            check=True,
            capture_output=True,
            timeout=_SECONDS,
        )
    return msgspec.json.decode(done.stdout, type=HarvestFigures)


def looped(url: str) -> LoopFigures:
    """Pages of a thousand by offset until one is empty, as a script would ask for them."""
    figures, started = LoopFigures(), time.perf_counter()
    while True:
        where = f"{url}api/3/action/package_search?rows={MOST_ROWS}&start={figures.datasets}&sort=id"
        with urlopen(where, timeout=60) as answer:  # noqa: S310 (our own portal)
            results = json.load(answer)["result"]["results"]
        if not results:
            break
        figures.datasets += len(results)
    figures.seconds = time.perf_counter() - started
    return figures


def _line(size: int, figures: HarvestFigures) -> str:
    rate = figures.datasets / figures.seconds
    return (
        f"{size:>7,} datasets: {rate:,.0f} a second "
        f"({figures.datasets / figures.cpu_seconds:,.0f} in a second of processor time), "
        f"{figures.quads:,} quads, {figures.links:,} links, {figures.requests} requests, "
        f"{figures.seconds:.1f} s, memory at the most {figures.peak_pss / 1e6:.0f} MB (PSS), "
        f"{figures.peak_rss / 1e6:.0f} MB (RSS)"
    )
