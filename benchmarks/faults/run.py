"""`python -m benchmarks faults`: the table of experiments, run one after another."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from benchmarks.faults.experiment import ExperimentSetup, FaultExperiment, Result
from benchmarks.faults.experiments import clock
from benchmarks.faults.experiments.attacks import frontier_attacked, hostile, sandbox_escape, strategy_escape
from benchmarks.faults.experiments.deaths import (
    commit_killed,
    database_killed,
    frozen,
    politeness,
    two_supervisors,
    worker_killed,
)
from benchmarks.faults.experiments.disk import bad_writes, blob_flipped, disk_full, power_cut, segment_cut
from benchmarks.faults.experiments.network import amplifier, bad_network, cut_link, outages, partition
from benchmarks.faults.scorecard import ScorecardRow, page
from benchmarks.measuring.workspace import wait_for_end
from tamias.model.errors import TamiasError, UsageError

FULL, USUAL, QUICK = 1.0, 0.3, 0.08
Out = Callable[[str], None]


def _row(
    number: str, name: str, fault: str, promise: str, run: Callable[[ExperimentSetup], Result]
) -> FaultExperiment:
    return FaultExperiment(number=number, name=name, fault=fault, promise=promise, run=run)


EXPERIMENTS = (
    _row("F1", "worker-killed", "workers killed at 100 random moments of a crawl of 10,000 URLs",
         "no URL lost, no version duplicated, at most 1.5 % fetched again", worker_killed.run),
    _row("F2", "database-killed", "the database killed 30 times under a million URLs",
         "nothing acknowledged is lost; the next lease within 5 s", database_killed.run),
    _row("F3", "commit-killed", "processes killed between any two steps of a commit, 20 times each",
         "no row without its bytes, nothing lost or duplicated, `check` finds nothing after one repair",
         commit_killed.run),
    _row("F4", "power-cut", "the power fails at 200 moments: what was not synced is gone",
         "every committed row has its bytes, every time", power_cut.run),
    _row("F5", "disk-full", "an archive on a disk of 64 MiB that is filled and freed",
         "fetching stops within 2 s and says so, resumes within 10 s; nothing lost or torn", disk_full.run),
    _row("F6", "bad-writes", "1 % of all writes short or failed, 5,000 versions",
         "no version corrupt, none lost", bad_writes.run),
    _row("F7", "partition", "a worker disconnected from the database for 60 s, leases of 20 s",
         "its hosts taken over within 25 s, none of its late results accepted", partition.run),
    _row("F8", "frozen", "a worker frozen for 60 s, leases of 20 s",
         "the same, and never two requests at once to a host", frozen.run),
    _row("F9", "clock", "the clock of all processes jumps by an hour, ahead and back",
         "nothing requested early or twice: requests within 1 % of what is needed", clock.run),
    _row("F10", "hostile", "all attacks of the hostile web among 2,000 good pages",
         "all contained, good sites complete in 1.3 times the time, 1.5 GiB, no canary touched", hostile.run),
    _row("F11", "politeness", "8 workers, 2 far, killed and joined for 5 min; 50 hosts, Crawl-delay 1",
         "no request within a second of the end of the last one, none to forbidden paths", politeness.run),
    _row("F12", "bad-network",
         "10 % of responses cut, 5 % reset, 5 % 503, others dripping, half open or late",
         "all pages complete after retries, no cut body accepted as complete, Retry-After respected",
         bad_network.run),
    _row("F13", "blob-flipped", "50 single bits flipped in what is stored",
         "`check` reports each that damages a body, and no damaged body is returned", blob_flipped.run),
    _row("F14", "two-supervisors", "three crawls on one data directory, one of them killed",
         "the work is shared: nothing lost or twice, one request at once to a host", two_supervisors.run),
    _row("F15", "no-names", "DNS is down for 20 s while 9 hosts are visited for the first time",
         "the same quads as without the fault, exit 0", outages.names),
    _row("F16", "no-network", "the network is down for 20 s in the middle of a crawl of 9 hosts",
         "the same quads as without the fault, exit 0", outages.network),
    _row("F17", "dead-hosts", "2,000 hosts that never answer seeded before 400 good pages",
         "all good pages, in at most twice the time that they take alone", outages.dead_hosts),
    _row("F18", "amplifier", "1,000 hosts whose robots.txt redirects to one victim",
         "the victim is asked one at a time, at its delay, once for each host", amplifier.run),
    _row("F19", "segment-cut", "100 bytes cut out of what was crawled, 10 times",
         "export writes everything else and reports what is missing; `check --repair` and a crawl repair it",
         segment_cut.run),
    _row("F20", "sandbox-escape", "a document has taken over the sandbox and looks for a way out",
         "no socket, program, process, signal or file of others; no privileges", sandbox_escape.run),
    _row("F21", "strategy-escape", "strategies that try to gain rights, on PostgreSQL 15 to 18",
         "none of them ever acts outside its role or runs longer than its time limit", strategy_escape.run),
    _row("F22", "grpc-attacks", "a hostile client of the gRPC frontier, eight attacks of 20 s each",
         "every call of a good client is answered within 1 s; less than 300 MiB", frontier_attacked.run),
    _row("F23", "cut-link", "far workers with pages slower than a lease; link cut for 60 s, service killed",
         "the same quads as without the fault, each page recorded once, no request early", cut_link.run),
)  # fmt: skip


def run(
    names: Sequence[str] = (),
    *,
    share: float = USUAL,
    seed: int = 1,
    hostile: Path | None = None,
    soak: Path | None = None,
    scorecard: Path | None = None,
    out: Out = print,
) -> dict[str, object]:
    """Runs those that are named by number or name, or all; prints a line for each."""
    rows: list[ScorecardRow] = []
    for each in chosen(names):
        rows.append(_tried(each, share, seed, hostile, out))
        if scorecard is not None:  # written again and again, so that a run that is ended leaves what it had
            scorecard.write_text(page(rows, share, hostile, soak), encoding="utf-8")
    return {"ok": all(row.result.ok is not False for row in rows), "experiments": msgspec.to_builtins(rows)}


def chosen(names: Sequence[str]) -> list[FaultExperiment]:
    """The experiments of these numbers or names; all if there are none."""
    known = {word: each for each in EXPERIMENTS for word in (each.number.lower(), each.name)}
    for name in names:
        if name.lower() not in known:
            there = ", ".join(f"{each.number} {each.name}" for each in EXPERIMENTS)
            raise UsageError(f"there is no experiment '{name}'; there are: {there}")
    return [known[name.lower()] for name in names] or list(EXPERIMENTS)


def _tried(each: FaultExperiment, share: float, seed: int, hostile: Path | None, out: Out) -> ScorecardRow:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tamias-faults-", ignore_cleanup_errors=True) as folder:
        setup = ExperimentSetup(folder=Path(folder), seed=seed, share=share, hostile=hostile)
        try:
            result = each.run(setup)
        except (TamiasError, OSError, subprocess.TimeoutExpired) as error:
            result = Result(ok=False, figure=str(error))
        wait_for_end(setup.folder)
    result = msgspec.structs.replace(result, seconds=time.monotonic() - begun)
    out(f"{result.word:8}{each.number:4} {each.name:16} {result.figure} ({result.seconds:.0f} s)")
    return ScorecardRow(
        number=each.number, name=each.name, fault=each.fault, promise=each.promise, result=result
    )
