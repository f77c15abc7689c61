"""`benchmarks strategy`: each example crawls the web, beside a breadth-first crawl; then the targets."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measuring.targets import BenchmarkTarget, report_targets
from benchmarks.strategy.cost import Cost, measure_cost
from benchmarks.strategy.harvest import StrategyHarvest, harvest, plot
from benchmarks.strategy.server import Served, Visit, serving
from benchmarks.strategy.web import KINDS, SEEDS, TopicWeb
from tamias.model.errors import TamiasError, UsageError

BREADTH_FIRST = "breadth-first"
CONCURRENCY = 8
"""Requests at once: whoever may ask everybody at once need not choose."""
MOST_SECONDS = 1800.0
HALF = 0.5

Out = Callable[[str], None]


def run(
    web: TopicWeb, examples: Path, *, kinds: Sequence[str] = KINDS, cost: bool = True, out: Out = print
) -> dict[str, Any]:
    """Crawls, counts and tells; returns what it printed, as figures. `examples` is a folder of strategies."""
    if not web.is_large_enough:
        raise UsageError(f"{web.hosts} hosts are too few for {web.of_kind} of each kind; take more hosts")
    out(f"{web.hosts} hosts of {web.pages} pages; for each kind {web.relevant(kinds[0])} relevant pages "
        f"on {web.of_kind} hosts; {CONCURRENCY} requests at once")  # fmt: skip
    with (
        tempfile.TemporaryDirectory(prefix="tamias-strategy-", ignore_cleanup_errors=True) as work,
        serving(web) as served,
    ):
        crawls = {BREADTH_FIRST: crawl(served, Path(work) / "plain", None)}
        most = len(crawls[BREADTH_FIRST])
        for kind in kinds:
            crawls[kind] = crawl(served, Path(work) / kind, examples / f"{kind}.sql", most // 2)
    harvests = [
        harvest(web, name, kind, crawls[name], most) for kind in kinds for name in (BREADTH_FIRST, kind)
    ]
    for line in table(harvests):
        out(line)
    targets = [target for kind in kinds for target in _targets(kind, harvests)]
    costs = measure_cost(examples, kinds) if cost else []
    for each in costs:
        out(f"{each.strategy}: {each.milliseconds:.1f} ms for 1,000 new URLs with a link each")
    return {**_figures(web, harvests, costs), **report_targets(targets, out)}


def crawl(served: Served, data: Path, strategy: Path | None, most: int | None = None) -> list[Visit]:
    """The pages that a crawl asked for, in order. A focused one ends after `most` pages."""
    served.visits.clear()
    environment = {
        **os.environ,
        "TAMIAS_SEEDS__PROBE": "false",
        "TAMIAS_FETCH__CONCURRENCY": str(CONCURRENCY),
        "TAMIAS_STRATEGY__LINKS": "true" if strategy else "false",
        "TAMIAS_STRATEGY__SECONDS": "30",  # the machine may be busy, and fetches are counted, not seconds
    }
    if strategy is not None:
        _tamias(["strategy", "apply", str(strategy), "--data", str(data)], environment, (0,))
    seeds = [served.url(host) + "/" for host in range(SEEDS)]
    words = ["--delay", "0", "--no-robots", "--allow-private", "--workers", "1", "--data", str(data)]
    limit = ["--max-urls", str(most)] if most else []
    _tamias(["crawl", *seeds, *words, *limit], environment, (0, 5))
    return list(served.visits)


def _tamias(words: list[str], environment: dict[str, str], codes: tuple[int, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tamias", *words, "-q"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    if done.returncode not in codes:
        raise TamiasError(f"'tamias {words[0]}' ended with {done.returncode}: {done.stderr[-500:].strip()}")


def table(harvests: Sequence[StrategyHarvest]) -> list[str]:
    """The figures in rows, and under those of each kind the curves."""
    lines = [
        f"{'looked for':<12}{'crawl':<14}{'20 %':>8}{'50 %':>8}{'80 %':>8}{'harvest':>9}{'all hosts':>11}"
        f"{'others before':>15}"
    ]
    for each in harvests:
        until = "".join(f"{_count(number):>8}" for number in each.until.values())
        lines.append(
            f"{each.kind:<12}{each.crawl:<14}{until}{each.rate:>9.0%}{_count(each.hosts_until):>11}"
            f"{_count(each.others_before):>15}"
        )
    for kind in dict.fromkeys(each.kind for each in harvests):
        lines += ["", f"{kind}: found by fetches", *plot([each for each in harvests if each.kind == kind])]
    return lines


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _targets(kind: str, harvests: Sequence[StrategyHarvest]) -> list[BenchmarkTarget]:
    by_crawl = {each.crawl: each for each in harvests if each.kind == kind}
    plain, focused = by_crawl[BREADTH_FIRST], by_crawl[kind]
    asked, allowed = focused.until["0.8"], (plain.until["0.8"] or 0) * HALF
    others, usual = focused.others_before, plain.others_before or 0
    return [
        BenchmarkTarget(
            f"{kind}: 80 % of the relevant pages with at most half the fetches",
            f"{_count(asked)} of {_count(plain.until['0.8'])}",
            asked is not None and asked <= allowed,
        ),
        BenchmarkTarget(
            f"{kind}: its hosts first",
            f"{_count(others)} other hosts asked before all of them were, breadth-first {_count(usual)}",
            others is not None and others <= usual * HALF,
        ),
    ]


def _figures(web: TopicWeb, harvests: Sequence[StrategyHarvest], costs: Sequence[Cost]) -> dict[str, Any]:
    return {
        "web": msgspec.to_builtins(web),
        "harvests": [{**msgspec.to_builtins(each), "rate": each.rate} for each in harvests],
        "costs": msgspec.to_builtins(costs),
    }
