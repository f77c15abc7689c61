"""`python -m benchmarks faults`: the table of experiments, run one after another, and their page."""

import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.faults.experiment import ExperimentSetup, Fault, FaultExperiment, Result
from benchmarks.faults.experiments import deaths, disk, network
from benchmarks.faults.experiments.by_tests import by_tests
from benchmarks.faults.experiments.network import judged
from benchmarks.measuring.workspace import wait_for_end
from tamias.model.errors import TamiasError, UsageError

_HEAD = """# Faults and what came of them

This page lists the faults we inject, what Tamias promises for each, and the results. A command
writes it, and you can repeat it:

```sh
python -m benchmarks hostile --sites 40 --pages 50 --json > hostile.json
python -m benchmarks faults --full --hostile hostile.json --scorecard docs/benchmarks/reliability.md
```

`python -m benchmarks faults NAME` runs one experiment, `--quick` all of them at a small size, `--full` at the
size in the table.
"""

_HOW = """## How the faults are made

- Processes are killed with SIGKILL, by process id, or inside a commit by `TAMIAS_FAULT`
  ([internals.md](../internals.md#faults-on-purpose)). A service that others can reach refuses this
  variable.
- F15 and F20 to F23 are tests, which the command runs. The name server and the networks of F15 and F23 are
  real ones in network namespaces (`tests/networks`), which needs root; dead hosts drop packets, or accept
  connections and never send anything.
- A proxy of our own breaks the network (`benchmarks/webs/proxy.py`): it delays, resets, cuts,
  drips, or silently lets nothing pass.
- The disk is a small one in memory. Mounting it needs root; without root the experiment is skipped.
- Clock jumps, short writes and failed writes are made inside the processes (`benchmarks/faults/inside.py`):
  Python's wall clock and its `os.write` are replaced. The clock of the database is not changed.
- The power cut is a model: the experiment records what was synced, stops all processes, and compares what
  would be left of the archive's files with the rows that are committed at that moment.
- All random choices come from `--seed`; when a process reaches a place depends on the system.
"""


class ScorecardRow(Fault, frozen=True):
    """A fault, and what came of it."""

    result: Result


def page(rows: Sequence[ScorecardRow], share: float, hostile: Path | None = None) -> str:
    """The page as Markdown; `hostile` is a file of what that benchmark printed with `--json`."""
    size = "at the size in the table" if share == 1 else f"at {share:.0%} of the size in the table"
    parts = [_HEAD, f"## Faults\n\nMeasured {machine()}, {size}.\n", _faults(rows)]
    if hostile is not None:
        report = msgspec.json.decode(hostile.read_bytes())
        figure = judged(report).figure
        parts += [f"## Hostile servers\n\n{figure[:1].upper()}{figure[1:]}.\n", _attacks(report)]
    else:
        parts.append("## Hostile servers\n\nSee [hostile-web.md](../hostile-web.md).\n")
    return "\n".join([*parts, _HOW])


