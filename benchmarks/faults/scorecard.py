"""The scorecard: what was broken on purpose, what is promised, what came of it; written for people."""

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

What was broken on purpose, what Tamias promises for it, and what came of it. The page is written by the
command, and anyone can repeat it:

```sh
python -m benchmarks hostile --sites 40 --pages 50 --json > hostile.json
python -m benchmarks soak --minutes 30 --json > soak.json
python -m benchmarks faults --full --hostile hostile.json --soak soak.json --scorecard docs/reliability.md
```

`python -m benchmarks faults NAME` runs one experiment, `--quick` all of them small, `--full` in the size
that the table names. `python -m benchmarks soak` is the long run: a changing web, workers killed and
joined, the database killed, the disk filled and freed, while the invariants below are checked.
"""

_HOW = """## How the faults are made

- Deaths are SIGKILL, by the number of a process, or inside a commit by `TAMIAS_FAULT`
  ([architecture.md](architecture.md#faults-on-purpose)), which a service that others can reach refuses.
- The name service and the cable of F15 to F17 are real ones in network namespaces
  (`benchmarks/webs/island.py`), which takes root; dead hosts are packets that are
  dropped, and connections on which nothing is ever said.
- The network is broken by a proxy of our own (`benchmarks/webs/proxy.py`): it delays, resets, cuts,
  drips, or lets nothing pass and tells nobody.
- The disk is a small one in memory; to mount it takes root, and without it the experiment is skipped.
- Clocks, short writes and failed writes are made inside the processes (`benchmarks/faults/inside.py`):
  Python's wall clock and its `os.write` are replaced. The clock of the database is not touched.
- The power cut is a model: a record is kept of what was synced, all processes are stopped, and what would be
  left of the archive's files is read against the rows that are committed at that moment.
- Everything that is drawn by chance is drawn from `--seed`; when a process reaches a place is the system's.

## Invariants of the long run

No URL under watch is unknown to the archive. Every version that the archive has shown to have (it sent the
ETag) is there. No version is there twice, and none that no server sent. No request comes before the delay of
its host is over, and no host has two at once. When the web stands still, the last state of every page is
archived. Memory and open files of the service, its worker and the database do not grow in the last half.
"""

_NOT = """## What Tamias does not promise

- **Exactly one request.** A worker that dies takes with it what it had fetched and not committed: it is
  fetched again, and if the page has changed meanwhile, the state in between is not in the archive.
- **A document that two workers died over.** It is blamed for their deaths and set aside, whoever killed
  them; its record says so.
- **A broken database server.** What PostgreSQL has lost, or what a disk that lies about syncing has lost,
  is lost; `tamias check` tells, and `tamias backup` is there for that.
- **The database's clock.** All times are those of the database. When its clock is set ahead, all that is due
  by then is due; when it is set back, time stands still until it is reached again.
- **Repair of flipped bits.** They are found and told, and the body is not given back; it comes back from a
  backup, or from the web if the web still has it.
- **One count of monotonous pages for all workers.** `permit.host_visits` and `permit.host_budget` are
  counted with the host for all workers; so are the pages of `permit.monotony` (alike but for numbers).
- **Speed while something is broken.** While the database is away or the disk is full, nothing is fetched.
- **Politeness across archives.** Two Tamias with two databases do not know of each other.
- **Machines without Linux**: nothing of this was measured elsewhere.
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
    size = "in the size the table names" if share == 1 else f"at {share:.0%} of the size the table names"
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
        "## The long run\n",
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
