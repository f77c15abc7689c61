"""The experiments: which web, which crawlers, in which order; and what came out, as one value."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tamias.bench.crawl.peers import Skipped
from tamias.bench.orca.load import Load, load
from tamias.bench.orca.plan import DEREFERENCING, EVERY_KIND, MIXED, ORCA_SEED, Wish, make_plan
from tamias.bench.orca.rivals import TAMIAS, Rival, Task
from tamias.bench.orca.scale import Scale
from tamias.bench.orca.serving import free_ports, serving
from tamias.bench.orca.trial import SCOPE, Out, Outcome, attempt, site, visit
from tamias.bench.orca.web import Web, build_web

MOST_SECONDS = 1_200.0
"""A crawler that needs longer is stopped, and what it did until then is what counts."""
ROBOTS_FOR_PEERS = {"ORCA_ROBOTS": "1"}
WATCHED = {
    "TAMIAS_SCHEDULE__RULE": "fixed:1",
    "TAMIAS_SCHEDULE__MIN_INTERVAL": "1",
    "TAMIAS_SCHEDULE__MAX_INTERVAL": "1",
}
"""Everything is due again at once, so that the second crawl shows what a visit costs and finds."""

USUAL = {
    "I": Wish(nodes=100, weights=MIXED, compressed=0.3),
    "II": Wish(nodes=200, weights=DEREFERENCING),
    "kinds": Wish(nodes=48, weights=EVERY_KIND, node_degree=6, compressed=0.5, more_packings=True),
    "robots": Wish(
        nodes=25,
        weights=DEREFERENCING,
        node_degree=3,
        triples=100,
        resource_degree=5,
        disallowed=0.1,
        delay=1.0,
    ),
    "recrawl": Wish(nodes=20, weights=DEREFERENCING, node_degree=6, changing=0.1),
}


class Experiment(msgspec.Struct, frozen=True):
    """One experiment and all that was found in it."""

    name: str
    wish: Wish
    resources: int
    triples: int
    seeds: int
    rdfa: str
    """Whose RDFa pages were served; empty if none."""
    outcomes: list[Outcome]
    skipped: list[Skipped]
    load: Load | None = None
    again: list[Outcome] = []
    """The second crawl of a web that changed."""


class Results(msgspec.Struct, frozen=True):
    """All experiments of one run."""

    machine: str
    experiments: list[Experiment]
    scale: list[Scale] = []


def wish_for(name: str, nodes: int | None, seed: int | None, triples: int | None) -> Wish:
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
    wish: Wish,
    rivals: Sequence[Rival],
    work: Path,
    *,
    suite: Path | None,
    seconds: float,
    out: Out,
) -> Experiment:
    """Tamias first, then the peers, each with servers of its own."""
    web = build_web(make_plan(wish), free_ports(), suite)
    out(f"experiment {name}: {wish.nodes} nodes, {web.resources} resources, {web.triples} triples, "
        f"{len(web.seeds)} seeds")  # fmt: skip
    pace = load(web, work / "load") if name == "II" else None
    again: list[Outcome] = []
    skipped: list[Skipped] = []
    if name == "recrawl":
        outcomes, again = recrawl(web, work / "tamias", seconds)
    else:
        outcomes, skipped = compare(name, web, (TAMIAS, *rivals), work, seconds, out)
    return Experiment(
        name=name,
        wish=wish,
        resources=web.resources,
        triples=web.triples,
        seeds=len(web.seeds),
        rdfa=rdfa_pages(wish, suite),
        outcomes=outcomes,
        skipped=skipped,
        load=pace,
        again=again,
    )


def rdfa_pages(wish: Wish, suite: Path | None) -> str:
    """Whose pages the RDFa nodes serve."""
    if "rdfa" not in wish.weights:
        return ""
    return "the W3C's test pages" if suite else "pages of our own (no --rdfa-suite was given)"


def compare(
    name: str, web: Web, rivals: Sequence[Rival], work: Path, seconds: float, out: Out
) -> tuple[list[Outcome], list[Skipped]]:
    """Each crawler in its turn."""
    outcomes: list[Outcome] = []
    skipped: list[Skipped] = []
    for rival in rivals:
        environment = ROBOTS_FOR_PEERS if name == "robots" else {}
        task = Task(web.seeds, work / rival.name, SCOPE, environment=environment)
        found = attempt(web, rival, task, seconds)
        if isinstance(found, Skipped):
            skipped.append(found)
            out(f"  {found.name}: left out, {found.reason}")
        else:
            outcomes.append(found)
            recall = f"recall {found.score.recall:.4f}, " if found.score else ""
            out(f"  {found.name}: {recall}{found.measured.wall_seconds:.1f} s, {found.resources_per_second:.0f} "
                f"resources/s, {found.resources_per_cpu_second:.0f} per CPU-second {found.fault}")  # fmt: skip
    return outcomes, skipped


def recrawl(web: Web, folder: Path, seconds: float) -> tuple[list[Outcome], list[Outcome]]:
    """Everything goes under watch, some of it changes, and everything is visited again."""
    task = Task(web.seeds, folder, SCOPE, options=("--sink", "archive"), environment=WATCHED)
    folder.mkdir(parents=True)
    task.seed_file.write_text("\n".join(task.seeds) + "\n", encoding="utf-8")
    second = Task([], folder, SCOPE, options=("--recrawl",), environment=WATCHED)
    with serving(lambda address: site(web, address), web.ports, folder / "servers") as servers:
        before = visit(web, TAMIAS, task, servers, seconds)
        servers.epoch.value = 1
        task.seed_file.write_text("", encoding="utf-8")
        after = visit(web, TAMIAS, second, servers, seconds)
    return _ran(before), _ran(after)


def _ran(outcome: Outcome | Skipped) -> list[Outcome]:
    return [outcome] if isinstance(outcome, Outcome) else []


def machine() -> str:
    """What it was measured on, in words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    model = next(
        (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith("model name")), platform.processor() or platform.machine(),
    )  # fmt: skip
    return (
        f"{os.cpu_count()} processors ({model}), {memory:.0f} GB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} at the start; servers and crawlers share it"
    )
