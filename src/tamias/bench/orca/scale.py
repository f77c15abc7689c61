"""The experiment of scale: a crawl of very many pages; whether its pace and its memory stay as they are."""

import time
from itertools import pairwise
from pathlib import Path

import msgspec

from tamias.bench.crawl.measure import measure
from tamias.bench.crawl.reaper import Measured
from tamias.bench.orca.generated import Endless
from tamias.bench.orca.rivals import Task, tamias
from tamias.bench.orca.serving import serving
from tamias.bench.orca.trial import SCOPE, fault_of
from tamias.bench.orca.visits import read_visits

TENTHS = 10
GRACE_SECONDS = 120.0


class Scale(msgspec.Struct, frozen=True):
    """How a long crawl went."""

    pages: int
    hosts: int
    fetched: int
    known: int
    """Different URLs of the web that a complete reading of the fetched pages knows."""
    measured: Measured
    tenths: list[float]
    """Pages a second in each tenth of the pages that were fetched."""
    data_bytes: int
    database_bytes: int
    fault: str = ""

    @property
    def flatness(self) -> float:
        """Pace in the last tenth over that in the second."""
        return self.tenths[-1] / self.tenths[1] if len(self.tenths) == TENTHS and self.tenths[1] else 0.0


def crawl_endless(web: Endless, folder: Path, seconds: float) -> Scale:
    """Tamias alone: to the end or until its time is over, when it is told to end as a user would."""
    task = Task(web.seeds, folder, SCOPE, options=("--max-time", str(seconds)))
    folder.mkdir(parents=True)
    task.seed_file.write_text("\n".join(task.seeds) + "\n", encoding="utf-8")
    own = tamias(task)
    with serving(web.site_at, web.ports, folder / "servers") as servers:
        measured = measure(own.command, folder, seconds=seconds + GRACE_SECONDS, environment=own.environment)
        time.sleep(1.0)
        visits = [visit for visit in read_visits(servers.logs) if visit.status == "200"]
    times = [visit.seconds for visit in visits]
    fetched = {int(visit.target.rpartition("/")[2]) for visit in visits}
    return Scale(
        pages=web.pages,
        hosts=web.hosts,
        fetched=len(fetched),
        known=len(fetched.union(*map(web.targets, fetched))),
        measured=measured,
        tenths=paces(times),
        data_bytes=size(folder / "data"),
        database_bytes=size(folder / "data" / "pg"),
        fault=fault_of(measured, folder),
    )


def paces(times: list[float]) -> list[float]:
    """Pages a second in each tenth of a crawl; none of a crawl of a few pages."""
    share = len(times) // TENTHS
    if share < 2:
        return []
    edges = [times[turn * share] for turn in range(TENTHS)] + [times[-1]]
    return [share / (after - before) if after > before else 0.0 for before, after in pairwise(edges)]


def size(folder: Path) -> int:
    """Bytes under a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.exists() else 0
