"""What a run found, told: tables, plots and verdicts, and where the published figures stand beside."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tamias.bench.orca.blocks import Block, Figure, Table, Text, Title, markdown, page
from tamias.bench.orca.experiment import Experiment, Results
from tamias.bench.orca.plots import Line, plot
from tamias.bench.orca.published import HARDWARE, ROWS
from tamias.bench.orca.scale import Scale
from tamias.bench.orca.trial import Outcome
from tamias.bench.orca.verdicts import verdicts

HEADING = "The Data Web benchmark"
TERMS = (
    "The web is drawn as ORCA draws its own (node graph, RDF graphs, links and kinds of node), fixed by "
    "the seed, and served on loopback addresses by processes on the same machine. Every crawler gets the "
    "same seeds and may go only to addresses of the web. Recall is over single triples, blank nodes and "
    "times equal to any; triples over time are those that the servers handed out, so that all crawlers "
    "are measured alike; CPU and memory (proportional set size) are of the whole process tree, database "
    "included. Tamias runs with `--delay 0 --allow-private`, robots.txt on, and "
    "`TAMIAS_SEEDS__PROBE=false`: no look at usual places, which the web has not and no peer looks at. A "
    "peer is stopped when it has had eight times what Tamias took, but at least a minute."
)
COLUMNS = ("crawler", "micro recall", "macro recall", "precision", "resources", "requests/resource", "s",
           "resources/s", "CPU s", "resources/CPU-s", "peak MB", "servers, of a core")  # fmt: skip
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
    yield Text(f"Machine: {results.machine}.")
    yield Text(TERMS)
    checks = list(verdicts(results))
    if checks:
        yield Table([("target", "measured", "reached"), *checks])
    for experiment in results.experiments:
        yield from told(experiment)
    for scale in results.scale:
        yield from scaled(scale)


def told(experiment: Experiment) -> Iterator[Block]:
    """One experiment."""
    yield Title(NAMES[experiment.name])
    wish = experiment.wish
    facts = (
        f"{wish.nodes} nodes, {experiment.resources} resources, {experiment.triples} triples, "
        f"{experiment.seeds} seeds; seed {wish.seed}, node degree {wish.node_degree}, "
        f"{wish.triples} triples a node."
    )
    yield Text(facts + (f" RDFa: {experiment.rdfa}." if experiment.rdfa else ""))
    yield Table([COLUMNS, *map(row, experiment.outcomes)])
    yield from remarks(experiment)
    yield from kinds_of(experiment)
    if experiment.name == "robots":
        yield Table([("crawler", "forbidden", "asked for", "delay fulfilment: mean", "least", "most"),
                     *map(manners, experiment.outcomes)])  # fmt: skip
    yield from again(experiment)
    yield from curves(experiment)
    if experiment.name in {"I", "II"}:
        yield from published(experiment.name)
    for outcome in experiment.outcomes:
        yield from profile(outcome)


def row(outcome: Outcome) -> tuple[str, ...]:
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
        f"{outcome.resources_per_cpu_second:.0f}",
        f"{measured.peak_bytes / 1e6:.0f}",
        f"{outcome.server_share:.0%}",
    )


def remarks(experiment: Experiment) -> Iterator[Block]:
    """Terms and faults of each crawler, those left out, and the servers alone."""
    lines = [f"{each.name}: {each.version}; {each.terms}." for each in experiment.outcomes]
    lines += [f"**{each.name}: {each.fault}.**" for each in experiment.outcomes if each.fault]
    lines += [f"{each.name} is left out: {each.reason}." for each in experiment.skipped]
    if experiment.load:
        lines.append(
            f"The servers alone: {experiment.load.per_second:.0f} requests/s ({experiment.load.tool})."
        )
    yield from map(Text, lines)


def kinds_of(experiment: Experiment) -> Iterator[Block]:
    """Recall for each kind of node."""
    scored = [(each.name, each.score) for each in experiment.outcomes if each.score]
    kinds = sorted(experiment.wish.weights)
    if len(kinds) < 2 or not scored:
        return
    rows = [("recall of", *(name for name, _ in scored))]
    for kind in kinds:
        pairs = [score.by_kind.get(kind, (0, 0)) for _, score in scored]
        rows.append((f"{kind} ({pairs[0][1]})", *(f"{had / max(1, all_of):.4f}" for had, all_of in pairs)))
    yield Table(rows)


def manners(outcome: Outcome) -> tuple[str, ...]:
    """How robots.txt was kept."""
    kept = outcome.account.manners
    gaps = [f"{value:.3f}" for value in kept.fulfilment] if kept.fulfilment else ["", "", ""]
    return (outcome.name, str(kept.disallowed), str(kept.disallowed_requested), *gaps)


def again(experiment: Experiment) -> Iterator[Block]:
    """The second crawl."""
    for outcome in experiment.again:
        yield Text(
            f"Then {experiment.wish.changing:.0%} of the resources changed, and all were visited again:"
        )
        yield Table([COLUMNS, row(outcome)])
        yield Text(
            f"{outcome.account.not_modified} of {outcome.account.requests} requests were answered with 304; "
            "recall is over what the web says after the change."
        )


def curves(experiment: Experiment) -> Iterator[Block]:
    """Triples and memory over time."""
    triples = [Line(each.name, each.account.curve) for each in experiment.outcomes]
    yield Figure(
        f"{experiment.name}-triples", "Triples handed out over time", plot(triples, "seconds", "triples")
    )
    memory = [Line(each.name, memory_of(each)) for each in experiment.outcomes]
    yield Figure(f"{experiment.name}-memory", "Memory over time, whole tree", plot(memory, "seconds", "MB"))


def memory_of(outcome: Outcome) -> list[tuple[float, float]]:
    """Seconds and megabytes."""
    return [(glance.seconds, glance.total / 1e6) for glance in outcome.measured.glances]


def published(name: str) -> Iterator[Block]:
    """The rows of others."""
    yield Text(f"Published, **on other hardware**: {HARDWARE}")
    if name == "I":
        rows = [(each.name, f"{each.first_recall:.2f}", str(each.first_seconds)) for each in ROWS]
        yield Table([("crawler", "micro recall", "s"), *rows])
        return
    yield Table([
        ("crawler", "micro recall", "s", "resources/s", "CPU s", "memory GB"),
        *((each.name, f"{each.second_recall:.2f}", str(each.second_seconds), rate(each.resources_per_second),
           f"{each.second_cpu:.1f}", f"{each.second_memory:.1f}") for each in ROWS),
    ])  # fmt: skip


def rate(number: float | None) -> str:
    """A rate, if there is one."""
    return "" if number is None else f"{number:.1f}"


def profile(outcome: Outcome) -> Iterator[Block]:
    """Where the time of Tamias went, by step of a URL's path."""
    if not outcome.steps:
        return
    count = max(1, outcome.account.resources)
    claimed = {**outcome.steps, "database": outcome.measured.cpu_by_name.get("postgres", 0.0)}
    claimed["start, end and the rest"] = max(0.0, outcome.measured.cpu_seconds - sum(claimed.values()))
    steps = sorted(claimed.items(), key=lambda pair: -pair[1])
    rows = [(step, f"{used:.2f}", f"{1000 * used / count:.3f}", f"{used / sum(claimed.values()):.0%}")
            for step, used in steps]  # fmt: skip
    yield Text("Where Tamias's processor time went:")
    yield Table([("step", "CPU s", "ms/resource", "share"), *rows])


