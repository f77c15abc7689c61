"""`tamias coverage`: how much of a list of URLs the crawl has reached, by depth."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json, session_at
from tamias.content.svg import element
from tamias.model.errors import UsageError

if TYPE_CHECKING:
    from tamias.features.coverage.measure import CoverageReport, Step

_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 12, 34
_COLOURS = ("#1f5fa8", "#c2541c", "#3c8d40", "#7a4ba0", "#8a6d1a", "#555555")
_MARKS = 5


@click.command()
@click.argument("listed", metavar="LIST", type=click.Path(path_type=Path))
@click.option(
    "--top", type=click.IntRange(1), default=100, show_default=True, help="How many URLs count as the top."
)
@click.option("--known", is_flag=True, help="Count all known URLs, not only those that were fetched.")
@click.option("--crawl", "crawl_name", help="Only this crawl. [all]")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Also write the tables as CSV.")
@click.option("--plot", "plot_file", type=click.Path(path_type=Path), help="Also draw the shares as SVG.")
@common
def command(
    place: CommonOptions,
    listed: Path,
    top: int,
    known: bool,
    crawl_name: str | None,
    csv_file: Path | None,
    plot_file: Path | None,
) -> None:
    """Shows how much of a list was crawled, by depth: by URL, by domain, and by how often each was seen.

    The list has one URL a line, with a tab and a number if it counts more than once, or is CSV with a
    url column and optionally a count column; gzip works too.

    Example: tamias coverage tweeted.csv --plot coverage.svg
    """
    from tamias.features.coverage.measure import measure

    settings = place.settings().settings
    with session_at(place) as session:
        report = measure(session, settings, listed, top=top, known=known, crawl=crawl_name)
    if csv_file is not None:
        _to_file(csv_file, lambda file: _write_csv(report, file))
    if plot_file is not None:
        _to_file(plot_file, lambda file: _draw(report, file))
    if report.wrong:
        click.echo(f"tamias: {report.wrong:,} lines of {listed} are not URLs", err=True)
    if place.json:
        say_json(report)
    else:
        _tell(report)


def _tell(report: "CoverageReport") -> None:
    say(
        f"{report.urls:,} URLs of {report.domains:,} domains; (a) all, (b) the top {report.top}, (c) weighted"
    )
    _table("URLs", report.by_url)
    _table("domains", report.by_domain)
    if len(report.by_frequency) > 1:
        say(f"\n{'seen':>8}  {'URLs':>12}  {'covered':>10}  share")
        for each in report.by_frequency:
            say(f"{each.least:>7g}+  {each.listed:>12,}  {each.covered:>10,}  {each.share:.2%}")


def _table(what: str, steps: "tuple[Step, ...]") -> None:
    say(f"\ndepth  {'crawled ' + what:>16}  {'covered':>10}  {'(a)':>8}  {'(b)':>8}  {'(c)':>8}")
    for step in steps:
        shares = f"{step.share:8.2%}  {step.top_share:8.2%}  {step.weighted_share:8.2%}"
        say(f"{step.depth:>5}  {step.crawled:>16,}  {step.covered:>10,}  {shares}")


def _write_csv(report: "CoverageReport", file: TextIO) -> None:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(["by", "depth", "crawled", "covered", "share", "top_share", "weighted_share"])
    for by, steps in (("url", report.by_url), ("domain", report.by_domain)):
        for step in steps:
            shares = (f"{part:.6f}" for part in (step.share, step.top_share, step.weighted_share))
            out.writerow([by, step.depth, step.crawled, step.covered, *shares])


def _draw(report: "CoverageReport", file: TextIO) -> None:
    curves = {}
    for name, steps in (("URLs", report.by_url), ("domains", report.by_domain)):
        curves[name] = [(step.depth, 100 * step.share) for step in steps]
        curves[f"{name}, top {report.top}"] = [(step.depth, 100 * step.top_share) for step in steps]
        curves[f"{name}, weighted"] = [(step.depth, 100 * step.weighted_share) for step in steps]
    file.write(_plot(curves, "depth", "% covered"))


def _plot(curves: Mapping[str, Sequence[tuple[float, float]]], across: str, up: str) -> str:
    """Draw curves over one another, with their names at the side, on white."""
    points = [point for curve in curves.values() for point in curve]
    furthest, highest = (max((point[axis] for point in points), default=0) or 1.0 for axis in (0, 1))
    parts = [
        element("rect", width=_WIDTH, height=_HEIGHT, fill="#fff"),
        *_axes(furthest, highest, across, up),
    ]
    for turn, (name, curve) in enumerate(curves.items()):
        colour = _COLOURS[turn % len(_COLOURS)]
        places = " ".join(f"{_x(x, furthest):.1f},{_y(y, highest):.1f}" for x, y in curve)
        parts += [
            element("polyline", fill="none", stroke=colour, stroke_width=1.5, points=places),
            element("text", name, x=_WIDTH - _RIGHT + 10, y=_TOP + 14 + 16 * turn, fill=colour),
        ]
    size = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "width": _WIDTH, "height": _HEIGHT}
    font = {"font_family": "sans-serif", "font_size": 11}
    return element("svg", *parts, xmlns="http://www.w3.org/2000/svg", **size, **font, role="img")


def _axes(furthest: float, highest: float, across: str, up: str) -> Iterator[str]:
    """The two axes, their names, and five marks on each."""
    yield element(
        "path", d=f"M{_LEFT} {_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - _RIGHT}", fill="none", stroke="#888"
    )
    yield element("text", up, x=_LEFT + 6, y=_TOP + 8, fill="#555")
    yield element("text", across, x=(_LEFT + _WIDTH - _RIGHT) // 2, y=_HEIGHT - 4, text_anchor="middle")
    for turn in range(_MARKS):
        x, y = (most * turn / (_MARKS - 1) for most in (furthest, highest))
        below = {"x": f"{_x(x, furthest):.0f}", "y": _HEIGHT - _BOTTOM + 14}
        yield element("text", f"{x:.3g}", **below, text_anchor="middle")
        yield element("text", f"{y:.3g}", x=_LEFT - 6, y=f"{_y(y, highest) + 4:.0f}", text_anchor="end")


def _x(value: float, furthest: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / furthest


def _y(value: float, highest: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / highest


def _to_file(path: Path, write: Callable[[TextIO], None]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            write(file)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
