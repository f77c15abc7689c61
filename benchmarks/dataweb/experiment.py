"""The experiments: which web, which crawlers, in which order; and what came out, as one value."""

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.dataweb.crawlers.rivals import TAMIAS, CrawlTask, Rival, finish
from benchmarks.dataweb.scale import Scale
from benchmarks.dataweb.serving.load import ServerSpeed, load
from benchmarks.dataweb.serving.serving import serving
from benchmarks.dataweb.trial import SCOPE, Out, TrialOutcome, attempt, site, visit
from benchmarks.dataweb.web.context import Ports
from benchmarks.dataweb.web.plan import DEREFERENCING, EVERY_KIND, MIXED, ORCA_SEED, WebOptions, make_plan
from benchmarks.dataweb.web.web import OrcaWeb, build_web
from benchmarks.measuring.peers import Skipped
from benchmarks.measuring.ports import free_ports

MOST_SECONDS = 1_200.0
"""A crawler that needs longer is stopped, and what it did until then is what counts."""
PATIENCE, LEAST_PATIENCE = 8, 60.0
"""And a peer is stopped when it has had so many times what Tamias took, but not before so many seconds."""
VISITS_PER_SECOND = 250
"""What a slow machine does: everything under watch is due again after the time that takes."""

USUAL = {
    "I": WebOptions(nodes=100, weights=MIXED, compressed=0.3),
    "II": WebOptions(nodes=200, weights=DEREFERENCING),
    "kinds": WebOptions(nodes=48, weights=EVERY_KIND, node_degree=6, compressed=0.5, more_packings=True),
    "robots": WebOptions(
        nodes=25,
        weights=DEREFERENCING,
        triples=100,
        resource_degree=5,
        disallowed=0.1,
        delay=1.0,
    ),
    "recrawl": WebOptions(nodes=50, weights=DEREFERENCING, node_degree=6, changing=0.1),
}


class DataWebExperiment(msgspec.Struct, frozen=True):
    """One experiment and all that was found in it."""

    name: str
    wish: WebOptions
    resources: int
    triples: int
    seeds: list[str]
    """The kinds of the nodes that all crawlers begin with."""
    rdfa: str
    """Whose RDFa pages were served; empty if none."""
    outcomes: list[TrialOutcome]
    skipped: list[Skipped]
    load: ServerSpeed | None = None
    again: list[TrialOutcome] = []
    """The second crawl of a web that changed."""


class Results(msgspec.Struct, frozen=True):
    """All experiments of one run."""

    machine: str
    experiments: list[DataWebExperiment]
    scale: list[Scale] = []
    command: str = ""
    """What repeats the run."""


def wish_for(name: str, nodes: int | None, seed: int | None, triples: int | None) -> WebOptions:
    """The web of an experiment; what is not given is as in the published runs."""
    usual = USUAL[name]
    return msgspec.structs.replace(
        usual,
        nodes=nodes or usual.nodes,
        triples=triples or usual.triples,
        seed=ORCA_SEED if seed is None else seed,
    )


def run_experiment(
    name: str,
    wish: WebOptions,
    rivals: Sequence[Rival],
    work: Path,
    *,
    suite: Path | None,
    profile: bool,
    seconds: float,
    out: Out,
) -> DataWebExperiment:
    """Tamias first, then the peers, each with servers of its own."""
    web = build_web(make_plan(wish), Ports(*free_ports(2)), suite)
    out(f"experiment {name}: {wish.nodes} nodes, {web.resources} resources, {web.triples} triples, "
        f"{len(web.seeds)} seeds")  # fmt: skip
    pace = load(web, work / "load") if name == "II" else None
    again: list[TrialOutcome] = []
    skipped: list[Skipped] = []
    if name == "recrawl":
        outcomes, again = recrawl(web, Bounds(work / "tamias", seconds, profile))
    else:
        outcomes, skipped = compare(web, (TAMIAS, *rivals), Bounds(work, seconds, profile), out)
    return DataWebExperiment(
        name=name,
        wish=wish,
        resources=web.resources,
        triples=web.triples,
        seeds=[web.plan.nodes[number].kind for number in web.plan.seeds],
        rdfa=rdfa_pages(wish, suite),
        outcomes=outcomes,
        skipped=skipped,
        load=pace,
        again=again,
    )


