"""Processes that are killed or frozen, parted from the database, or see the wrong time."""

import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from random import Random
from urllib.parse import urlencode

import msgspec
from psycopg.conninfo import conninfo_to_dict

from benchmarks.faults.experiment import ExperimentSetup, Result, evidence
from benchmarks.faults.inside import asking_for
from benchmarks.faults.machine import Machine, PageTree, kill, wait_until
from benchmarks.frontier.stores import Workload, finished, load
from benchmarks.webs.proxy import Proxy, to_socket
from benchmarks.webs.server import WireRequest, in_thread
from benchmarks.webs.sites import (
    NOTHING,
    ROBOTS,
    LoopbackSites,
    ServedRequest,
    SiteAnswer,
    by_host,
    gaps,
    most_at_once,
    serving,
    waits,
)
from tamias.archive.captures import corpus_figures
from tamias.database.connect import Database, Session
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.faults import VARIABLE
from tamias.model.item import Item

F1_HOSTS, F1_EACH, F1_KILLS = 25, 400, 100
F1_DELAY = 1.0
MOST_EXTRA = 0.015
F1_WORDS = ("--delay", str(F1_DELAY), "--workers", "2", "--sink", "archive", "--quiet")


def worker_killed(setup: ExperimentSetup) -> Result:
    """10,000 URLs on 25 hosts, a request a second to each, 100 deaths."""
    random, kills = setup.random(), setup.of(F1_KILLS, 3)
    pages = PageTree(setup.of(F1_EACH, 8))
    with (
        serving(Staggered(pages, setup.seed), F1_HOSTS) as web,
        Machine(setup.folder) as machine,
        closing(Database(machine.data)) as database,
        closing(database.session()) as session,
    ):
        crawl = machine.start("crawl", *F1_WORDS, *pages.first(web))
        killed, in_flight, pause = 0, 0, pages.count * F1_DELAY / kills
        while crawl.poll() is None:
            time.sleep(random.uniform(0.5, 1.4) * pause if killed < kills else 0.2)
            workers = machine.workers() if web.pages() and killed < kills else []
            if workers and kill(random.choice(workers)):
                killed += 1
                in_flight += len({(visit.host, visit.path) for visit in web.pages()}) - _committed(session)
        truth, found, asked = pages.truth(web), evidence(machine.data), len(web.pages())
    lost, doubled = found.lost(truth), found.doubled() + found.twice()
    again, extra = asked - len(truth), asked / len(truth) - 1
    return Result(
        ok=crawl.returncode == 0
        and killed > 0
        and lost == doubled == 0
        and not found.damages
        and again <= in_flight
        and extra <= MOST_EXTRA,
        figure=f"{killed} workers killed in {len(truth):,} URLs: {lost} lost, {doubled} doubled,"
        f" {again} fetched again ({extra:.2%}; {in_flight} were in progress when workers died)",
    )


class Staggered(msgspec.Struct, frozen=True):
    """The first page of each host takes a while of its own, so that hosts are not asked in step."""

    pages: PageTree
    seed: int

    def __call__(self, asked: WireRequest) -> SiteAnswer:
        """A page."""
        answer = self.pages(asked)
        if not asked.path.endswith("/1"):
            return answer
        return msgspec.structs.replace(answer, pause=Random(f"{self.seed}/{asked.host}").uniform(0, F1_DELAY))


def _committed(session: Session) -> int:
    return sum(each.attempts for each in corpus_figures(session).outcomes)


URLS, F2_KILLS, BATCH = 1_000_000, 30, 200
MOST_SECONDS = 5.0
_PATIENCE = 60.0


