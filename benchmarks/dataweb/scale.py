"""The experiment of scale: a crawl of very many pages; whether its pace, its cost and its memory stay."""

import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import msgspec

from benchmarks.dataweb.crawlers.rivals import CrawlTask, tamias
from benchmarks.dataweb.serving.serving import Servers, serving
from benchmarks.dataweb.trial import SCOPE, fault_of
from benchmarks.dataweb.visits import read_visits
from benchmarks.dataweb.web.generated import Endless
from benchmarks.measuring.budget import DATABASE
from benchmarks.measuring.measure import measure
from benchmarks.measuring.proc import Glance
from benchmarks.measuring.reaper import MeasuredRun
from tamias.crawl.plan.admit import Admission
from tamias.crawl.plan.policy import CRAWL
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.settings import Settings

TENTHS = 10
GRACE_SECONDS = 120.0
PUT_BATCH = 5_000
LIMIT_REACHED = 5
"""The exit code of a crawl whose time was over."""


class Tenth(msgspec.Struct, frozen=True):
    """A tenth of the pages of a crawl."""

    seconds: float
    """When it was over, since the start of the crawl."""
    pages_per_second: float
    cpu_ms: float
    """Processor time for each page, database included."""
    database_ms: float
    """The database's part of it."""


class Leg(msgspec.Struct, frozen=True):
    """One long crawl."""

    fetched: int
    known: int
    """Different URLs of the web in the frontier at its end."""
    complete: bool
    """Whether nothing was left to crawl, so that the last pages came from fewer and fewer hosts."""
    measured: MeasuredRun
    tenths: list[Tenth]
    data_bytes: int
    database_bytes: int
    fault: str = ""

    @property
    def flatness(self) -> float:
        """Pace in the last tenth over that in the second."""
        return ratio([tenth.pages_per_second for tenth in self.tenths])

    @property
    def growth(self) -> float:
        """The same of processor time for a page, which others' load hardly touches."""
        return ratio([tenth.cpu_ms for tenth in self.tenths])


class Scale(msgspec.Struct, frozen=True):
    """A crawl from one page, and one more after many URLs were put into the same frontier."""

    pages: int
    hosts: int
    first: Leg
    put: int = 0
    """URLs that were put between the two crawls."""
    put_seconds: float = 0.0
    second: Leg | None = None


class ScaleOptions(msgspec.Struct, frozen=True):
    """How long each crawl may take, and how many URLs the second one is to find in the frontier (0: none)."""

    seconds: float
    known: int = 0


def crawl_endless(web: Endless, folder: Path, terms: ScaleOptions) -> Scale:
    """Tamias alone: to the end or until its time is over, when it ends as it would for a user."""
    task = CrawlTask(web.seeds, folder, SCOPE, options=("--max-time", str(terms.seconds)))
    folder.mkdir(parents=True)
    task.seed_file.write_text("\n".join(task.seeds) + "\n", encoding="utf-8")
    with serving(web.site_at, web.ports, folder / "servers") as servers:
        first = crawl_once(web, task, servers, terms.seconds)
    if terms.known <= first.known:
        return Scale(web.pages, web.hosts, first)
    larger = msgspec.structs.replace(web, pages=max(web.pages, terms.known))
    began = time.monotonic()
    put = put_pages(larger, folder / "data", terms.known)
    put_seconds = time.monotonic() - began
    with serving(larger.site_at, web.ports, folder / "servers-again") as servers:
        second = crawl_once(larger, task, servers, terms.seconds)
    second = msgspec.structs.replace(second, known=terms.known)
    return Scale(web.pages, web.hosts, first, put, put_seconds, second)


def crawl_once(web: Endless, task: CrawlTask, servers: Servers, seconds: float) -> Leg:
    """One crawl of what is being served."""
    own = tamias(task)
    started = time.monotonic()
    measured = measure(own.command, task.folder, seconds=seconds + GRACE_SECONDS, environment=own.environment)
    time.sleep(1.0)  # the servers write their logs twice a second
    visits = [visit for visit in read_visits(servers.logs, started) if visit.status == "200"]
    fetched = {int(visit.target.rpartition("/")[2]) for visit in visits}
    known = len(fetched.union(*map(web.targets, fetched)))
    return Leg(
        fetched=len(fetched),
        known=known,
        complete=measured.exit_code != LIMIT_REACHED and len(fetched) == known,
        measured=measured,
        tenths=tenths([visit.seconds - started for visit in visits], measured.glances),
        data_bytes=size(task.folder / "data"),
        database_bytes=size(task.folder / "data" / "pg"),
        fault="" if measured.exit_code == LIMIT_REACHED else fault_of(measured, task.folder),
    )


def put_pages(web: Endless, data: Path, count: int) -> int:
    """Makes the first pages of the web known to the frontier, as links would; how many were new."""
    admission = Admission(Settings(), web.seeds)
    new = 0
    with closing(Database(data)) as database, closing(database.session()) as session:
        frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=0)
        for start in range(0, count, PUT_BATCH):
            pages = range(start, min(count, start + PUT_BATCH))
            new += frontier.put(
                [admission.item(web.url(page), page.bit_length(), CRAWL) for page in pages]
            ).new
    return new


def tenths(times: list[float], glances: list[Glance]) -> list[Tenth]:
    """The tenths of a crawl whose pages were fetched at these times; none of a crawl of a few pages."""
    share = len(times) // TENTHS
    if share < 2:
        return []
    edges = [times[turn * share] for turn in range(TENTHS)] + [times[-1]]
    found = []
    for before, after in pairwise(edges):
        cpu, database = (spent(glances, after, of) - spent(glances, before, of) for of in (None, DATABASE))
        pace = share / (after - before) if after > before else 0.0
        found.append(Tenth(after, pace, 1000 * cpu / share, 1000 * database / share))
    return found


def spent(glances: list[Glance], seconds: float, name: str | None = None) -> float:
    """Processor time until then, between two glances in proportion; of all programs, or of one."""
    before, cpu_before = 0.0, 0.0
    for glance in glances:
        cpu = sum(glance.cpu.values()) if name is None else glance.cpu.get(name, 0.0)
        if glance.seconds >= seconds:
            part = (seconds - before) / (glance.seconds - before) if glance.seconds > before else 1.0
            return cpu_before + part * (cpu - cpu_before)
        before, cpu_before = glance.seconds, cpu
    return cpu_before


def ratio(values: list[float]) -> float:
    """The last tenth over the second; 0 where there are none."""
    return values[-1] / values[1] if len(values) == TENTHS and values[1] else 0.0


def size(folder: Path) -> int:
    """Bytes under a folder, without the write-ahead log, whose size is a setting."""
    files = [file for file in folder.rglob("*") if "pg_wal" not in file.parts] if folder.exists() else []
    return sum(file.stat().st_size for file in files if file.is_file())
