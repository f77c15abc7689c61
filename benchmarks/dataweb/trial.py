"""One crawler let loose on one web: served, measured, judged."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.dataweb.crawlers.rivals import CrawlTask, Rival
from benchmarks.dataweb.serving.server import NodeSite
from benchmarks.dataweb.serving.serving import Servers, serving
from benchmarks.dataweb.truth import RecallScore, read_found, score
from benchmarks.dataweb.visits import RequestAccount, account, read_visits
from benchmarks.dataweb.web.web import OrcaWeb
from benchmarks.measuring.budget import read_profiles
from benchmarks.measuring.measure import last_line, measure
from benchmarks.measuring.peers import Skipped, shown_command
from benchmarks.measuring.reaper import MeasuredRun

SCOPE = r"^(https?|ftp)://127\.[2-9]\."
Out = Callable[[str], object]


class TrialOutcome(msgspec.Struct, frozen=True):
    """What one crawler made of one web."""

    name: str
    version: str
    terms: str
    command: str
    measured: MeasuredRun
    account: RequestAccount
    score: RecallScore | None
    """None for a crawler that keeps no statements."""
    server_cpu_seconds: float
    follows_rdf: bool = True
    steps: dict[str, float] = {}
    """Processor seconds of Tamias's workers by step."""
    fault: str = ""
    data_bytes: int = 0
    """What it left on disk."""

    @property
    def resources_per_second(self) -> float:
        return self.account.resources / self.measured.wall_seconds if self.measured.wall_seconds else 0.0

    @property
    def resources_per_cpu_second(self) -> float:
        return self.account.resources / self.measured.cpu_seconds if self.measured.cpu_seconds else 0.0

    @property
    def server_share(self) -> float:
        """Of one core: how busy the servers were during the crawl."""
        return self.server_cpu_seconds / self.measured.wall_seconds if self.measured.wall_seconds else 0.0


def attempt(web: OrcaWeb, rival: Rival, task: CrawlTask, seconds: float) -> TrialOutcome | Skipped:
    """Serves the web for this crawler alone."""
    task.folder.mkdir(parents=True)
    task.seed_file.write_text("\n".join(task.seeds) + "\n", encoding="utf-8")
    trees = {address: built.files for address, built in web.nodes.items() if built.files}
    with serving(
        lambda address: site(web, address), web.ports, task.folder / "servers", trees=trees
    ) as servers:
        return visit(web, rival, task, servers, seconds)


def site(web: OrcaWeb, address: str) -> NodeSite | None:
    """The pages of an address."""
    built = web.nodes.get(address)
    return built.pages if built else None


def visit(
    web: OrcaWeb, rival: Rival, task: CrawlTask, servers: Servers, seconds: float
) -> TrialOutcome | Skipped:
    """One crawl of a web that is being served, and the judgement of it."""
    contender = rival.prepare(task)
    if isinstance(contender, Skipped):
        return contender
    started, used = time.monotonic(), servers.cpu_seconds()
    measured = measure(contender.command, task.folder, seconds=seconds, environment=contender.environment)
    used = servers.cpu_seconds() - used
    time.sleep(1.0)  # the servers write their logs twice a second
    visits = read_visits(servers.logs, started)
    files = rival.harvest(task)
    return TrialOutcome(
        name=contender.name,
        version=contender.version,
        terms=contender.terms,
        command=shown_command(contender.command),
        measured=measured,
        account=account(web, visits, started),
        score=score(web, read_found(files), later=bool(servers.epoch.value)) if files else None,
        server_cpu_seconds=used,
        follows_rdf=rival.follows_rdf,
        steps=worker_steps(task.folder / "profile.jsonl"),
        fault=fault_of(measured, task.folder),
        data_bytes=sum(file.stat().st_size for file in (task.folder / "data").rglob("*") if file.is_file()),
    )


def worker_steps(file: Path) -> dict[str, float]:
    """Processor seconds by step, of all workers."""
    steps: dict[str, float] = {}
    for profile in read_profiles(file):
        for name, seconds in profile.steps.items():
            steps[name] = steps.get(name, 0.0) + seconds
    return steps


def fault_of(measured: MeasuredRun, folder: Path) -> str:
    """Why a crawl is no fair measure; empty if nothing is wrong."""
    if measured.stopped:
        return f"stopped after {measured.wall_seconds:.0f} s"
    if measured.exit_code != 0:
        return f"ended with code {measured.exit_code}: {last_line(folder / 'stderr')}"
    return f"left running: {', '.join(measured.left_behind)}" if measured.left_behind else ""