class Client(threading.Thread):
    """Puts, leases and finishes, and remembers what it was told is done."""

    def __init__(self, frontier: PostgresFrontier, workload: Workload, first: int) -> None:
        super().__init__(name="client")
        self._frontier, self._workload, self._next = frontier, workload, first
        self._ended = threading.Event()
        self.put: list[Item] = []
        self.finished = 0
        self.leased_at = 0.0
        self.trouble: Exception | None = None

    def run(self) -> None:
        """Until told to end."""
        try:
            while not self._ended.is_set():
                self._round()
        except Exception as error:  # noqa: BLE001 (the verdict tells it)
            self.trouble = error

    def has_leased_since(self, moment: float) -> bool:
        """Or will not any more."""
        return self.leased_at > moment or self.trouble is not None

    def end(self) -> None:
        """After this round."""
        self._ended.set()
        self.join()

    def _round(self) -> None:
        items = [self._workload.item(number) for number in range(self._next, self._next + BATCH)]
        self._next += BATCH
        self._frontier.put(items)
        self.put += items
        leases = self._frontier.lease(5)
        self.leased_at = time.monotonic()
        held = self._frontier.finish([finished(lease) for lease in leases])
        self.finished += sum(len(lease.tasks) for lease in leases if lease.qid in held)


def database_killed(setup: ExperimentSetup) -> Result:
    """A million URLs, 30 deaths of the server, every acknowledged change looked for afterwards."""
    size, kills, random = setup.of(URLS, 20_000), setup.of(F2_KILLS, 3), setup.random()
    workload, pauses = Workload(10_000), []
    with (
        Machine(setup.folder) as machine,
        closing(Database(machine.data)) as database,
        closing(database.session()) as session,
    ):
        load(session, workload, size)
        frontier = PostgresFrontier(session, same_url=str.__eq__, delay_ms=100)
        client = Client(frontier, workload, size)
        client.start()
        try:
            for _ in range(kills):
                time.sleep(random.uniform(0.1, 0.6))
                wait_until(machine.kill_server, _PATIENCE, "there was a server to kill")
                killed_at = time.monotonic()
                wait_until(partial(client.has_leased_since, killed_at), _PATIENCE, "a lease came")
                pauses.append(client.leased_at - killed_at)
        finally:
            client.end()
        if client.trouble is not None:
            return Result(ok=False, figure=f"the client failed: {client.trouble}")
        lost = sum(
            frontier.put(client.put[place : place + 1000]) for place in range(0, len(client.put), 1000)
        )
        figures = [each for each in frontier.figures().crawls if each.known]
        undone = max(0, sum(each.open - each.known for each in figures) + client.finished)
    return Result(
        ok=lost == undone == 0 and max(pauses) <= MOST_SECONDS,
        figure=f"{kills} deaths at {size:,} URLs: {lost} of {len(client.put):,} puts and {undone} of"
        f" {client.finished:,} finishes lost, next lease after {max(pauses):.2f} s at most",
    )


PLACES = (
    "body-fetched:2",
    "pack-made",
    "blob-part-written:3",
    "blob-written:2",
    "segments-synced:2",
    "blobs-synced:2",
    "links-put:2",
    "captures-inserted:2",
    "before-commit:2",
    "after-commit:2",
    "pack-closed",
)
DEATHS = 20
F3_HOSTS, F3_EACH = 8, 12
F3_SECONDS = 120.0
F3_WORDS = ("--delay", "0.1", "--workers", "2", "--sink", "archive", "--quiet")


def commit_killed(setup: ExperimentSetup) -> Result:
    """Each place kills 20 workers, or as many as come there; then the crawl goes on and is checked."""
    sites = {_name(place): PageTree(F3_EACH, folder=f"/{_name(place)}") for place in PLACES}

    def site(asked: WireRequest) -> SiteAnswer:
        pages = sites.get(asked.path.split("/")[1])
        return pages(asked) if pages else NOTHING

    with (
        serving(site, F3_HOSTS, network="127.71") as web,
        Machine(setup.folder) as machine,
        closing(Database(machine.data)),  # open all the time, so that the server is started once
    ):
        wanted = setup.of(DEATHS, 2)
        deaths = {
            place: _die(machine, place, list(sites[_name(place)].truth(web)), wanted) for place in PLACES
        }
        ended = machine.run("crawl", *F3_WORDS, seconds=F3_SECONDS)
        repaired, checked = machine.run("check", "--repair"), machine.run("check")
        found = evidence(machine.data)
        truth = {url: body for pages in sites.values() for url, body in pages.truth(web).items()}
    lost, doubled = found.lost(truth), found.doubled() + found.twice()
    return Result(
        ok=ended == repaired == checked == lost == doubled == 0
        and not found.damages
        and all(deaths.values()),
        figure=f"{sum(deaths.values())} deaths at {len(PLACES)} places: {lost} of {len(truth)} lost,"
        f" {len(found.set_aside)} set aside as deadly, {doubled} doubled,"
        f" {len(found.damages)} rows without bytes;"
        f" check after one repair ends with {checked}"
        + "".join(f"; nobody came to {place}" for place, count in deaths.items() if not count),
    )