def rdfa_pages(wish: WebOptions, suite: Path | None) -> str:
    """Whose pages the RDFa nodes serve."""
    if "rdfa" not in wish.weights:
        return ""
    return "the W3C's test pages" if suite else "pages of our own (no --rdfa-suite was given)"


class Bounds(msgspec.Struct, frozen=True):
    """Where crawlers work, how long the first may take, and whether Tamias tells where its time goes."""

    folder: Path
    seconds: float
    profile: bool


def compare(
    web: OrcaWeb, rivals: Sequence[Rival], bounds: Bounds, out: Out
) -> tuple[list[TrialOutcome], list[Skipped]]:
    """Each crawler in its turn."""
    outcomes: list[TrialOutcome] = []
    skipped: list[Skipped] = []
    for rival in rivals:
        polite = bool(web.plan.wish.delay or web.plan.wish.disallowed)
        task = CrawlTask(web.seeds, bounds.folder / rival.name, SCOPE, polite=polite, profile=bounds.profile)
        found = attempt(web, rival, task, patience(bounds.seconds, outcomes))
        if isinstance(found, Skipped):
            skipped.append(found)
            out(f"  {found.name}: left out, {found.reason}")
        else:
            outcomes.append(found)
            recall = f"recall {found.score.recall:.4f}, " if found.score else ""
            pace, cost = found.resources_per_second, found.resources_per_cpu_second
            rates = f"{found.measured.wall_seconds:.1f} s, {pace:.0f} resources/s, {cost:.0f} per CPU-second"
            out(f"  {found.name}: {recall}{rates} {found.fault}")
    return outcomes, skipped


def patience(seconds: float, outcomes: Sequence[TrialOutcome]) -> float:
    """How long the next crawler may take: a peer that stands still is not waited for to the last."""
    if not outcomes:
        return seconds
    return min(seconds, max(LEAST_PATIENCE, PATIENCE * outcomes[0].measured.wall_seconds))


def recrawl(web: OrcaWeb, bounds: Bounds) -> tuple[list[TrialOutcome], list[TrialOutcome]]:
    """Everything goes under watch and is visited; some of it changes; everything is visited again."""
    folder = bounds.folder
    interval = 2 + sum(len(built.weights) for built in web.nodes.values()) // VISITS_PER_SECOND
    rules = {"RULE": f"fixed:{interval}", "MIN_INTERVAL": str(interval), "MAX_INTERVAL": str(interval)}
    watched = {f"TAMIAS_SCHEDULE__{name}": value for name, value in rules.items()}
    task = CrawlTask([], folder, SCOPE, options=("--recrawl",), environment=watched, profile=bounds.profile)
    folder.mkdir(parents=True)
    task.seed_file.write_text("", encoding="utf-8")
    watch(web, task)
    with serving(lambda address: site(web, address), web.ports, folder / "servers") as servers:
        before = visit(web, TAMIAS, task, servers, bounds.seconds)
        servers.epoch.value = 1
        time.sleep(interval)
        after = visit(web, TAMIAS, task, servers, bounds.seconds)
    return _ran(before), _ran(after)


def watch(web: OrcaWeb, task: CrawlTask) -> None:
    """Puts every resource of the web under watch."""
    urls = [
        f"http://{at}:{web.ports.http}{path}" for at, built in web.nodes.items() for path in built.weights
    ]
    listed = task.folder / "watched.txt"
    listed.write_text("\n".join(urls) + "\n", encoding="utf-8")
    command = [*task.tamias, "add", "--file", str(listed), "--data", str(task.folder / "data"), "-q"]
    finish(command, task.folder / "add", 60.0 + len(urls) / 100)


def _ran(outcome: TrialOutcome | Skipped) -> list[TrialOutcome]:
    return [outcome] if isinstance(outcome, TrialOutcome) else []


def machine() -> str:
    """What it was measured on, in words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    model = next(
        (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith("model name")), platform.processor() or platform.machine(),
    )  # fmt: skip
    return (
        f"{os.cpu_count()} processors ({model}), {memory:.0f} GB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} at the start; "
        "servers and crawlers share it"
    )
