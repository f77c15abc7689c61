"""F23: far workers with pages slower than a lease, their link cut, and the service killed meanwhile."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from pyoxigraph import NamedNode as Iri
from pyoxigraph import Quad, RdfFormat, parse

from benchmarks.faults.evidence import evidence
from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine, wait_until
from benchmarks.faults.site import PageTree
from benchmarks.webs.far_networks import SERVICE, FarNetworks, command_in, enter
from benchmarks.webs.island import why_not
from benchmarks.webs.server import in_thread
from benchmarks.webs.sites import LoopbackSites, SiteAnswer, waits
from benchmarks.webs.wire import WireRequest
from tamias.database.connect import Database, Session

HOSTS, EACH = 3, 16
LEASE, SLOW, DELAY = 5.0, 8.0, 0.2
CUT, SHORT_CUT = 60, 8
PATIENCE = 300.0
_ADDRESS = re.compile(r'"address": ?"([^"]+)"')
_OPEN = "SELECT coalesce(sum(open), 0)::int8, coalesce(sum(known), 0)::int8 FROM queue WHERE crawl = 1"


class _SlowPages(PageTree):
    """Every fourth page takes longer than a lease."""

    def __call__(self, asked: WireRequest) -> SiteAnswer:
        self.pause = SLOW if asked.path.endswith(("1", "5", "9")) else 0.0
        return super().__call__(asked)


def run(setup: ExperimentSetup) -> Result:
    """All pages once each, at the delay; none of it depends on how long the link is cut."""
    if (missing := why_not()) is not None:
        return Result(figure=missing)
    cut, tree = setup.of(CUT, SHORT_CUT), _SlowPages(EACH)
    with (
        FarNetworks(HOSTS) as networks,
        _serving(networks, tree) as web,
        Machine(setup.folder, FRONTIER__LEASE=str(LEASE)) as machine,
    ):
        machine.run("crawl", "--delay", str(DELAY), "--max-time", "0", *tree.first(web))
        _outage(machine, networks, web, cut)
        with closing(Database(machine.data)) as database, closing(database.session()) as session:
            took = wait_until(lambda: _is_done(session), PATIENCE, "all pages were visited")
        machine.close()
        requests, between = len(web.pages()), waits(web.pages())
        found, expected = _quads(machine), _expected(tree.truth(web))
        twice = evidence(machine.data).twice()
    early = sum(wait < DELAY for wait in between)
    return Result(
        ok=found == expected and twice == early == 0,
        figure=f"link cut for {cut} s, leases of {LEASE:g} s, pages of up to {SLOW:g} s, the service killed"
        f" meanwhile: {len(expected - found)} of {len(expected)} quads missing, {len(found - expected)} too"
        f" many, {twice} pages recorded twice, {requests} requests for {HOSTS * EACH} pages, {early} before"
        f" the delay was over (least {min(between):.3f} s of {DELAY:g} s); complete {took:.0f} s after"
        f" the link was back",
    )


def _outage(machine: Machine, networks: FarNetworks, web: LoopbackSites, seconds: float) -> None:
    """The workers begin; the link is cut; the service is killed and started again; the link is back."""
    service = _start_service(machine, networks, "0")
    address = _ADDRESS.findall(machine.said())[-1]
    words = ("--frontier", address, "--workers", "2", "--scratch", str(machine.folder / "scratch"))
    machine.start("worker", *words, "--allow-private", before=command_in(networks.workers))
    wait_until(lambda: len(web.pages()) > HOSTS, PATIENCE, "the workers began")
    networks.plug(plugged=False)
    time.sleep(seconds / 2)
    service.kill()
    service.wait()
    _start_service(machine, networks, address.rpartition(":")[2])
    time.sleep(seconds / 2)
    networks.plug(plugged=True)


def _start_service(machine: Machine, networks: FarNetworks, port: str) -> "subprocess.Popen[bytes]":
    told = len(_ADDRESS.findall(machine.said()))
    words = ("--host", SERVICE, "--port", port, "--json")
    service = machine.start("frontier", *words, before=command_in(networks.servers))
    wait_until(lambda: len(_ADDRESS.findall(machine.said())) > told, PATIENCE, "the service told its address")
    return service


def _is_done(session: Session) -> bool:
    return session.transact(lambda cursor: cursor.execute(_OPEN).fetchone()) == (0, HOSTS * EACH)


def _quads(machine: Machine) -> set[str]:
    program = [sys.executable, "-m", "tamias", "export", "--data", str(machine.data)]
    done = subprocess.run(program, check=True, capture_output=True, text=True, env=machine.environment)
    return set(done.stdout.splitlines())


def _expected(truth: dict[str, bytes]) -> set[str]:
    return {
        f"{Quad(each.subject, each.predicate, each.object, Iri(url))} ."
        for url, body in truth.items()
        for each in parse(body, format=RdfFormat.TURTLE, base_iri=url)
    }


@contextmanager
def _serving(networks: FarNetworks, tree: PageTree) -> Iterator[LoopbackSites]:
    web = LoopbackSites(tree, networks.web)

    async def open_there() -> None:
        enter(networks.servers)
        await web.open()

    with in_thread() as do:
        do(open_there())
        try:
            yield web
        finally:
            do(web.close())