def _name(place: str) -> str:
    return place.partition(":")[0]


def _die(machine: Machine, place: str, seeds: list[str], wanted: int) -> int:
    """Crawls until so many were killed there, or nobody comes there any more; how many were."""
    name = re.escape(_name(place))
    before = len(re.findall(rf"killed at {name}\n", machine.said()))
    deadline = time.monotonic() + F3_SECONDS
    killed = 0
    while killed < wanted and time.monotonic() < deadline:
        crawl = machine.start("crawl", *F3_WORDS, *seeds, more={VARIABLE: place})
        while crawl.poll() is None and killed < wanted and time.monotonic() < deadline:
            time.sleep(0.05)
            killed = len(re.findall(rf"killed at {name}\n", machine.said())) - before
        ended = crawl.poll() == 0
        crawl.kill()
        crawl.wait()
        if ended:
            break
    return killed


LEASE, AWAY = 20.0, 60.0
SPARE_SECONDS = 5.0
PATIENCE = 90.0
HOSTS, EACH = 12, 30
ANSWER_SECONDS = 0.4
"""Long enough that the worker has something under way whenever it is struck."""
ELDER, YOUNGER = "https://elder.test/", "https://younger.test/"


Start = Callable[[Machine, list[str]], subprocess.Popen[bytes]]
Away = Callable[[Machine, subprocess.Popen[bytes]], AbstractContextManager[None]]
"""Strikes the elder crawl's worker for as long as the block lasts."""


def words(contact: str, *more: str) -> tuple[str, ...]:
    """How both crawls are started. The elder may hold half of the hosts, so that there are some for both."""
    usual = ("--delay", "0.5", "--workers", "1", "--sink", "archive", "--quiet")
    most = HOSTS // 2 if contact == ELDER else 4 * HOSTS
    return (*usual, "--contact", contact, "--concurrency", str(most), *more)


def taken_over(setup: ExperimentSetup, start: Start, away: Away, settings: dict[str, str]) -> Result:
    """The elder works alone, the younger joins, the elder is struck and comes back."""
    share, pages = max(0.2, min(1.0, setup.share)), PageTree(EACH, pause=ANSWER_SECONDS)
    lease, gone = LEASE * share, AWAY * share
    settings = {"FRONTIER__LEASE": str(lease), **settings}
    with serving(pages, HOSTS) as web, Machine(setup.folder, **settings) as machine:
        elder = start(machine, pages.first(web))
        wait_until(lambda: len(web.pages()) > HOSTS, PATIENCE, "the first worker was at work")
        younger = machine.start("crawl", *words(YOUNGER))
        wait_until(lambda: _by(web.pages(), YOUNGER), PATIENCE, "the second worker was at work")
        with away(machine, elder):
            struck, seen = time.monotonic(), len(web.log)
            held = {host for host, visits in by_host(web.pages()).items() if ELDER in visits[-1].agent}
            wait_until(
                lambda: held <= by_host(_by(web.pages(seen), YOUNGER)).keys(),
                lease + PATIENCE,
                "the second worker had all hosts",
            )
            waited = time.monotonic() - struck
            time.sleep(max(0.0, struck + gone - time.monotonic()))
        codes = [process.wait(240) for process in (younger, elder)]
        truth, found = pages.truth(web), evidence(machine.data)
        at_once = most_at_once(web.pages())
    lost, twice = found.lost(truth), found.doubled() + found.twice()
    return Result(
        ok=lost == twice == 0
        and at_once == 1
        and waited <= lease + SPARE_SECONDS
        and codes[0] == 0
        and not found.damages,
        figure=f"away {gone:.0f} s with leases of {lease:.0f} s:"
        f" {len(held)} hosts taken over after {waited:.1f} s,"
        f" {twice} stale results accepted, {lost} of {len(truth)} lost,"
        f" at most {at_once} request at once to a host",
    )


