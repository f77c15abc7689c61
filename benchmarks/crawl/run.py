"""`python -m benchmarks crawl`: one site, each crawler in its turn, and the table a reader sees."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.crawl.peers import PEERS, Contender
from benchmarks.crawl.site import MEAN_BYTES, SiteSize, StaticSite, build_site
from benchmarks.crawl.web import Visits, find_nginx, read_visits, serving
from benchmarks.measuring.children import free_ports
from benchmarks.measuring.measure import PROFILE_VARIABLE, budget, fault_of, measure
from benchmarks.measuring.reaper import MeasuredRun
from benchmarks.measuring.targets import Skipped, at_least, shown_command, table
from tamias import __version__
from tamias.model.errors import DiskFull, UsageError

TARGET_RATIO = 6.0
USUAL_BUDGET = 2.0
"""Milliseconds a page may cost where Scrapy's costs 12; used when Scrapy was not run beside."""
COLUMNS = ("tool", "pages", "pages/s wall", "CPU ms/page", "pages/CPU-s", "peak PSS MB", "x Scrapy")


class CrawlRow(msgspec.Struct, frozen=True):
    """One crawler's crawl of the site."""

    tool: str
    version: str
    terms: str
    visits: Visits
    measured: MeasuredRun
    command: str
    fault: str = ""
    """Why this crawl is no fair measure: it failed, or left something running; empty if nothing is wrong."""

    @property
    def pages_per_cpu_second(self) -> float:
        return self.visits.pages / self.measured.cpu_seconds if self.measured.cpu_seconds else 0.0

    @property
    def pages_per_second(self) -> float:
        return self.visits.pages / self.measured.wall_seconds if self.measured.wall_seconds else 0.0

    @property
    def milliseconds_per_page(self) -> float:
        return 1000 * self.measured.cpu_seconds / self.visits.pages if self.visits.pages else 0.0


class CrawlComparison(msgspec.Struct, frozen=True):
    """All of one run."""

    pages: int
    rows: list[CrawlRow]
    skipped: list[Skipped]
    budget: dict[str, float]

    def ratio(self, tool: str, peer: str) -> float | None:
        """How many times the pages of `peer` one CPU-second gives `tool`; None if either did not run."""
        by_name = {row.tool: row.pages_per_cpu_second for row in self.rows}
        return by_name[tool] / by_name[peer] if by_name.get(peer) and tool in by_name else None


def lines(found: CrawlComparison) -> Iterator[str]:
    """The report."""
    yield from table([COLUMNS, *(cells(found, row) for row in found.rows)])
    yield from remarks(found)
    costs = [row.milliseconds_per_page for row in found.rows if row.tool == "scrapy" and row.visits.pages]
    allowed = costs[0] / TARGET_RATIO if costs else USUAL_BUDGET
    yield f"budget of tamias, CPU ms/page: {sum(found.budget.values()):.2f} used of {allowed:.2f}"
    yield from table([(f"  {step}", f"{cost:.3f}") for step, cost in found.budget.items()])
    for row in found.rows:
        peaks = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in row.measured.peak_by_name.items())
        yield f"{row.tool}: peak PSS by program, MB: {peaks}"
    yield str(at_least(TARGET_RATIO, "pages per CPU-second to tuned Scrapy", found.ratio("tamias", "scrapy")))
    beside = found.ratio("tamias", "wget -r")
    yield "ratio to wget -r: " + ("not measured" if beside is None else f"{beside:.2f} x")


def cells(found: CrawlComparison, row: CrawlRow) -> tuple[str, ...]:
    """A line of the table."""
    ratio = found.ratio(row.tool, "scrapy")
    return (
        row.tool,
        str(row.visits.pages),
        f"{row.pages_per_second:.0f}",
        f"{row.milliseconds_per_page:.2f}",
        f"{row.pages_per_cpu_second:.0f}",
        f"{row.measured.peak_bytes / 1e6:.0f}",
        "-" if ratio is None else f"{ratio:.1f}",
    )


def remarks(found: CrawlComparison) -> Iterator[str]:
    """Terms, faults and absences: what a reader must know before believing the table."""
    for row in found.rows:
        visits = row.visits
        yield (
            f"{row.tool}: {row.version}; {row.terms}; {visits.robots} robots.txt (404), "
            f"{visits.repeats} repeats, {visits.other} other requests"
        )
        if row.fault:
            yield f"{row.tool}: {row.fault}"
        if visits.pages < found.pages:
            yield f"{row.tool}: FETCHED ONLY {visits.pages} of {found.pages} pages"
    for peer in found.skipped:
        yield f"{peer.name}: skipped: {peer.reason}"


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
        # The site is written once, and once more by every tool that keeps what it fetched.
        needed = COPIES * size.pages * MEAN_BYTES
        if shutil.disk_usage(work).free < needed:
            raise DiskFull(
                f"the benchmark needs {needed / 1e9:.1f} GB at {work.parent}; choose another --data"
            )
        site = build_site(size, (data or work) / size.name, *free_ports(1))
        out(
            f"site: {size.pages} pages, {size.hosts} addresses, {size.links} links a page, "
            f"mean {site.bytes / size.pages / 1000:.1f} KB, seed {site.seed}"
        )
        out(f"machine: {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; nginx beside, not counted")
        command = list(tamias_command or (sys.executable, "-m", "tamias", "crawl"))
        found = compare(site, work, tamias(site, work, command, workers), peers)
    for line in lines(found):
        out(line)
    return figures(found)


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
    steps = budget(Path(own.environment[PROFILE_VARIABLE]), rows[0].measured, rows[0].visits.pages)
    return CrawlComparison(site.size.pages, rows, skipped, steps)


def crawl(site: StaticSite, folder: Path, contender: Contender) -> CrawlRow:
    """One tool's crawl, counted by the server."""
    with serving(site, folder / "nginx") as log:
        measured = measure(contender.command, folder, seconds=MOST_SECONDS, environment=contender.environment)
    return CrawlRow(
        tool=contender.name,
        version=contender.version,
        terms=contender.terms,
        visits=read_visits(log),
        measured=measured,
        command=shown_command(contender.command),
        fault=fault_of(measured, folder),
    )


def figures(found: CrawlComparison) -> dict[str, Any]:
    """The same as the report, for programs."""
    measured: dict[str, Any] = msgspec.to_builtins(found)
    for row, plain in zip(found.rows, measured["rows"], strict=True):
        plain["pages_per_cpu_second"] = row.pages_per_cpu_second
        plain["pages_per_second"] = row.pages_per_second
    measured["ratio_to_scrapy"] = found.ratio("tamias", "scrapy")
    measured["ratio_to_wget"] = found.ratio("tamias", "wget -r")
    return measured
