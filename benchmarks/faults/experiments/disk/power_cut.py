"""F4: the power fails, and all that was written and not synced is gone."""

import shutil
import signal
import time
from contextlib import closing
from pathlib import Path

from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.inside import asking_for
from benchmarks.faults.machine import Machine, kill, wait_until
from benchmarks.faults.site import PageTree
from benchmarks.webs.sites import serving
from tamias.archive.blobs import LocalPacks
from tamias.archive.blobs.check import BlobCheck
from tamias.archive.references import segments
from tamias.database.connect import Database, Session

CUTS, HOSTS, EACH = 200, 10, 40
_WORDS = ("--delay", "0.2", "--workers", "1", "--sink", "archive", "--quiet")


def run(setup: ExperimentSetup) -> Result:
    """At 200 moments everything stands still and what would be left is read to the last byte."""
    cuts, random, bad = setup.of(CUTS, 8), setup.random(), list[str]()
    pages, log = PageTree(setup.of(4 * EACH, EACH)), setup.folder / "synced"
    more = asking_for("syncs", log)
    done = rows = 0
    with (
        serving(pages, HOSTS) as web,
        Machine(setup.folder) as machine,
        closing(Database(machine.data)) as database,
        closing(database.session()) as session,
    ):
        crawl = machine.start("crawl", *_WORDS, *pages.first(web), more=more)
        wait_until(lambda: log.exists() and web.pages(), 60, "the crawl began")
        while done < cuts and crawl.poll() is None:
            time.sleep(random.uniform(0.01, 0.1))
            stopped = [pid for pid in machine.workers(crawl) if kill(pid, signal.SIGSTOP)]
            try:
                problems, rows = _after_a_cut(machine.data, log, setup.folder / "left", session)
                bad += problems
            finally:
                for pid in stopped:
                    kill(pid, signal.SIGCONT)
            done += 1
    return Result(
        ok=done > 0 and rows > 0 and not bad,
        figure=f"{done - len(bad)} of {done} cuts left every committed row with its bytes ({rows} blobs at"
        " the last); the database's own log is PostgreSQL's" + "".join(f"; {each}" for each in bad[:1]),
    )


def _after_a_cut(data: Path, log: Path, left: Path, session: Session) -> tuple[list[str], int]:
    """What is wrong with what would be left, at most one thing; and the blobs that are there."""
    synced, named = _synced(log)
    shutil.rmtree(left, ignore_errors=True)
    left.mkdir()
    for pack in (data / "blobs").glob("*.pack"):
        if str(pack) in named:
            (left / pack.name).write_bytes(pack.read_bytes()[: synced.get(str(pack), 0)])
    check = BlobCheck(LocalPacks(left), session)
    wrong = [damage.problem for damage in check.damages() if damage.sha256 is not None]
    sizes = {Path(path).name: size for path, size in synced.items()}
    for segment in segments(session):
        size = sizes.get(segment.name, 0)
        if segment.committed > size:
            wrong.append(f"segment {segment.name} has {segment.committed} bytes committed and {size} synced")
    return wrong[:1], check.blobs


def _synced(log: Path) -> tuple[dict[str, int], set[str]]:
    """The size of each file that is sure, and the names that are."""
    sizes: dict[str, int] = {}
    names = set()
    for line in log.read_text(encoding="utf-8").splitlines():
        path, _, fact = line.partition("\t")
        if fact == "named":
            names.add(path)
        elif fact.isdigit():
            sizes[path] = int(fact)
    return sizes, names