def _by(visits: list[ServedRequest], contact: str) -> list[ServedRequest]:
    return [visit for visit in visits if contact in visit.agent]


def partition(setup: ExperimentSetup) -> Result:
    """Nothing passes between the first worker and the database; a second one works beside it."""
    with (
        closing(Database(setup.folder / "data")) as database,
        in_thread() as do,
    ):
        assert database.embedded is not None
        place = conninfo_to_dict(database.embedded.address())
        proxy = Proxy(["127.0.0.1"], to_socket(f"{place['host']}/.s.PGSQL.5432"))
        do(proxy.open())
        through = {"host": "127.0.0.1", "port": proxy.port, "sslmode": "disable"}
        near, far = (f"postgresql:///?{urlencode(each)}" for each in (place, {**place, **through}))

        def start(machine: Machine, seeds: list[str]) -> subprocess.Popen[bytes]:
            return machine.start("crawl", *words(ELDER), "--db", far, *seeds)

        @contextmanager
        def away(_machine: Machine, _crawl: subprocess.Popen[bytes]) -> Iterator[None]:
            do(proxy.part())
            try:
                yield
            finally:
                do(proxy.heal())

        try:
            return taken_over(setup, start, away, {"DB": near})
        finally:
            do(proxy.close())


def frozen(setup: ExperimentSetup) -> Result:
    """SIGSTOP, and after 60 seconds SIGCONT; a second worker joins meanwhile."""
    return taken_over(
        setup, lambda machine, seeds: machine.start("crawl", *words(ELDER), *seeds), _frozen, {}
    )


@contextmanager
def _frozen(machine: Machine, crawl: subprocess.Popen[bytes]) -> Iterator[None]:
    stopped = [pid for pid in machine.workers(crawl) if kill(pid, signal.SIGSTOP)]
    try:
        yield
    finally:
        for pid in stopped:
            kill(pid, signal.SIGCONT)


F9_HOSTS, F9_EACH = 20, 30
HOUR = 3600
F9_DELAY = 0.4
MOST_OFF = 0.01
F9_WORDS = ("--delay", str(F9_DELAY), "--workers", "2", "--sink", "archive", "--quiet")


