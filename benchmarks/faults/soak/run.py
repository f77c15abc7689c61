"""`python -m benchmarks soak`: from the first page to the verdict."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from hashlib import sha256
from pathlib import Path

import msgspec

from benchmarks.faults.machine import Disk, Machine, disk_refusal, small_disk, wait_until
from benchmarks.faults.soak.gauges import Gauges, Growth
from benchmarks.faults.soak.injector import Every, FaultInjector
from benchmarks.faults.soak.invariants import SoakStatus, look, unseen
from benchmarks.faults.soak.web import ChangingWeb
from benchmarks.measuring.ports import free_ports
from benchmarks.measuring.workspace import workspace
from benchmarks.webs.sites import LoopbackSites, serving
from tamias.database.connect import Database, Session
from tamias.model.errors import TamiasError

HOSTS, PAGES = 16, 8
DELAY = 0.5
VISIT_SECONDS = 20
DISK_MEGABYTES = 64
CATCH_UP_SECONDS = 120.0
GAUGE_SECONDS = 5.0
CONCURRENCY = 8
Out = Callable[[str], None]
_SETTINGS = {
    "SCHEDULE__RULE": f"fixed:{VISIT_SECONDS}",
    "SCHEDULE__MIN_INTERVAL": "1",
    "SCHEDULE__RETRY_WAIT": "2",
    "CRAWL__ROOM": "4",
    "FRONTIER__LEASE": "10",
    "FETCH__DELAY": str(DELAY),
    "FETCH__CONCURRENCY": str(CONCURRENCY),
    "SECRET": "for the soak alone",
}


class Soak:
    """One long run."""

    def __init__(self, machine: Machine, web: LoopbackSites, site: ChangingWeb, session: Session) -> None:
        self.machine, self.web, self.site, self.session = machine, web, site, session
        self.gauges = Gauges()
        self.watched: set[str] = set()
        self.begun = time.monotonic()
        self.breaches: list[str] = []

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.begun

    def watch(self, number: int) -> None:
        """One page more of each host is put under watch."""
        new = {self.web.url(host, f"/{number}") for host in self.web.hosts}
        if self.machine.run("add", *sorted(new)) == 0:
            self.watched |= new
        else:
            self.breaches.append(f"pages could not be put under watch: {self.machine.tail()}")

    def look(self) -> tuple[SoakStatus, dict[str, list[str]]]:
        """How things stand; what is wrong is remembered."""
        status, kept = look(self.session, self.site, list(self.web.log), self.watched, DELAY)
        status.seconds = self.seconds
        self.breaches += [f"after {self.seconds:.0f} s: {breach}" for breach in status.breaches]
        return status, kept

    def caught_up(self) -> bool:
        """Whether the last version of every page is what it says now."""
        _, kept = look(self.session, self.site, [], self.watched, DELAY)
        return all(kept.get(url, [""])[-1:] == [self._now(url)] for url in self.watched)

    def _now(self, url: str) -> str:
        host, _, path = url.removeprefix("http://").partition("/")
        return sha256(self.site.body(host.partition(":")[0], f"/{path}")).hexdigest()


def run(
    *,
    minutes: float = 30.0,
    seed: int = 1,
    hosts: int = HOSTS,
    pages: int = PAGES,
    data: Path | None = None,
    out: Out = print,
) -> dict[str, object]:
    """Prints a line for each interval and the verdict; returns all of it with `ok`."""
    site = ChangingWeb(seed)
    with ExitStack() as stack:
        folder = stack.enter_context(workspace(data))
        web = stack.enter_context(serving(site.answer, hosts, network="127.72"))
        disk = _disk(stack, folder / "data" / "blobs", out)
        machine = stack.enter_context(Machine(folder, **_SETTINGS))
        database = stack.enter_context(closing(Database(machine.data)))
        session = stack.enter_context(closing(database.session()))
        soak = Soak(machine, web, site, session)
        return _soaked(soak, disk, minutes * 60, seed, pages, out)


def _soaked(
    soak: Soak, disk: Disk | None, lasting: float, seed: int, pages: int, out: Out
) -> dict[str, object]:
    soak.watch(0)
    elder, _ = (
        soak.machine.start("serve", "--port", str(port), "--workers", "1", "--quiet")
        for port in free_ports(2)
    )
    trouble = FaultInjector(soak.machine, elder, disk, Every().within(lasting / 2), seed)
    statuses = list(_intervals(soak, trouble, elder.pid, lasting, pages, out))
    trouble.free()
    _catch_up(soak, out)
    last, kept = soak.look()
    once = unseen(kept, soak.site.given)
    soak.breaches += _missed(once, trouble)
    growths = soak.gauges.growths(lasting / 2)
    soak.breaches += [
        f"{name} grows: {_growth_line(growth)}" for name, growth in growths.items() if not growth.is_flat
    ]
    return _verdict(soak, trouble, [*statuses, last], growths, len(once), out)


def _catch_up(soak: Soak, out: Out) -> None:
    soak.site.stand_still()
    try:
        took = wait_until(soak.caught_up, CATCH_UP_SECONDS, "every page had its last version in the archive")
        out(f"the web stands still: every page has its last version after {took:.1f} s")
    except TamiasError as error:
        soak.breaches.append(str(error))


def _missed(once: list[tuple[str, int]], trouble: FaultInjector) -> Iterator[str]:
    """A state may go with the worker that had it; not with two workers, nor more than they had under way."""
    for url, times in once:
        if times > 1:
            yield f"a state of {url} was sent {times} times and is no version"
    deaths = trouble.counts["death"] + trouble.counts["restart"] + trouble.counts["full"]
    if len(once) > deaths * CONCURRENCY:
        yield f"{len(once)} states were sent once and never kept, in {deaths} deaths"


def _intervals(
    soak: Soak, trouble: FaultInjector, elder: int, lasting: float, pages: int, out: Out
) -> Iterator[SoakStatus]:
    every = max(10.0, lasting / 20)
    out(
        "seconds  urls requests versions lost doubled early at-once  deaths joined restarts full"
        "  service MiB/files  worker MiB/files  database MiB"
    )
    looked = added = 0
    gauged = 0.0
    while soak.seconds < lasting:
        trouble.step(spare_elder=soak.seconds > lasting / 2)
        if soak.seconds > gauged:
            soak.gauges.look(soak.machine, elder, soak.seconds)
            gauged = soak.seconds + GAUGE_SECONDS
        if added < pages - 1 and soak.seconds > (added + 1) * lasting / 2 / pages:
            added += 1
            soak.watch(added)
        if soak.seconds > (looked + 1) * every:
            looked += 1
            status, _ = soak.look()
            out(_line(status, trouble, soak.gauges))
            yield status
        time.sleep(0.1)


def _line(status: SoakStatus, trouble: FaultInjector, gauges: Gauges) -> str:
    count = trouble.counts
    service, worker = gauges.latest("service"), gauges.latest("tamias.crawl.worker")
    return (
        f"{status.seconds:7.0f} {status.urls:5} {status.requests:8} {status.versions:8}"
        f" {status.lost + status.urls_lost:4} {status.doubled + status.invented:7} {status.early:5}"
        f" {status.at_once:7}  {count['death']:6} {count['newcomer']:6} {count['restart']:8}"
        f" {count['full']:4}"
        f"  {service.megabytes:11.0f}/{service.files:<5} {worker.megabytes:11.0f}/{worker.files:<4}"
        f" {gauges.latest('postgres').megabytes:13.0f}"
    )


def _verdict(
    soak: Soak,
    trouble: FaultInjector,
    statuses: list[SoakStatus],
    growths: dict[str, Growth],
    once: int,
    out: Out,
) -> dict[str, object]:
    for name, growth in sorted(growths.items()):
        out(f"{name:24} {'flat' if growth.is_flat else 'GROWS'}: {_growth_line(growth)}")
    out(f"{once} states were sent once to a worker that died with them, and had changed when another came")
    for breach in soak.breaches:
        out(f"BREACH {breach}")
    last = statuses[-1]
    out(
        f"{'held' if not soak.breaches else 'BROKEN'} for {soak.seconds / 60:.1f} minutes: {last.urls} URLs,"
        f" {last.requests:,} requests, {last.versions:,} versions, {last.lost + last.urls_lost} lost,"
        f" {last.doubled} doubled, {last.early} requests too early; {trouble.counts['death']} workers killed,"
        f" {trouble.counts['newcomer']} joined, {trouble.counts['restart']} times the database killed,"
        f" {trouble.counts['full']} times the disk full"
    )
    return {
        "ok": not soak.breaches,
        "minutes": soak.seconds / 60,
        "troubles": trouble.counts,
        "intervals": msgspec.to_builtins(statuses),
        "growth": msgspec.to_builtins(growths),
        "sent_once_and_not_kept": once,
        "breaches": soak.breaches,
    }


def _growth_line(growth: Growth) -> str:
    return (
        f"{growth.megabytes:.1f} MiB {growth.gained_megabytes:+.1f}, {growth.files:.0f} files"
        f" {growth.gained_files:+.1f}, in the last half ({growth.looks} looks)"
    )


def _disk(stack: ExitStack, folder: Path, out: Out) -> Disk | None:
    refusal = disk_refusal()
    if refusal is not None:
        out(f"the disk is not filled: {refusal}")
        return None
    return stack.enter_context(small_disk(folder, DISK_MEGABYTES))
