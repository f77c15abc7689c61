"""What was measured, beside what was aimed at: as values and as the table a reader sees."""

from collections.abc import Iterator

import msgspec

from benchmarks.measuring.targets import BenchmarkTarget, at_least
from benchmarks.serve.load import RouteLoad
from benchmarks.serve.pages import PageTimes
from benchmarks.serve.silence import Silence

LEAST_RATIO = 0.3
MOST_P99_MS = 50.0
MOST_PAGE_MS = 200.0
MOST_PAGE_BYTES = 100_000
_ROW = "{:<34} {:>10} {:>7} {:>9} {:>9} {:>8} {:>9} {:>9} {:>7}"
_PAGE_ROW = "{:<34} {:>7} {:>9} {:>9} {:>9}"
_HEAD = ("", "requests/s", "x bare", "p50 ms", "p99 ms", "CPU ms", "x by CPU", "all CPU", "bytes")


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of request beside the bare handler."""

    load: RouteLoad
    json: bool
    page: bool = False
    ratio: float
    """Of its requests a second to those of the bare handler."""
    cpu_ratio: float
    """Of the processor time that the bare handler's process takes for a request to that of the service's."""


class ServeReport(msgspec.Struct, frozen=True, kw_only=True):
    """All of one run."""

    datasets: int
    versions: int
    catalogue: int
    """Datasets that the SPARQL store knows."""
    filled_seconds: float
    bare: RouteLoad | None
    routes: list[Route]
    pages: list[PageTimes]
    silence: Silence
    skipped: str = ""
    """Why nothing was measured with wrk."""

    @property
    def targets(self) -> list[BenchmarkTarget]:
        """All of them."""
        return [*self._targets_of_routes(), *self._targets_of_pages(), self._target_of_silence()]

    def _targets_of_routes(self) -> Iterator[BenchmarkTarget]:
        for route in self.routes:
            name = route.load.name
            if route.json:
                yield at_least(LEAST_RATIO, f"{name} beside bare", route.ratio)
            most, p99 = MOST_PAGE_MS if route.page else MOST_P99_MS, route.load.p99_ms
            quick = p99 < most and not route.load.errors
            yield BenchmarkTarget(f"{name}: p99 under {most:g} ms, no error", f"{p99:.1f} ms", quick)

    def _targets_of_pages(self) -> Iterator[BenchmarkTarget]:
        for page in self.pages:
            text = f"page {page.name}: 200, under {MOST_PAGE_MS:g} ms and {MOST_PAGE_BYTES // 1000} kB"
            good = page.status == 200 and page.ms < MOST_PAGE_MS and page.bytes < MOST_PAGE_BYTES
            yield BenchmarkTarget(text, f"{page.ms:.0f} ms, {page.bytes / 1000:.0f} kB", good)

    def _target_of_silence(self) -> BenchmarkTarget:
        text = f"{self.silence.connections:,} silent connections dropped, others answered"
        return BenchmarkTarget(text, f"{self.silence.dropped:,} dropped", self.silence.ok)


def lines(report: ServeReport) -> Iterator[str]:
    """The tables."""
    yield _ROW.format(*_HEAD)
    if report.bare is not None:
        yield _row(report.bare, "", "")
    for route in report.routes:
        yield _row(route.load, f"{route.ratio:.2f}", f"{route.cpu_ratio:.2f}")
    if report.skipped:
        yield report.skipped
    yield ""
    yield _PAGE_ROW.format("page", "status", "ms", "first ms", "bytes")
    for page in report.pages:
        yield _PAGE_ROW.format(
            page.name, page.status, f"{page.ms:.1f}", f"{page.first_ms:.1f}", f"{page.bytes:,}"
        )
    yield ""
    yield _silent(report.silence)


def _row(load: RouteLoad, ratio: str, cpu_ratio: str) -> str:
    return _ROW.format(
        load.name,
        f"{load.per_second:,.0f}",
        ratio,
        f"{load.p50_ms:.1f}",
        f"{load.p99_ms:.1f}",
        f"{load.cpu_ms:.3f}",
        cpu_ratio,
        f"{load.all_cpu_ms:.3f}",
        f"{load.bytes:,}",
    )


def _silent(found: Silence) -> str:
    return (
        f"{found.connections:,} connections that send nothing: {found.dropped:,} dropped within "
        f"{found.dropped_after:.1f} s; {found.answered} of {found.asked} honest requests answered meanwhile, "
        f"the slowest in {found.slowest_ms:.0f} ms"
    )
