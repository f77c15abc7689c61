"""F19: bytes are missing in the middle of what was crawled."""

from functools import cache
from pathlib import Path
from random import Random

from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine
from benchmarks.webs.sites import NOTHING, SiteAnswer, serving
from benchmarks.webs.wire import WireRequest

HOSTS, EACH, LINES, CUT, TIMES = 4, 10, 800, 100, 10
_WORDS = ("--delay", "0", "--workers", "1", "--depth", "0", "--quiet")


def run(setup: ExperimentSetup) -> Result:
    """Export must give everything else and name the rest, and `check --repair` with a crawl must mend it."""
    random = setup.random()
    times, wrong, unsaid, unmended, most = setup.of(TIMES, 1), 0, 0, 0, 0
    with serving(_page, HOSTS) as web, Machine(setup.folder) as machine:
        seeds = [web.url(host, f"/{number}") for host in web.hosts for number in range(EACH)]
        code = machine.run("crawl", *_WORDS, *seeds)
        whole = _exported(machine, setup.folder / "whole")[1]
        for _ in range(times):
            segment, sound = _cut(machine.data / "rdf", random)
            ended, found = _exported(machine, setup.folder / "cut")
            missing = set(whole) - set(found)
            most = max(most, len(missing))
            wrong += any(found[graph] != whole[graph] for graph in found)
            unsaid += ended != 1 or any(f"missing: {graph}" not in machine.said() for graph in missing)
            machine.run("check", "--repair")
            machine.run("crawl", *_WORDS, *seeds)
            unmended += _exported(machine, setup.folder / "mended") != (0, whole)
            segment.write_bytes(sound)  # the next cut is the only one again
    return Result(
        ok=code == wrong == unsaid == unmended == 0 and 0 < most < len(whole) // 2,
        figure=f"{CUT} bytes cut {times} times: at most {most} of {len(whole)} documents missing,"
        f" {unsaid} times not reported, {wrong} times others damaged,"
        f" {unmended} times not repaired by a crawl",
    )


@cache
def _body(path: str) -> bytes:
    random = Random(path)
    return "".join(f'<#{n}> <#says> "{random.randbytes(60).hex()}" .\n' for n in range(LINES)).encode()


def _page(asked: WireRequest) -> SiteAnswer:
    return SiteAnswer(body=_body(asked.path)) if asked.path.removeprefix("/").isdigit() else NOTHING


def _cut(folder: Path, random: Random) -> tuple[Path, bytes]:
    """The file, and what it was before."""
    segment = max(folder.glob("*.nq.zst"), key=lambda path: path.stat().st_size)
    content = segment.read_bytes()
    place = random.randrange(len(content) - CUT)
    segment.write_bytes(content[:place] + content[place + CUT :])
    return segment, content


def _exported(machine: Machine, file: Path) -> tuple[int, dict[str, set[bytes]]]:
    """How it ended, and the statements of each document."""
    code = machine.run("export", "-o", str(file))
    graphs: dict[str, set[bytes]] = {}
    for line in file.read_bytes().splitlines():
        graphs.setdefault(line.rsplit(b" ", 2)[1].strip(b"<>").decode(), set()).add(line)
    return code, graphs
