"""What one comparison found, as values and as the table a reader sees."""

from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.crawl.web import Visits
from benchmarks.measuring.peers import Skipped
from benchmarks.measuring.proc import Glance
from benchmarks.measuring.reaper import MeasuredRun
from tamias.crawl.worker.fork_server import DATABASE_WORKER

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

    @property
    def allowed_milliseconds(self) -> float:
        """What a page may cost Tamias on this machine: the target's part of what it cost Scrapy."""
        costs = [row.milliseconds_per_page for row in self.rows if row.tool == "scrapy" and row.visits.pages]
        return costs[0] / TARGET_RATIO if costs else USUAL_BUDGET


def lines(found: CrawlComparison) -> Iterator[str]:
    """The report."""
    yield from table([COLUMNS, *(cells(found, row) for row in found.rows)])
    yield from remarks(found)
    yield from budget_lines(found)
    yield from memory_lines(found)
    yield from verdicts(found)


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


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as they need to be: the first to the left, figures to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for first, *figures in rows:
        right = (figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *right])


def remarks(found: CrawlComparison) -> Iterator[str]:
    """Terms, faults and absences: what a reader must know before believing the table."""
    for row in found.rows:
        visits = row.visits
        yield (
            f"{row.tool}: {row.version}; {row.terms}; {visits.robots} robots.txt (404), "
            f"{visits.repeats} repeats, {visits.other} other requests"
        )
        if row.measured.stopped:
            yield f"{row.tool}: stopped after {row.measured.wall_seconds:.0f} s; figures of the part done"
        elif visits.pages < found.pages:
            yield f"{row.tool}: FETCHED ONLY {visits.pages} of {found.pages} pages"
        if row.fault:
            yield f"{row.tool}: {row.fault}"
    for peer in found.skipped:
        yield f"{peer.name}: skipped: {peer.reason}"


def budget_lines(found: CrawlComparison) -> Iterator[str]:
    """What a page costs by step."""
    used = sum(found.budget.values())
    yield f"budget of tamias, CPU ms/page: {used:.2f} used of {found.allowed_milliseconds:.2f}"
    yield from table([(f"  {step}", f"{cost:.3f}") for step, cost in found.budget.items()])


def memory_lines(found: CrawlComparison) -> Iterator[str]:
    """Whether the workers of Tamias grew while the crawl went on."""
    for row in found.rows:
        peaks = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in row.measured.peak_by_name.items())
        yield f"{row.tool}: peak PSS by program, MB: {peaks}"
        if row.tool == "tamias":
            sizes = ", ".join(f"{size / 1e6:.0f}" for size in quarters(row.measured.glances))
            yield f"tamias: workers' PSS at the end of each quarter of the crawl, MB: {sizes}"


def quarters(glances: Sequence[Glance]) -> list[int]:
    """The memory of the workers a quarter, a half, three quarters through, and at the end."""
    working = [seen.by_name[DATABASE_WORKER] for seen in glances if DATABASE_WORKER in seen.by_name]
    return [working[max(0, len(working) * part // 4 - 1)] for part in (1, 2, 3, 4)] if working else []


def verdicts(found: CrawlComparison) -> Iterator[str]:
    """The targets, met or not."""
    ratio = found.ratio("tamias", "scrapy")
    if ratio is None:
        yield f"target: at least {TARGET_RATIO:.0f} x tuned Scrapy in pages per CPU-second: NOT MEASURED"
    else:
        met = f"{'met' if ratio >= TARGET_RATIO else 'NOT MET'} ({ratio:.1f} x)"
        yield f"target: at least {TARGET_RATIO:.0f} x tuned Scrapy in pages per CPU-second: {met}"
    beside = found.ratio("tamias", "wget -r")
    yield "ratio to wget -r: " + ("not measured" if beside is None else f"{beside:.2f} x")
