"""`python -m benchmarks dataweb`: the experiments one after the other, and their report."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.dataweb.crawlers.rivals import chosen
from benchmarks.dataweb.experiment import MOST_SECONDS, Results, machine, run_experiment, wish_for
from benchmarks.dataweb.report.report import write_report
from benchmarks.dataweb.report.verdicts import verdicts
from benchmarks.dataweb.scale import Scale, ScaleOptions, crawl_endless
from benchmarks.dataweb.trial import Out, TrialOutcome
from benchmarks.dataweb.web.context import Ports
from benchmarks.dataweb.web.generated import Endless
from benchmarks.dataweb.web.w3c import check_suite
from benchmarks.measuring.ports import free_ports

EXPERIMENTS = ("I", "II", "kinds", "robots", "recrawl", "scale")
SHORT = ("I", "II", "kinds", "robots", "recrawl")
ALONE = frozenset({"kinds", "recrawl", "scale"})
"""Where peers would show nothing: they know few of the kinds, and none comes back."""


class DataWebSize(msgspec.Struct, frozen=True):
    """What is not to be as in the published runs."""

    nodes: int | None = None
    triples: int | None = None
    seed: int | None = None
    pages: int = 1_000_000
    hosts: int = 10_000
    seconds: float = MOST_SECONDS
    max_time: float = MOST_SECONDS
    """Of each crawl of the scale run."""
    known: int = 0
    """URLs in the frontier before the second crawl of the scale run; 0 is no second crawl."""


def run(
    experiments: Sequence[str] = SHORT,
    size: DataWebSize = DataWebSize(),  # noqa: B008 (frozen)
    *,
    peers: tuple[str, ...] | None = None,
    suite: Path | None = None,
    report: Path | None = None,
    profile: bool = False,
    data: Path | None = None,
    out: Out = print,
    command: str = "",
) -> dict[str, Any]:
    """Runs the experiments and tells what came out. `peers` None is all known, an empty tuple none."""
    rivals = [] if peers == () else chosen(peers or ())
    pages = check_suite(suite) if suite else None
    results = Results(machine(), [], [], command)
    out(results.machine)
    with tempfile.TemporaryDirectory(prefix="tamias-orca-", dir=data, ignore_cleanup_errors=True) as work:
        for name in experiments:
            folder = Path(work) / name
            if name == "scale":
                results.scale.append(scale(size, folder, out))
                continue
            wish = wish_for(name, size.nodes, size.seed, size.triples)
            beside = [] if name in ALONE else rivals
            results.experiments.append(
                run_experiment(
                    name, wish, beside, folder, suite=pages, profile=profile, seconds=size.seconds, out=out
                )
            )
    if report:
        write_report(results, report)
        out(f"report: {report / 'report.md'} and {report / 'report.html'}")
    return figures(results, out)


def scale(size: DataWebSize, folder: Path, out: Out) -> Scale:
    """The long crawl."""
    web = Endless(size.pages, size.hosts, Ports(*free_ports(2)))
    found = crawl_endless(web, folder, ScaleOptions(size.max_time, size.known))
    for leg in filter(None, (found.first, found.second)):
        seconds, memory = leg.measured.wall_seconds, leg.measured.peak_bytes / 1e6
        out(f"scale, {leg.known} URLs known: {leg.fetched} pages in {seconds:.0f} s, last tenth "
            f"{leg.flatness:.2f} of the second, {memory:.0f} MB at most")  # fmt: skip
    return found


def figures(results: Results, out: Out) -> dict[str, Any]:
    """Everything for programs; the verdicts are printed too."""
    checks = list(verdicts(results))
    for target, measured, reached in checks:
        out(f"{reached.strip('*'):>4}  {target}: {measured}")
    plain: dict[str, Any] = msgspec.to_builtins(results)
    for shown in plain["scale"]:
        for leg in filter(None, (shown["first"], shown["second"])):
            leg["measured"].pop("glances")
    for experiment, shown in zip(results.experiments, plain["experiments"], strict=True):
        shown["outcomes"] = list(map(shortened, experiment.outcomes))
        shown["again"] = list(map(shortened, experiment.again))
    plain["verdicts"] = [{"target": a, "measured": b, "reached": c == "yes"} for a, b, c in checks]
    plain["ok"] = True
    return plain


def shortened(outcome: TrialOutcome) -> dict[str, Any]:
    """An outcome without its curves."""
    plain: dict[str, Any] = msgspec.to_builtins(outcome)
    plain["measured"].pop("glances")
    plain["account"].pop("curve")
    if outcome.score:
        plain["recall"], plain["precision"] = outcome.score.recall, outcome.score.precision
    plain["resources_per_second"] = outcome.resources_per_second
    plain["resources_per_cpu_second"] = outcome.resources_per_cpu_second
    return plain
