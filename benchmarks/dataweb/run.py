"""`python -m benchmarks dataweb`: the experiments one after the other, and what is asked of Tamias."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.dataweb.crawlers.rivals import TAMIAS, CrawlTask, Rival, chosen
from benchmarks.dataweb.plan import DEREFERENCING, MIXED, ORCA_SEED, WebOptions, make_plan
from benchmarks.dataweb.trial import SCOPE, Out, TrialOutcome, attempt
from benchmarks.dataweb.web import OrcaWeb, build_web, check_suite
from benchmarks.measuring.children import free_ports
from benchmarks.measuring.targets import BenchmarkTarget, Skipped, at_least, report_targets, table

MOST_SECONDS = 1_200.0
"""A crawler that needs longer is stopped, and what it did until then is what counts."""
PATIENCE, LEAST_PATIENCE = 8, 60.0
"""And a peer is stopped when it has had so many times what Tamias took, but not before so many seconds."""
MEMORY = 1_000_000_000
USUAL = {
    "I": WebOptions(nodes=100, weights=MIXED, compressed=0.3),
    "II": WebOptions(nodes=200, weights=DEREFERENCING),
    "robots": WebOptions(
        nodes=25, weights=DEREFERENCING, triples=100, resource_degree=5, disallowed=0.1, delay=1.0
    ),
}
EXPERIMENTS = tuple(USUAL)
COLUMNS = (
    "crawler", "recall", "precision", "resources", "requests", "s", "CPU s", "CPU ms/resource",
    "resources/CPU-s", "peak MB", "servers, of a core",
)  # fmt: skip


class DataWebSize(msgspec.Struct, frozen=True):
    """What is not to be as in the published runs."""

    nodes: int | None = None
    triples: int | None = None
    seed: int | None = None
    seconds: float = MOST_SECONDS


def run(
    experiments: Sequence[str] = EXPERIMENTS,
    size: DataWebSize = DataWebSize(),  # noqa: B008 (frozen)
    *,
    peers: tuple[str, ...] | None = None,
    suite: Path | None = None,
    out: Out = print,
) -> dict[str, Any]:
    """Runs the experiments and tells what came out. `peers` None is all known, an empty tuple none."""
    rivals = [] if peers == () else chosen(peers or ())
    pages = check_suite(suite) if suite else None
    found, targets = [], []
    with tempfile.TemporaryDirectory(prefix="tamias-orca-", ignore_cleanup_errors=True) as work:
        for name in experiments:
            wish = msgspec.structs.replace(
                USUAL[name],
                nodes=size.nodes or USUAL[name].nodes,
                triples=size.triples or USUAL[name].triples,
                seed=ORCA_SEED if size.seed is None else size.seed,
            )
            web = build_web(make_plan(wish), free_ports(1)[0], pages)
            said = f"{wish.nodes} nodes, {web.resources} resources, {web.triples} triples"
            out(f"experiment {name}: {said}, {len(web.seeds)} seeds, seed {wish.seed}")
            outcomes, skipped = compare(web, (TAMIAS, *rivals), Path(work) / name, size.seconds)
            for line in (*table([COLUMNS, *map(_cells, outcomes)]), *_remarks(outcomes, skipped)):
                out(f"  {line}")
            targets += list(_targets(name, outcomes))
            size_of_web = {"name": name, "resources": web.resources, "triples": web.triples}
            plain = {"outcomes": list(map(_plain, outcomes)), "skipped": msgspec.to_builtins(skipped)}
            found.append(size_of_web | plain)
    return {"experiments": found, **report_targets(targets, out), "ok": True}


def compare(
    web: OrcaWeb, rivals: Sequence[Rival], folder: Path, seconds: float
) -> tuple[list[TrialOutcome], list[Skipped]]:
    """Each crawler in its turn, with servers of its own. One that stands still is not waited for."""
    outcomes: list[TrialOutcome] = []
    skipped: list[Skipped] = []
    for rival in rivals:
        polite = bool(web.plan.wish.delay or web.plan.wish.disallowed)
        task = CrawlTask(web.seeds, folder / rival.name, SCOPE, polite=polite)
        own = outcomes[0].measured.wall_seconds if outcomes else seconds
        found = attempt(web, rival, task, min(seconds, max(LEAST_PATIENCE, PATIENCE * own)))
        if isinstance(found, Skipped):
            skipped.append(found)
        else:
            outcomes.append(found)
    return outcomes, skipped


def _cells(outcome: TrialOutcome) -> tuple[str, ...]:
    score, measured = outcome.score, outcome.measured
    precision = score.precision if score else None
    return (
        outcome.name,
        f"{score.recall:.4f}" if score else "keeps none",
        "" if precision is None else f"{precision:.4f}",
        str(outcome.account.resources),
        str(outcome.account.requests),
        f"{measured.wall_seconds:.1f}",
        f"{measured.cpu_seconds:.1f}",
        f"{1000 * measured.cpu_seconds / max(1, outcome.account.resources):.3f}",
        f"{outcome.resources_per_cpu_second:.0f}",
        f"{measured.peak_bytes / 1e6:.0f}",
        f"{outcome.server_cpu_seconds / max(0.001, measured.wall_seconds):.0%}",
    )


def _remarks(outcomes: Sequence[TrialOutcome], skipped: Sequence[Skipped]) -> Iterator[str]:
    for each in outcomes:
        yield f"{each.name}: {each.version}; {each.terms}" + (f"; {each.fault.upper()}" if each.fault else "")
        if each.score and len(each.score.by_kind) > 1:
            shares = (f"{kind} {had}/{all_}" for kind, (had, all_) in sorted(each.score.by_kind.items()))
            yield f"{each.name}: found of each kind: {', '.join(shares)}"
    for absent in skipped:
        yield f"{absent.name}: left out, {absent.reason}"


def _plain(outcome: TrialOutcome) -> dict[str, Any]:
    """An outcome for programs."""
    plain: dict[str, Any] = msgspec.to_builtins(outcome)
    if outcome.score:
        plain["recall"], plain["precision"] = outcome.score.recall, outcome.score.precision
    plain["resources_per_cpu_second"] = outcome.resources_per_cpu_second
    return plain


def _targets(name: str, outcomes: Sequence[TrialOutcome]) -> Iterator[BenchmarkTarget]:
    """What is asked of Tamias in one experiment."""
    own = outcomes[0]
    recall = own.score.recall if own.score else 0.0
    least = 0.999 if name == "I" else 1.0
    yield BenchmarkTarget(f"{name}: recall at least {least:g}", f"{recall:.4f}", recall >= least)
    if name == "II":
        memory = own.measured.peak_bytes
        yield BenchmarkTarget("II: under 1 GB in total", f"{memory / 1e6:.0f} MB", memory < MEMORY)
        peers = [each.resources_per_cpu_second for each in outcomes[1:] if each.is_whole]
        ratio = own.resources_per_cpu_second / max(peers) if peers else None
        yield at_least(2.5, "II: resources per CPU-second to the best peer that finds nearly all", ratio)
    if name == "robots":
        manners = own.account.manners
        asked = manners.disallowed_requested
        yield BenchmarkTarget("robots: nothing forbidden asked for", str(asked), not asked)
        mean = manners.fulfilment[0] if manners.fulfilment else 0.0
        yield BenchmarkTarget("robots: delay fulfilment 1.0 to 1.2", f"{mean:.3f}", 1.0 <= mean <= 1.2)