def scaled(scale: Scale) -> Iterator[Block]:
    """The experiment of scale."""
    yield Title("Scale")
    measured = scale.measured
    yield Table([
        ("pages", "hosts", "fetched", "URLs known", "s", "pages/s", "CPU s", "peak MB", "database bytes/URL",
         "last/second tenth"),
        (str(scale.pages), str(scale.hosts), str(scale.fetched), str(scale.known),
         f"{measured.wall_seconds:.0f}",
         f"{scale.fetched / max(1e-9, measured.wall_seconds):.0f}", f"{measured.cpu_seconds:.0f}",
         f"{measured.peak_bytes / 1e6:.0f}", f"{scale.database_bytes / max(1, scale.known):.0f}",
         f"{scale.flatness:.2f}"),
    ])  # fmt: skip
    if scale.fault:
        yield Text(f"**{scale.fault}.**")
    pace = [(turn + 0.5, value) for turn, value in enumerate(scale.tenths)]
    yield Figure(
        "scale-pace",
        "Pages a second in each tenth of the crawl",
        plot([Line("tamias", pace)], "tenth", "pages/s"),
    )
    memory = [Line(name, points) for name, points in memory_by_name(scale)]
    yield Figure("scale-memory", "Memory over time", plot(memory, "seconds", "MB"))


def memory_by_name(scale: Scale) -> Sequence[tuple[str, list[tuple[float, float]]]]:
    """The largest programs of the tree."""
    names = sorted(scale.measured.peak_by_name, key=lambda name: -scale.measured.peak_by_name[name])[:4]
    glances = scale.measured.glances
    return [(name, [(each.seconds, each.by_name.get(name, 0) / 1e6) for each in glances]) for name in names]
