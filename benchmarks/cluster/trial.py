"""One crawl on a Citus cluster while something breaks; complete, each page once, polite?"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from pyoxigraph import NamedNode as Iri
from pyoxigraph import Quad, RdfFormat, parse

from benchmarks.faults.machine import Machine, PageTree, kill, wait_until
from benchmarks.measuring.children import free_ports
from benchmarks.measuring.proc import members
from benchmarks.webs.proxy import Proxy, to_port
from benchmarks.webs.server import in_thread
from benchmarks.webs.sites import LoopbackSites, serving, waits
from tamias.database.citus import read_shards
from tamias.frontier.keys import bucket_of, host_hash
from tamias.model.errors import TamiasError

BUCKETS, SHARDS = 16, 8
LEASE, DELAY = 15.0, 0.3
LEAST_PAGES = 20
PATIENCE = 400.0
STORE = "s3://tamias/archive"


class Size(msgspec.Struct, frozen=True):
    """How long things are away, and what is crawled."""

    seconds: float = 60.0
    hosts: int = 12
    pages: int = 250
    """On a host. At the delay of a trial they outlast what is away."""


class TrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the crawl came to."""

    complete: bool
    once: bool
    polite: bool
    figure: str

    @property
    def ok(self) -> bool:
        """Whether all of it is as promised."""
        return self.complete and self.once and self.polite