def clock(setup: ExperimentSetup) -> Result:
    """Every process of Tamias sees the jumps; what counts is the database's time and the monotonic clock."""
    pages = PageTree(setup.of(F9_EACH, 8))
    offset = setup.folder / "offset"
    with serving(pages, F9_HOSTS) as web, Machine(setup.folder) as machine:
        machine.environment |= asking_for("clock", offset)
        crawl = machine.start("crawl", *F9_WORDS, *pages.first(web))
        for turn, jump in enumerate((HOUR, -HOUR, 0), 1):
            part = partial(_is_done, web, crawl, turn * F9_HOSTS * pages.count // 4)
            wait_until(part, 120, "a quarter more was done")
            offset.write_text(str(jump), encoding="ascii")
        code = crawl.wait(240)
        truth, found = pages.truth(web), evidence(machine.data)
        asked, early = len(web.pages()), sum(gap < F9_DELAY - 0.005 for gap in gaps(web.pages()))
    off = asked / len(truth) - 1
    lost, twice = found.lost(truth), found.doubled() + found.twice()
    return Result(
        ok=code == lost == twice == early == 0 and abs(off) <= MOST_OFF,
        figure=f"+1 h, -1 h and back: {asked} requests for {len(truth)} pages ({off:+.2%}),"
        f" {early} too early,"
        f" {lost} lost, {twice} twice",
    )


def _is_done(web: LoopbackSites, crawl: subprocess.Popen[bytes], requests: int) -> bool:
    return len(web.pages()) >= requests or crawl.poll() is not None


F11_HOSTS, F11_SECONDS, EVERY = 50, 300, 5.0
NEAR, FAR = 6, 2
F11_DELAY = 1.0
PAUSE = 0.1
"""A request takes time, also when nobody waits for its answer any more."""
ROBOTS_TEXT = "User-agent: *\nCrawl-delay: 1\nDisallow: /2\n"
"""/2 and all that begins so."""
F11_WORDS = ("--delay", "0.1", "--quiet", "--sink", "archive")


def politeness(setup: ExperimentSetup) -> Result:
    """50 hosts with Crawl-delay 1 and eight workers, a death every five seconds, newcomers for the dead."""
    lasting, random = setup.of(F11_SECONDS, 20), setup.random()
    deaths = joined = 0
    with (
        serving(PageTree(100_000, robots=ROBOTS_TEXT, pause=PAUSE), F11_HOSTS) as web,
        Machine(setup.folder) as machine,
    ):
        seeds = [web.url(host, f"/{number}") for host in web.hosts for number in range(1, 10)]
        machine.start("crawl", *F11_WORDS, "--workers", str(NEAR), *seeds)
        wait_until(web.pages, PATIENCE, "the crawl began")
        _, address = machine.start_service("--port", "0")
        scratch = ("--scratch", str(machine.folder / "scratch"))
        machine.start("worker", "--frontier", address, "--workers", str(FAR), "--allow-private", *scratch)
        begun = time.monotonic()
        while time.monotonic() - begun < lasting:
            time.sleep(EVERY)
            workers = machine.workers()
            deaths += bool(workers) and kill(random.choice(workers))
            if len(workers) < NEAR + FAR:
                machine.start("crawl", *F11_WORDS, "--workers", "1")
                joined += 1
        machine.close()
        visits = web.pages()
        between = waits(visits)
        early = sum(wait < F11_DELAY for wait in between)
        forbidden = sum(visit.path.startswith("/2") for visit in visits)
        read = by_host(visit for visit in web.log if visit.path == ROBOTS)
        robots, at_once = max(map(len, read.values()), default=0), most_at_once(visits)
    well = early == forbidden == 0 and at_once == 1
    return Result(
        ok=well and 0 < robots <= 1 + deaths and deaths > 0 and len(visits) > F11_HOSTS,
        figure=f"{deaths} deaths, {joined} joined in {lasting} s: {len(visits):,} requests,"
        f" {early} before a second was over since the end of the one before"
        f" (least {min(between, default=0):.3f} s), at most {at_once} at once,"
        f" {forbidden} to forbidden paths, robots.txt at most {robots} times a host",
    )


F14_HOSTS, F14_EACH = 20, 40
F14_WORDS = ("--delay", "0.2", "--workers", "1", "--sink", "archive", "--quiet")


def two_supervisors(setup: ExperimentSetup) -> Result:
    """Three supervisors share the work; the first of them is killed half way."""
    pages = PageTree(setup.of(F14_EACH, 10))
    with serving(pages, F14_HOSTS) as web, Machine(setup.folder) as machine:
        crawls = [machine.start("crawl", *F14_WORDS, *pages.first(web)) for _ in range(3)]
        half = F14_HOSTS * pages.count // 2
        wait_until(lambda: len(web.pages()) >= half, 240, "half of the pages were asked for")
        kill(crawls[0].pid)
        codes = [crawl.wait(240) for crawl in crawls[1:]]
        truth, found = pages.truth(web), evidence(machine.data)
        asked, at_once = len(web.pages()), most_at_once(web.pages())
    lost, twice = found.lost(truth), found.doubled() + found.twice()
    return Result(
        ok=codes == [0, 0] and lost == twice == 0 and at_once == 1 and not found.damages,
        figure=f"3 crawls on one directory, one killed: {lost} of {len(truth)} lost, {twice} twice,"
        f" {asked - len(truth)} fetched again, at most {at_once} request at once to a host",
    )
