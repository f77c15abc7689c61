"""The experiment from seeds to verdict."""

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.faults.kills.graph import SEEDS, LinkGraph
from benchmarks.faults.kills.killer import Killer, Strike, plan
from benchmarks.faults.kills.options import DELAY_MS, HOSTS, PER_HOST
from benchmarks.faults.kills.pool import WorkerPool
from benchmarks.faults.kills.verdict import KillVerdict, judge, stored_rows
from benchmarks.measuring.workspace import wait_for_end, workspace
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
    graph = LinkGraph(urls, hosts)
    with workspace(data) as folder:
        verdict = _crawl(folder, graph, plan(kills, len(graph.closure()), seed), workers, seed)
        verdict.left_running = wait_for_end(folder)
        if not verdict.ok():
            out(f"the workers' logs are kept in {_keep_evidence(folder)}")
    for line in verdict.lines():
        out(line)
    return {"ok": verdict.ok(), **msgspec.to_builtins(verdict)}


def _crawl(folder: Path, graph: LinkGraph, strikes: list[Strike], workers: int, seed: int) -> KillVerdict:
    began = time.monotonic()
    with closing(Database(folder)) as database, closing(database.session()) as session:
        frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=DELAY_MS)
        frontier.put([graph.item(number) for number in range(min(SEEDS, graph.urls))])
        # The crawl is made to last as long as the kills take.
        pause = len(strikes) * _SECONDS_PER_KILL * workers * HOSTS * PER_HOST / graph.urls
        pool = WorkerPool(database, folder, graph, workers, pause)
        killer = Killer(pool, folder, seed)
        pool.start()
        try:
            _kill(pool, killer, strikes)
            _wait(pool, lambda: pool.open == 0)
        finally:
            pool.stop()
        took = time.monotonic() - began
        return judge(graph, pool, frontier, session.transact(stored_rows), took, killer.struck)


def _keep_evidence(folder: Path) -> Path:
    """All but the database, moved to where the experiment does not clean up."""
    kept = Path(tempfile.mkdtemp(prefix="tamias-kills-"))
    for path in folder.iterdir():
        if path.name != "pg":
            shutil.move(path, kept)
    return kept


def _kill(pool: WorkerPool, killer: Killer, strikes: list[Strike]) -> None:
    for strike in strikes:
        point = strike.done
        if not _wait(pool, lambda: pool.done >= point):  # noqa: B023 (called at once)
            return
        time.sleep(strike.gap)
        if not killer.strike(strike.victim):
            pool.trouble.append(f"there was no {strike.victim} to kill")


def _wait(pool: WorkerPool, reached: Callable[[], bool]) -> bool:
    """Waits as long as the crawl moves."""
    while not reached():
        if time.monotonic() - pool.moved_at > _STALL_SECONDS:
            pool.trouble.append(f"nothing moved for {_STALL_SECONDS:.0f} s, {pool.open} URLs still open")
            return False
        time.sleep(0.02)
    return True