class Trial:
    """A crawl, and all that can be done to it. `cluster` is of `servers.citus`, in tests/interop."""

    def __init__(
        self, folder: Path, cluster: Any, size: Size, *, far: bool, nodes: int | None = None
    ) -> None:
        self.cluster, self.size, self.far = cluster, size, far
        self.name = f"trial_{os.urandom(4).hex()}"
        self._db: str = cluster.make_database(self.name, nodes)
        settings = {
            "DB": self._db,
            "FRONTIER__BUCKETS": str(BUCKETS),
            "FRONTIER__LEASE": str(LEASE),
            "SECRET": "of the trial",
        }
        self.machine = Machine(folder, **settings)
        self.tree = PageTree(size.pages)
        self.crawl: subprocess.Popen[bytes] | None = None
        self.service: subprocess.Popen[bytes] | None = None
        self.link: Proxy | None = None
        self.do: Callable[[Any], Any] | None = None
        """Runs what concerns the link."""
        self.moment: tuple[float, float] | None = None
        """From when to when something was away or on the move."""
        self.longest_pause: float | None = None
        """Between requests meanwhile, to hosts that it should not concern."""
        self.spared: set[str] = set()
        """Hosts that this should not concern."""

    def run(self, breaking: Callable[["Trial", LoopbackSites], None]) -> TrialResult:
        """Crawls while something breaks; then all is compared with what the servers know."""
        with self.machine, serving(self.tree, self.size.hosts) as web, in_thread() as do:
            try:
                if self.machine.run("cluster init", "--shards", str(SHARDS)) != 0:
                    raise TamiasError(f"the tables could not be distributed: {self.machine.tail()}")
                self._start(web, do)
                wait_until(lambda: len(web.pages()) > LEAST_PAGES, PATIENCE, "the crawl began")
                breaking(self, web)
                wait_until(self._is_over, PATIENCE, f"all was crawled; {self.machine.tail()}")
            finally:
                self.machine.close()
                if self.link is not None:
                    do(self.link.close())
            return self._judged(web)

    def drop(self) -> None:
        """The database, on all servers."""
        self.cluster.drop_database(self.name)

    def _start(self, web: LoopbackSites, do: Callable[[Any], Any]) -> None:
        words = ["--delay", str(DELAY), *self.tree.first(web)]
        if not self.far:
            self.crawl = self.machine.start("crawl", "--workers", "2", *words)
            return
        self.machine.run("crawl", "--in-service", *words)
        (port, through) = free_ports(2)
        self.start_service(port)
        self.link = Proxy(["127.0.0.1"], to_port(port))
        self.link.port = through
        do(self.link.open())
        self.do = do
        words = [
            "--frontier",
            f"{self.address.rpartition(':')[0]}:{through}",
            "--workers",
            "2",
            "--allow-private",
        ]
        scratch = str(self.machine.folder / "scratch")
        self.crawl = self.machine.start("worker", *words, "--scratch", scratch)

    def start_service(self, port: int) -> None:
        """`tamias frontier`, at a port."""
        self.port = port
        self.service, self.address = self.machine.start_service("--host", "127.0.0.1", "--port", str(port))

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Notes from when to when something is not as usual."""
        begun = time.monotonic()
        yield
        self.moment = (begun, time.monotonic())

    @contextmanager
    def away(self) -> Iterator[None]:
        """The same; waits for as long as something is to be away."""
        with self.noted():
            yield
            time.sleep(self.size.seconds)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """On the coordinator, as the superuser."""
        found: list[tuple[Any, ...]] = self.cluster.coordinator.execute(statement, self.name)
        return found

    def spare(self, web: LoopbackSites, port: int) -> None:
        """Notes the hosts whose buckets are on other nodes than that of a port."""
        with closing(psycopg.connect(self._db, options="-c search_path=tamias,public")) as connection:
            lost = {each.bucket for each in read_shards(connection.cursor()) if each.port == str(port)}
        self.spared = {host for host in web.hosts if bucket_of(host_hash(host), BUCKETS) not in lost}

    def _is_over(self) -> bool:
        assert self.crawl is not None
        if not self.far:
            return self.crawl.poll() is not None
        with suppress(psycopg.Error), closing(psycopg.connect(self._db)) as connection:
            asked = "SELECT sum(open), sum(known) FROM tamias.queue WHERE crawl = 1"
            row = connection.execute(asked).fetchone()
            return row is not None and row[0] == 0 and row[1] >= self.size.hosts * self.size.pages
        return False

    def _judged(self, web: LoopbackSites) -> TrialResult:
        truth, pages = self.tree.truth(web), web.pages()
        quads, expected = self._quads(), _expected(truth)
        with closing(psycopg.connect(self._db)) as connection:
            asked = "SELECT url, count(*) FROM tamias.capture WHERE outcome = 1 GROUP BY url"
            recorded: Counter[str] = Counter(dict(connection.execute(asked).fetchall()))
        early = sum(wait < DELAY for wait in waits(pages))
        twice = sum(count > 1 for count in recorded.values())
        missing = len(truth.keys() - recorded.keys())
        figure = (
            f"{len(truth) - missing} of {len(truth)} pages, {len(expected & quads)} of {len(expected)} quads,"
            f" {twice} recorded twice, {len(pages)} requests, {early} early"
            f" (least {min(waits(pages)):.2f} s of {DELAY:g} s)"
        )
        if self.moment is not None:
            figure += f"; {self._went_on(web, *self.moment)}"
        if self.crawl is not None and not self.far and self.crawl.returncode:
            figure += f"; exit {self.crawl.returncode}: {self.machine.tail()}"
        complete = missing == 0 and quads == expected
        return TrialResult(complete=complete, once=twice == 0, polite=early == 0, figure=figure)

    def _went_on(self, web: LoopbackSites, begun: float, ended: float) -> str:
        """What happened meanwhile, and when the rest went on."""
        pages = web.pages()
        spared = self.spared or set(web.hosts)
        whose = "other nodes' hosts" if self.spared else "all hosts"
        times = [each.at for each in pages if each.host in spared]
        meanwhile = [at for at in times if begun <= at <= ended]
        # The hosts may have been done with before the end.
        moments = [begun, *meanwhile, *([ended] if max(times) > ended else [])]
        longest = max((after - before for before, after in pairwise(moments)), default=0.0)
        self.longest_pause = longest if meanwhile else None
        others = [each.at for each in pages if each.host not in self.spared and each.at > ended]
        said = f"in {ended - begun:.0f} s {len(meanwhile)} requests to {whose}, longest pause {longest:.1f} s"
        return f"{said}; the rest went on after {min(others) - ended:.1f} s" if others else said

    def _quads(self) -> set[str]:
        program = [sys.executable, "-m", "tamias", "export", "--data", str(self.machine.data)]
        done = subprocess.run(
            program, check=True, capture_output=True, text=True, env=self.machine.environment
        )
        return set(done.stdout.splitlines())


def stop(server: Any) -> list[int]:
    """Freezes all processes of a server; returns them."""
    frozen = [server.process.pid, *(process.pid for process in members(server.process.pid))]
    for pid in frozen:
        kill(pid, signal.SIGSTOP)
    return frozen


def _expected(truth: dict[str, bytes]) -> set[str]:
    return {
        f"{Quad(each.subject, each.predicate, each.object, Iri(url))} ."
        for url, body in truth.items()
        for each in parse(body, format=RdfFormat.TURTLE, base_iri=url)
    }
