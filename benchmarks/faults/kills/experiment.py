"""The experiment from seeds to verdict."""

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.faults.kills.graph import SEEDS, Graph
from benchmarks.faults.kills.killer import Killer, Strike, plan
from benchmarks.faults.kills.nurse import Nurse
from benchmarks.faults.kills.orders import DELAY_MS, HOSTS, PER_HOST
from benchmarks.faults.kills.verdict import Verdict, judge, stored_rows
from benchmarks.measuring.workspace import ground, wait_for_end
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier

_SECONDS_PER_KILL = 0.5
_STALL_SECONDS = 180.0


def run(
    *,
    kills: int = 500,
    urls: int = 30_000,
    hosts: int = 1000,
    workers: int = 4,
    seed: int = 1,
    data: Path | None = None,
    out: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Crawls a synthetic web while processes are killed; prints a summary and returns it with `ok`.

    `data` is an empty folder to work in; a temporary one if none is named.
    """
    graph = Graph(urls, hosts)
    with ground(data) as folder:
        verdict = _crawl(folder, graph, plan(kills, len(graph.closure()), seed), workers, seed)
        verdict.left_running = wait_for_end(folder)
        if not verdict.ok():
            out(f"diaries and logs are kept in {_keep_evidence(folder)}")
    for line in verdict.lines():
        out(line)
    return {"ok": verdict.ok(), **msgspec.to_builtins(verdict)}


def _crawl(folder: Path, graph: Graph, strikes: list[Strike], workers: int, seed: int) -> Verdict:
    began = time.monotonic()
    with closing(Database(folder)) as database, closing(database.session()) as session:
        frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=DELAY_MS)
        frontier.put([graph.item(number) for number in range(min(SEEDS, graph.urls))])
        # The crawl is made to last as long as the kills take.
        pause = len(strikes) * _SECONDS_PER_KILL * workers * HOSTS * PER_HOST / graph.urls
        nurse = Nurse(database, folder, graph, workers, pause)
        killer = Killer(nurse, folder, seed)
        nurse.start()
        try:
            _kill(nurse, killer, strikes)
            _wait(nurse, lambda: nurse.open == 0)
        finally:
            nurse.dismiss()
        took = time.monotonic() - began
        return judge(graph, nurse, frontier, session.transact(stored_rows), took, killer.struck)


def _keep_evidence(folder: Path) -> Path:
    """All but the database, moved to where the experiment does not clean up."""
    kept = Path(tempfile.mkdtemp(prefix="tamias-kills-"))
    for path in folder.iterdir():
        if path.name != "pg":
            shutil.move(path, kept)
    return kept


def _kill(nurse: Nurse, killer: Killer, strikes: list[Strike]) -> None:
    for strike in strikes:
        point = strike.done
        if not _wait(nurse, lambda: nurse.done >= point):  # noqa: B023 (called at once)
            return
        time.sleep(strike.gap)
        if not killer.strike(strike.victim):
            nurse.trouble.append(f"there was no {strike.victim} to kill")


def _wait(nurse: Nurse, reached: Callable[[], bool]) -> bool:
    """Waits as long as the crawl moves."""
    while not reached():
        if time.monotonic() - nurse.moved_at > _STALL_SECONDS:
            nurse.trouble.append(f"nothing moved for {_STALL_SECONDS:.0f} s, {nurse.open} URLs still open")
            return False
        time.sleep(0.02)
    return True
