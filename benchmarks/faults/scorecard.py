"""The scorecard: the injected faults, what is promised, the results; as a page."""

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.faults.experiment import Result
from benchmarks.faults.experiments.attacks.hostile import judged

_HEAD = """# Reliability

This page lists the faults we inject, what Tamias promises for each, and the results. A command
writes it, and you can repeat it:

```sh
python -m benchmarks hostile --sites 40 --pages 50 --json > hostile.json
python -m benchmarks soak --minutes 30 --json > soak.json
python -m benchmarks faults --full --hostile hostile.json --soak soak.json --scorecard docs/reliability.md
```

`python -m benchmarks faults NAME` runs one experiment, `--quick` all of them at a small size, `--full` at the
size in the table. `python -m benchmarks soak` is the soak test: a changing web, workers killed and
added, the database killed, the disk filled and freed, while the invariants below are checked.
"""

_HOW = """## How the faults are made

- Processes are killed with SIGKILL, by process id, or inside a commit by `TAMIAS_FAULT`
  ([architecture.md](architecture.md#faults-on-purpose)). A service that others can reach refuses this
  variable.
- The name server and the networks of F15 to F17 and F23 are real ones in network namespaces
  (`benchmarks/webs/island.py`, `benchmarks/webs/far_networks.py`), which needs root; dead hosts drop
  packets, or accept connections and never send anything.
- A proxy of our own breaks the network (`benchmarks/webs/proxy.py`): it delays, resets, cuts,
  drips, or silently lets nothing pass.
- The disk is a small one in memory. Mounting it needs root; without root the experiment is skipped.
- Clock jumps, short writes and failed writes are made inside the processes (`benchmarks/faults/inside.py`):
  Python's wall clock and its `os.write` are replaced. The clock of the database is not changed.
- The power cut is a model: the experiment records what was synced, stops all processes, and compares what
  would be left of the archive's files with the rows that are committed at that moment.
- All random choices come from `--seed`; when a process reaches a place depends on the system.

## Invariants of the soak test

The archive knows every watched URL. Every version that the archive has confirmed (it sent the
ETag) is there. No version is there twice, and each was sent by a server. No request comes before the delay of
its host is over, and no host has two at once. When the web stops changing, the last state of every page is
archived. Memory and open files of the service, its worker and the database do not grow in the last half.
"""

_NOT = """## What Tamias does not promise

- **Exactly one request.** When a worker dies, what it had fetched and not committed is
  fetched again. If the page has changed meanwhile, the state in between is not in the archive.
- **A document that was being read when two workers died.** It is blamed for their deaths and set aside,
  whatever killed them; its record says so.
- **A broken database server.** What PostgreSQL has lost, or a disk that lies about syncing,
  is lost; `tamias check` reports it. Use `tamias backup`.
- **The database's clock.** All times are those of the database. When its clock is set ahead, everything due
  by then becomes due; when it is set back, nothing becomes due until it reaches the old time again.
- **Repair of flipped bits.** They are found and reported, and the body is not returned. You can restore it
  from a backup, or from the web if it still has it.
- **Speed while something is broken.** While the database is away or the disk is full, nothing is fetched.
- **Politeness across archives.** Two installations with two databases do not know of each other.
- **Machines without Linux**: we measured none of this elsewhere.
"""


class ScorecardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the scorecard."""

    number: str
    name: str
    fault: str
    promise: str
    result: Result


def page(
    rows: Sequence[ScorecardRow], share: float, hostile: Path | None = None, soak: Path | None = None
) -> str:
    """The page as Markdown; `hostile` and `soak` are files of what those benchmarks printed with `--json`."""
    size = "at the size in the table" if share == 1 else f"at {share:.0%} of the size in the table"
    parts = [_HEAD, f"## Faults\n\nMeasured {machine()}, {size}.\n", _faults(rows)]
    if hostile is not None:
        report = msgspec.json.decode(hostile.read_bytes())
        parts += [f"## Hostile servers\n\n{_sentence(judged(report).figure)}\n", _attacks(report)]
    else:
        parts.append("## Hostile servers\n\nSee [hostile-web.md](hostile-web.md).\n")
    if soak is not None:
        parts.append(_long_run(msgspec.json.decode(soak.read_bytes())))
    return "\n".join([*parts, _HOW, _NOT])


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


def _long_run(report: dict[str, Any]) -> str:
    last, troubles, word = report["intervals"][-1], report["troubles"], "held" if report["ok"] else "BROKEN"
    lost = last["lost"] + last["urls_lost"]
    lines = [
        "## Soak test\n",
        f"The invariants {word} for {report['minutes']:.0f} minutes: {last['urls']} URLs,"
        f" {last['requests']:,} requests, {last['versions']:,} versions, {lost} lost,"
        f" {last['doubled']} doubled, {last['early']} requests too early; {troubles['death']} workers killed,"
        f" {troubles['newcomer']} joined, {troubles['restart']} times the database killed,"
        f" {troubles['full']} times the disk full.\n",
        *(f"**{breach}**\n" for breach in report["breaches"]),
        "| in the last half | MiB | gained | open files | gained |",
        "|---|---|---|---|---|",
    ]
    for name, each in sorted(report["growth"].items()):
        memory = f"{each['megabytes']:.0f}", f"{each['gained_megabytes']:+.1f}"
        lines.append(_line((name, *memory, f"{each['files']:.0f}", f"{each['gained_files']:+.1f}")))
    return "\n".join([*lines, ""])


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
