"""`python -m benchmarks crawl`: the same site crawled by Tamias and by its peers, one after the other."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.crawl.peers import PEERS, Contender
from benchmarks.crawl.report import CrawlComparison, CrawlRow, lines
from benchmarks.crawl.site import MEAN_BYTES, SiteSize, StaticSite, build_site
from benchmarks.crawl.web import find_nginx, read_visits, serving
from benchmarks.measuring.budget import PROFILE_VARIABLE, budget, read_profiles
from benchmarks.measuring.measure import last_line, measure
from benchmarks.measuring.peers import Skipped, shown_command
from benchmarks.measuring.ports import free_ports
from tamias import __version__
from tamias.model.errors import DiskFull, UsageError

COPIES = 5
MOST_SECONDS = 1_200
"""A tool that needs longer is stopped, and what it did until then is what counts."""


def run(
    pages: int = 20_000,
    hosts: int = 500,
    links: int = 40,
    workers: int | None = None,
    *,
    peers: Sequence[str] = tuple(PEERS),
    data: Path | None = None,
    out: Callable[[str], object] = print,
    tamias_command: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Builds the site, lets each tool crawl it, prints the report and gives its figures.

    With `data` the site is kept there for the next run. `tamias_command` is what stands before the options.
    """
    unknown = set(peers) - set(PEERS)
    if unknown:
        raise UsageError(f"no peer is called {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    size = SiteSize(pages, hosts, links)
    find_nginx()
    if data is not None:
        data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="tamias-bench-", dir=data, ignore_cleanup_errors=True
    ) as temporary:
        work = Path(temporary)
        need_room(size, work)
        site = build_site(size, (data or work) / size.name, *free_ports(1))
        describe(site, out)
        command = list(tamias_command or (sys.executable, "-m", "tamias", "crawl"))
        found = compare(site, work, tamias(site, work, command, workers), peers)
    for line in lines(found):
        out(line)
    return figures(found)


def need_room(size: SiteSize, folder: Path) -> None:
    """The site is written once, and once more by every tool that keeps what it fetched."""
    needed = COPIES * size.pages * MEAN_BYTES
    if shutil.disk_usage(folder).free < needed:
        raise DiskFull(f"the benchmark needs {needed / 1e9:.1f} GB at {folder.parent}; choose another --data")


def describe(site: StaticSite, out: Callable[[str], object]) -> None:
    """What is crawled, and on what."""
    size = site.size
    out(
        f"site: {size.pages} pages, {size.hosts} addresses, {size.links} links a page, "
        f"mean {site.bytes / size.pages / 1000:.1f} KB, seed {site.seed}"
    )
    out(f"machine: {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; nginx beside, not counted")


def tamias(site: StaticSite, work: Path, command: list[str], workers: int | None) -> Contender:
    """Tamias as anybody would run it, but without delay and allowed on loopback addresses."""
    folder = work / "tamias"
    folder.mkdir()
    (folder / "seeds.txt").write_text(site.seed + "\n", encoding="utf-8")
    options = ["--seeds", str(folder / "seeds.txt"), "--data", str(folder / "data")]
    options += ["--delay", "0", "--allow-private", "-q"]
    return Contender(
        name="tamias",
        version=f"Tamias {__version__}",
        command=[*command, *options, *(["--workers", str(workers)] if workers else [])],
        terms="robots on; links, quads and metadata kept, database included",
        environment={PROFILE_VARIABLE: str(folder / "profile.jsonl")},
    )


def compare(site: StaticSite, work: Path, own: Contender, peers: Sequence[str]) -> CrawlComparison:
    """Tamias first, then the peers, each with a server and a log of its own."""
    rows, skipped = [crawl(site, work / "tamias", own)], []
    for name in peers:
        folder = work / name
        folder.mkdir()
        match PEERS[name](site.seed, folder):
            case Skipped() as absent:
                skipped.append(absent)
            case Contender() as contender:
                rows.append(crawl(site, folder, contender))
    return CrawlComparison(site.size.pages, rows, skipped, own_budget(rows[0], own))


def crawl(site: StaticSite, folder: Path, contender: Contender) -> CrawlRow:
    """One tool's crawl, counted by the server."""
    with serving(site, folder / "nginx") as log:
        measured = measure(contender.command, folder, seconds=MOST_SECONDS, environment=contender.environment)
    fault = ""
    if measured.exit_code != 0 and not measured.stopped:
        fault = f"ENDED WITH CODE {measured.exit_code}: {last_line(folder / 'stderr')}"
    elif measured.left_behind:
        fault = f"LEFT RUNNING: {', '.join(measured.left_behind)}"
    return CrawlRow(
        tool=contender.name,
        version=contender.version,
        terms=contender.terms,
        visits=read_visits(log),
        measured=measured,
        command=shown_command(contender.command),
        fault=fault,
    )


def own_budget(row: CrawlRow, own: Contender) -> dict[str, float]:
    """What a page cost Tamias, by step."""
    profiles = read_profiles(Path(own.environment[PROFILE_VARIABLE]))
    return budget(profiles, row.measured.cpu_seconds, row.measured.cpu_by_name, row.visits.pages)


def figures(found: CrawlComparison) -> dict[str, Any]:
    """The same as the report, for programs."""
    measured: dict[str, Any] = msgspec.to_builtins(found)
    for row, plain in zip(found.rows, measured["rows"], strict=True):
        plain["pages_per_cpu_second"] = row.pages_per_cpu_second
        plain["pages_per_second"] = row.pages_per_second
    measured["ratio_to_scrapy"] = found.ratio("tamias", "scrapy")
    measured["ratio_to_wget"] = found.ratio("tamias", "wget -r")
    return measured
