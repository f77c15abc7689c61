"""What a run found, told: tables, plots and verdicts, and where the published figures stand beside."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.dataweb.experiment import DataWebExperiment, Results
from benchmarks.dataweb.report.blocks import (
    Block,
    CodeBlock,
    Figure,
    Points,
    TableBlock,
    TextBlock,
    Title,
    markdown,
    page,
)
from benchmarks.dataweb.report.costs import largest, profile
from benchmarks.dataweb.report.growth import scaled
from benchmarks.dataweb.report.prose import AGAINST_PEERS, AT_THE_DOOR, DIFFERENCES, TERMS
from benchmarks.dataweb.report.published import HARDWARE, ROWS
from benchmarks.dataweb.report.verdicts import verdicts
from benchmarks.dataweb.serving.load import ServerSpeed
from benchmarks.dataweb.trial import TrialOutcome
from benchmarks.dataweb.truth import RecallScore
from tamias.cli.console.plots import Curve, bars, plot

HEADING = "The Data Web benchmark"
COLUMNS = (
    "crawler", "micro recall", "macro recall", "precision", "resources", "requests/resource", "s",
    "resources/s", "CPU s", "CPU ms/resource", "resources/CPU-s", "peak MB", "servers, of a core",
)  # fmt: skip
NAMES = {
    "I": "Experiment I: mixed nodes",
    "II": "Experiment II: dereferencing nodes",
    "kinds": "Every kind of node, those that ORCA lacks among them",
    "robots": "Robots: forbidden resources and a delay",
    "recrawl": "Recrawl: nodes that change",
}


def write_report(results: Results, folder: Path) -> None:
    """`report.md` with its figures, and `report.html`."""
    folder.mkdir(parents=True, exist_ok=True)
    blocks = list(report(results))
    (folder / "report.md").write_text(markdown(blocks), encoding="utf-8")
    (folder / "report.html").write_text(page(blocks, HEADING), encoding="utf-8")
    for block in blocks:
        if isinstance(block, Figure):
            (folder / f"{block.name}.svg").write_text(block.svg + "\n", encoding="utf-8")


def report(results: Results) -> Iterator[Block]:
    """The whole report."""
    yield Title(HEADING, 1)
    yield TextBlock(f"Machine: {results.machine}.")
    if results.command:
        yield TextBlock("The command that repeats this, first with `--install-peers` if they are not there:")
        yield CodeBlock(results.command)
    yield TextBlock(TERMS)
    checks = list(verdicts(results))
    if checks:
        yield TableBlock([("target", "measured", "reached"), *checks])
    for experiment in results.experiments:
        yield from experiment_blocks(experiment)
    for scale in results.scale:
        yield from scaled(scale)
    yield Title("In what this differs from ORCA")
    yield Points(DIFFERENCES)


def experiment_blocks(experiment: DataWebExperiment) -> Iterator[Block]:
    """One experiment."""
    yield Title(NAMES[experiment.name])
    wish = experiment.wish
    facts = (
        f"{wish.nodes} nodes, {experiment.resources} resources, {experiment.triples} triples, "
        f"{len(experiment.seeds)} to begin with ({', '.join(experiment.seeds)}); "
        f"seed {wish.seed}, node degree {wish.node_degree}, "
        f"{wish.triples} triples a node."
    )
    yield TextBlock(facts + (f" RDFa: {experiment.rdfa}." if experiment.rdfa else ""))
    yield TableBlock([COLUMNS, *map(row, experiment.outcomes)])
    yield from remarks(experiment)
    yield from kinds_of(experiment)
    if experiment.name == "robots":
        yield TableBlock([("crawler", "forbidden", "asked for", "delay fulfilment: mean", "least", "most"),
                     *map(manners, experiment.outcomes)])  # fmt: skip
    yield from again(experiment)
    yield from curves(experiment)
    if experiment.name == "I" and len(experiment.outcomes) > 1:
        yield TextBlock(AT_THE_DOOR)
    if experiment.name in {"I", "II"}:
        yield from published(experiment.name)
    if experiment.name == "II" and len(experiment.outcomes) > 1:
        yield TextBlock(AGAINST_PEERS)
    for outcome in experiment.outcomes:
        yield from profile(outcome)
        if experiment.name == "II":
            yield from largest(outcome)


def row(outcome: TrialOutcome) -> tuple[str, ...]:
    """A crawler's line."""
    score, measured = outcome.score, outcome.measured
    precision = score.precision if score else None
    return (
        outcome.name,
        f"{score.recall:.4f}" if score else "keeps none",
        f"{score.macro_recall:.4f}" if score else "",
        "" if precision is None else f"{precision:.4f}",
        str(outcome.account.resources),
        f"{outcome.account.requests_per_resource:.2f}",
        f"{measured.wall_seconds:.1f}",
        f"{outcome.resources_per_second:.0f}",
        f"{measured.cpu_seconds:.1f}",
        f"{1000 * measured.cpu_seconds / max(1, outcome.account.resources):.2f}",
        f"{outcome.resources_per_cpu_second:.0f}",
        f"{measured.peak_bytes / 1e6:.0f}",
        f"{outcome.server_share:.0%}",
    )