def machine() -> str:
    """When and on what."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[2]
    return (
        f"{time.strftime('%Y-%m-%d')} on {os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB,"
        f" Linux {platform.release().partition('-')[0]}, Python {platform.python_version()},"
        f" with a load of {load:.1f} at the end"
    )


def _faults(rows: Sequence[ScorecardRow]) -> str:
    lines = ["| | fault | promise | figure | |", "|---|---|---|---|---|"]
    for row in rows:
        cells = (f"{row.number} `{row.name}`", row.fault, row.promise, row.result.figure, row.result.word)
        lines.append(_line(cells))
    return "\n".join([*lines, ""])


def _attacks(report: dict[str, Any]) -> str:
    lines = ["| | attack | what stops it | |", "|---|---|---|---|"]
    for each in report["verdicts"]:
        word = "contained" if each["contained"] else f"NOT contained: {each['wrong']}"
        lines.append(_line((f"{each['number']} `{each['name']}`", each["what"], each["limit"], word)))
    return "\n".join([*lines, ""])


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


FULL, USUAL, QUICK = 1.0, 0.3, 0.08
Out = Callable[[str], None]
_row = FaultExperiment


EXPERIMENTS = (
    _row("F1", "worker-killed", "workers killed at 100 random moments of a crawl of 10,000 URLs",
         "no URL lost, no version duplicated, at most 1.5 % fetched again", deaths.worker_killed),
    _row("F2", "database-killed", "the database killed 30 times under a million URLs",
         "nothing acknowledged is lost; the next lease within 5 s", deaths.database_killed),
    _row("F3", "commit-killed", "processes killed between any two steps of a commit, 20 times each",
         "no row without its bytes, nothing lost or duplicated, `check` finds nothing after one repair",
         deaths.commit_killed),
    _row("F4", "power-cut", "the power fails at 200 moments: what was not synced is gone",
         "every committed row has its bytes, every time", disk.power_cut),
    _row("F5", "disk-full", "an archive on a disk of 64 MiB that is filled and freed",
         "fetching stops within 2 s and says so, resumes within 10 s; nothing lost or torn", disk.disk_full),
    _row("F6", "bad-writes", "1 % of all writes short or failed, 5,000 versions",
         "no version corrupt, none lost", disk.bad_writes),
    _row("F7", "partition", "a worker disconnected from the database for 60 s, leases of 20 s",
         "its hosts taken over within 25 s, none of its late results accepted", deaths.partition),
    _row("F8", "frozen", "a worker frozen for 60 s, leases of 20 s",
         "the same, and never two requests at once to a host", deaths.frozen),
    _row("F9", "clock", "the clock of all processes jumps by an hour, ahead and back",
         "nothing requested early or twice: requests within 1 % of what is needed", deaths.clock),
    _row("F10", "hostile", "all attacks of the hostile web among 2,000 good pages",
         "all contained, good sites complete in 1.3 times the time, 1.5 GiB, no canary touched",
         network.hostile),
    _row("F11", "politeness", "8 workers, 2 far, killed and joined for 5 min; 50 hosts, Crawl-delay 1",
         "no request within a second of the end of the last one, none to forbidden paths", deaths.politeness),
    _row("F12", "bad-network",
         "10 % of responses cut, 5 % reset, 5 % 503, others dripping, half open or late",
         "all pages complete after retries, no cut body accepted as complete, Retry-After respected",
         network.bad_network),
    _row("F13", "blob-flipped", "50 single bits flipped in what is stored",
         "`check` reports each that damages a body, and no damaged body is returned", disk.blob_flipped),
    _row("F14", "two-supervisors", "three crawls on one data directory, one of them killed",
         "the work is shared: nothing lost or twice, one request at once to a host", deaths.two_supervisors),
    _row("F15", "outages", "DNS or the network is down for a while, or hosts never answer",
         "the same quads as without the fault, exit 0; dead hosts cost the others nothing",
         by_tests("integration/crawl/test_outages.py")),
    _row("F18", "amplifier", "1,000 hosts whose robots.txt redirects to one victim",
         "the victim is asked one at a time, at its delay, once for each host", network.amplifier),
    _row("F19", "segment-cut", "100 bytes cut out of what was crawled, 10 times",
         "export writes everything else and reports what is missing; `check --repair` and a crawl repair it",
         disk.segment_cut),
    _row("F20", "sandbox-escape", "a document has taken over the sandbox and looks for a way out",
         "no socket, program, process, signal or file of others; no privileges",
         by_tests("hostile/test_sandbox.py")),
    _row("F21", "strategy-escape", "strategies that try to gain rights, on PostgreSQL 15 to 18",
         "none of them ever acts outside its role or runs longer than its time limit",
         by_tests("integration/strategy/test_escapes.py")),
    _row("F22", "grpc-attacks", "a hostile client of the gRPC frontier, eight attacks",
         "every call of a good client is answered; less than 300 MiB",
         by_tests("hostile/test_frontier_attacks.py")),
    _row("F23", "cut-link", "far workers with pages slower than a lease; link cut, service killed",
         "the same quads as without the fault, each page recorded once, no request early",
         by_tests("integration/urlfrontier/test_cut_link.py")),
    _row("F24", "database-away", "an external database dead or frozen for up to 10 min under all commands",
         "nothing lost, recorded twice or early; 503 with Retry-After meanwhile, and work goes on afterwards",
         by_tests("integration/database/test_outages.py")),
)  # fmt: skip


def run(
    names: Sequence[str] = (),
    *,
    share: float = USUAL,
    seed: int = 1,
    hostile: Path | None = None,
    scorecard: Path | None = None,
    out: Out = print,
) -> dict[str, object]:
    """Runs those that are named by number or name, or all; prints a line for each."""
    rows: list[ScorecardRow] = []
    for each in chosen(names):
        rows.append(_tried(each, share, seed, hostile, out))
        if scorecard is not None:  # written again and again, so that a run that is ended leaves what it had
            scorecard.write_text(page(rows, share, hostile), encoding="utf-8")
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
    return ScorecardRow(each.number, each.name, each.fault, each.promise, result)