def remarks(experiment: DataWebExperiment) -> Iterator[Block]:
    """Terms and faults of each crawler, those left out, and the servers alone."""
    lines = [f"{each.name}: {each.version}; {each.terms}." for each in experiment.outcomes]
    lines += [f"**{each.name}: {each.fault}.**" for each in experiment.outcomes if each.fault]
    lines += [f"{each.name} is left out: {each.reason}." for each in experiment.skipped]
    if experiment.load:
        lines.append(alone(experiment.load, experiment.outcomes))
    yield from map(TextBlock, lines)


def alone(load: ServerSpeed, outcomes: Sequence[TrialOutcome]) -> str:
    """The servers without a crawler, beside what the fastest crawler asked of them."""
    said = f"The servers alone answer {load.per_second:.0f} requests/s ({load.tool})"
    paces = [
        each.account.requests / each.measured.wall_seconds for each in outcomes if each.measured.wall_seconds
    ]
    if not paces or not max(paces):
        return f"{said}."
    times = load.per_second / max(paces)
    return f"{said}, {times:.0f} times what the fastest crawler here asked for: they are not the bottleneck."


def kinds_of(experiment: DataWebExperiment) -> Iterator[Block]:
    """Recall for each kind of node."""
    scored = [(each.name, each.score) for each in experiment.outcomes if each.score]
    kinds = sorted(experiment.wish.weights)
    if len(kinds) < 2 or not scored:
        return
    rows = [("recall of", *(name for name, _ in scored))]
    for kind in kinds:
        expected = scored[0][1].by_kind.get(kind, (0, 0))[1]
        rows.append((f"{kind} ({expected})", *(f"{recall_of(score, kind):.4f}" for _, score in scored)))
    yield TableBlock(rows)
    shares = [
        Curve(name, [(turn, recall_of(score, kind)) for turn, kind in enumerate(kinds)])
        for name, score in scored
    ]
    yield Figure(f"{experiment.name}-recall", "Recall for each kind of node", bars(kinds, shares, "recall"))


def recall_of(score: RecallScore, kind: str) -> float:
    """The share that was found of a kind."""
    had, expected = score.by_kind.get(kind, (0, 0))
    return had / max(1, expected)


def manners(outcome: TrialOutcome) -> tuple[str, ...]:
    """How robots.txt was kept."""
    kept = outcome.account.manners
    gaps = [f"{value:.3f}" for value in kept.fulfilment] if kept.fulfilment else ["", "", ""]
    return (outcome.name, str(kept.disallowed), str(kept.disallowed_requested), *gaps)


def again(experiment: DataWebExperiment) -> Iterator[Block]:
    """The second crawl."""
    for outcome in experiment.again:
        yield TextBlock(
            f"Then {experiment.wish.changing:.0%} of the resources changed, and all were visited again:"
        )
        yield TableBlock([COLUMNS, row(outcome)])
        yield TextBlock(
            f"{outcome.account.not_modified} of {outcome.account.requests} requests were answered with 304; "
            "recall is over what the web says after the change."
        )


def curves(experiment: DataWebExperiment) -> Iterator[Block]:
    """Triples, processor time and memory over time."""
    triples = [Curve(each.name, each.account.curve) for each in experiment.outcomes]
    yield Figure(
        f"{experiment.name}-triples", "Triples handed out over time", plot(triples, "seconds", "triples")
    )
    used = [Curve(each.name, cpu_of(each)) for each in experiment.outcomes]
    yield Figure(f"{experiment.name}-cpu", "Processor time used, whole tree", plot(used, "seconds", "CPU s"))
    memory = [Curve(each.name, memory_of(each)) for each in experiment.outcomes]
    yield Figure(f"{experiment.name}-memory", "Memory over time, whole tree", plot(memory, "seconds", "MB"))


def cpu_of(outcome: TrialOutcome) -> list[tuple[float, float]]:
    """Seconds and processor seconds."""
    return [(glance.seconds, sum(glance.cpu.values())) for glance in outcome.measured.glances]


def memory_of(outcome: TrialOutcome) -> list[tuple[float, float]]:
    """Seconds and megabytes."""
    return [(glance.seconds, glance.total / 1e6) for glance in outcome.measured.glances]


def published(name: str) -> Iterator[Block]:
    """The rows of others."""
    yield TextBlock(f"Published, **on other hardware**: {HARDWARE}")
    if name == "I":
        rows = [(each.name, f"{each.first_recall:.2f}", str(each.first_seconds)) for each in ROWS]
        yield TableBlock([("crawler", "micro recall", "s"), *rows])
        return
    yield TableBlock([
        ("crawler", "micro recall", "s", "resources/s", "CPU s", "memory GB"),
        *((each.name, f"{each.second_recall:.2f}", str(each.second_seconds), rate(each.resources_per_second),
           f"{each.second_cpu:.1f}", f"{each.second_memory:.1f}") for each in ROWS),
    ])  # fmt: skip


def rate(number: float | None) -> str:
    """A rate, if there is one."""
    return "" if number is None else f"{number:.1f}"
