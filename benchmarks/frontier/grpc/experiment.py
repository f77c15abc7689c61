"""Runs the phases on our service and, phase by phase in turn, on the Java reference; judges the ratios."""

import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import msgspec

from benchmarks.frontier.experiment import times
from benchmarks.frontier.grpc.lean import SERVICE, GrpcCallFailed, LeanClient, batch, done, item, wish
from benchmarks.measuring.children import free_ports, running
from benchmarks.measuring.proc import command_line, members, processes, pss
from benchmarks.measuring.targets import BenchmarkTarget, at_least, report_targets

BATCH = 256
STREAM_SHARE = 4
"""One URL in so many is put in a stream of items, the others in batches."""
_ITEMS_IN_FLIGHT, _BATCHES_IN_FLIGHT = 1000, 16
_HOLD_SECONDS = 3600
_GET = f"/{SERVICE}/GetURLs"


class Phase(msgspec.Struct, frozen=True):
    """One phase: URLs a second, and milliseconds of a call where calls are short."""

    name: str
    urls: int
    per_second: float
    p50: float | None = None
    p99: float | None = None
    cpu: float | None = None
    """Microseconds of processor time of the server for each URL."""


class Phases:
    """The URLs of one size of frontier, and the server they are put into. Each phase has its connection."""

    def __init__(self, address: str, urls: int, queues: int) -> None:
        self._address = address
        self._urls = urls
        self._queues = queues
        self._streamed = urls // STREAM_SHARE

    def put_serially(self, name: str, urls: int) -> Phase:
        """Further items, each when the one before is answered."""
        numbers = range(self._urls, self._urls + urls)
        items = [item(str(number), *self._url(number)) for number in numbers]
        return self._put(name, "PutURLs", items, len(items), 1)

    def put_stream(self, name: str) -> Phase:
        """Items one by one."""
        items = [item(str(number), *self._url(number)) for number in range(self._streamed)]
        return self._put(name, "PutURLs", items, len(items), _ITEMS_IN_FLIGHT)

    def put_batches(self, name: str) -> Phase:
        """The other URLs, 256 at a time."""
        starts = range(self._streamed, self._urls, BATCH)
        batches = [self._batch(start, min(self._urls, start + BATCH)) for start in starts]
        urls = self._urls - self._streamed
        return self._put(name, "PutDiscovered", batches, urls, _BATCHES_IN_FLIGHT)

    def get(self, name: str, calls: int) -> Phase:
        """100 queues with 10 URLs each; every queue is asked at most once."""
        asked = wish(10, 100, _HOLD_SECONDS)
        seconds, got = [], 0
        with closing(LeanClient(self._address)) as client:
            for _ in range(min(calls, self._queues // 100)):
                took, answer = _timed(lambda: client.ask(_GET, asked))
                seconds.append(took)
                got += len(answer)
        shown = times(seconds)
        return Phase(name, got, got / sum(seconds), shown.p50, shown.p99)

    def drain(self, name: str) -> Phase:
        """Everything that is left, in one call."""
        with closing(LeanClient(self._address)) as client:
            took, answer = _timed(lambda: client.ask(_GET, wish(0, 0, _HOLD_SECONDS)))
        return Phase(name, len(answer), len(answer) / took)

    def complete(self, name: str) -> Phase:
        """The items of the stream are done for ever."""
        items = [done(str(number), *self._url(number)) for number in range(self._streamed)]
        return self._put(name, "PutURLs", items, len(items), _ITEMS_IN_FLIGHT)

    def _put(self, name: str, call: str, messages: list[bytes], urls: int, in_flight: int) -> Phase:
        with closing(LeanClient(self._address)) as client:
            took, answers = _timed(lambda: client.tell(f"/{SERVICE}/{call}", messages, in_flight))
        if answers != len(messages):
            raise GrpcCallFailed(f"{len(messages)} messages of {call} got {answers} answers")
        return Phase(name, urls, urls / took)

    def _batch(self, start: int, end: int) -> bytes:
        return batch(str(start), [self._url(number) for number in range(start, end)])

    def _url(self, number: int) -> tuple[str, str]:
        """URLs go round the queues, which is the worst order for the puts: each meets another queue."""
        key = f"host{number % self._queues:05d}.example"
        return f"https://data.{key}/catalogue/datasets/{number:09d}/metadata.json", key


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


_JAVA_MEMORY = "-Xmx1g"
_START_SECONDS = 120.0


class Server(msgspec.Struct, frozen=True):
    """Where a server listens, and what its processes have in their command lines."""

    address: str
    mark: str

    def cpu_seconds(self) -> float:
        """Processor time of all its processes so far."""
        pids = self._pids()
        return sum(each.cpu_seconds for each in processes() if each.pid in pids)

    def memory(self) -> int:
        """Bytes, what processes share counted once."""
        return sum(pss(pid) for pid in self._pids())

    def _pids(self) -> set[int]:
        roots = {each.pid for each in processes() if self.mark.encode() in command_line(each.pid)}
        return roots | {each.pid for root in roots for each in members(root)}


@contextmanager
def ours(*options: str) -> Iterator[Server]:
    """Our service, on an empty database of its own."""
    with tempfile.TemporaryDirectory(prefix="tamias-bench-", ignore_cleanup_errors=True) as data:
        words = [sys.executable, "-m", "tamias", "frontier", "--data", data, "--port", "0", "--json"]
        with running([*words, *options], stdout=PIPE) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise GrpcCallFailed("the service did not start")
            yield Server(msgspec.json.decode(line)["address"], data)


@contextmanager
def reference(jar: Path) -> Iterator[Server]:
    """The Java reference with an empty RocksDB. It does not wait for the disk."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="tamias-bench-", ignore_cleanup_errors=True) as data:
        words = [
            *("java", _JAVA_MEMORY, "-jar", str(jar), "-h", "127.0.0.1", "-p", str(port)),
            f"rocksdb.path={data}",
            "implementation=crawlercommons.urlfrontier.service.rocksdb.RocksDBService",
        ]
        ready = partial(_listens, port)
        with running(words, ready=ready, seconds=_START_SECONDS, stdout=DEVNULL, stderr=DEVNULL):
            yield Server(f"127.0.0.1:{port}", data)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


URLS = 400_000
QUEUES = (4_000, 40_000)
_CALLS = 38
_SERIAL = 1_000
_SETTLE_SECONDS = 2.0
_SYNCS = 100
_PAGE = 8192
SERIAL, DRAIN = "serial puts", "drain"
TO_SYNC = 0.8
"""Of the syncs that the disk can do in a second, those that serial puts must reach."""
DURABLE, UNSYNCED = 0.7, 1.0
"""Ratios to the reference, which never waits for the disk: as we do by default, and when we do not either."""

Step = tuple[str, Callable[[Phases], Phase]]
_STEPS: list[Step] = [
    ("put stream", lambda phases: phases.put_stream("put stream")),
    ("put batch", lambda phases: phases.put_batches("put batch")),
    (SERIAL, lambda phases: phases.put_serially(SERIAL, _SERIAL)),
    ("re-put stream", lambda phases: phases.put_stream("re-put stream")),
    ("re-put batch", lambda phases: phases.put_batches("re-put batch")),
    ("get 100x10", lambda phases: phases.get("get 100x10", _CALLS)),
    (DRAIN, lambda phases: phases.drain(DRAIN)),
    ("completion", lambda phases: phases.complete("completion")),
]
PHASES = tuple(name for name, _ in _STEPS)


class Run(msgspec.Struct, frozen=True):
    """The phases at one number of queues, of each server."""

    queues: int
    phases: dict[str, list[Phase]]
    memory: dict[str, int]
    """Bytes at the end."""
    syncs: float
    """Times in a second that a page can be written and synced."""
    load: float
    """The machine's load average at the end."""

    def ratio(self, name: str) -> float | None:
        """Of our speed in a phase to that of the reference."""
        speeds = [each.per_second for phases in self.phases.values() for each in phases if each.name == name]
        return speeds[0] / speeds[1] if len(speeds) > 1 else None


def run(
    urls: int,
    queues: tuple[int, ...],
    jar: Path | None,
    options: tuple[str, ...],
    out: Callable[[str], None],
) -> dict[str, object]:
    """The whole benchmark; `jar` is the service of the Java reference, `options` are those of our service."""
    out(f"{urls} URLs of 73 bytes, a lean client on this machine; us: processor time for each URL")
    runs = [measure(urls, number, jar, options, out) for number in queues]
    durable = "--no-sync" not in options
    targets = [each for one in runs for each in _targets(one, durable)]
    return {"runs": runs, **report_targets(targets, out)}


def measure(
    urls: int,
    queues: int,
    jar: Path | None,
    options: tuple[str, ...],
    out: Callable[[str], object],
) -> Run:
    """All phases at one number of queues."""
    out(f"{queues} queues")
    with ExitStack() as stack:
        servers = {"tamias": stack.enter_context(ours(*options))}
        if jar is not None:
            servers["reference"] = stack.enter_context(reference(jar))
        clients = {name: Phases(server.address, urls, queues) for name, server in servers.items()}
        found: dict[str, list[Phase]] = {name: [] for name in servers}
        syncs = 0.0
        for name, step in _STEPS:
            if name == SERIAL:
                syncs = syncs_a_second()
            if name == DRAIN:
                time.sleep(_SETTLE_SECONDS)
            for whose, phases in clients.items():
                found[whose].append(_measured(servers[whose], partial(step, phases)))
            out(_line([phases[-1] for phases in found.values()]))
        memory = {name: server.memory() for name, server in servers.items()}
        out("  memory         " + ", ".join(f"{name} {size >> 20} MiB" for name, size in memory.items()))
        out(f"  a sync takes {1000 / syncs:.2f} ms")
    return Run(queues, found, memory, syncs, os.getloadavg()[0])


def _measured(server: Server, step: Callable[[], Phase]) -> Phase:
    before = server.cpu_seconds()
    phase = step()
    used = server.cpu_seconds() - before
    return msgspec.structs.replace(phase, cpu=1e6 * used / max(1, phase.urls))


def syncs_a_second() -> float:
    """How often a page can be written and synced in a second, where the databases are."""
    with tempfile.NamedTemporaryFile(prefix="tamias-bench-") as file:
        file.write(bytes(_PAGE * _SYNCS))
        os.fsync(file.fileno())
        began = time.perf_counter()
        for place in range(_SYNCS):
            os.pwrite(file.fileno(), bytes((1,)) * _PAGE, place * _PAGE)
            os.fdatasync(file.fileno())
        return _SYNCS / (time.perf_counter() - began)


def _line(phases: list[Phase]) -> str:
    shown = [f"{each.per_second:>9.0f}/s {each.cpu:>6.1f} us" for each in phases]
    ratio = f"{phases[0].per_second / phases[1].per_second:>6.2f} x" if len(phases) > 1 else ""
    first = phases[0]
    calls = "" if first.p50 is None else f"  p50 {first.p50:.1f} ms, p99 {first.p99:.1f} ms"
    return f"  {first.name:14} {first.urls:>8} URLs" + "".join(shown) + ratio + calls


def _targets(run: Run, durable: bool) -> list[BenchmarkTarget]:
    where = f"at {run.queues} queues"
    judged = []
    for name, _ in _STEPS:
        if name == SERIAL and durable:
            speed = next(each.per_second for each in run.phases["tamias"] if each.name == SERIAL)
            text = f"serial puts {where} to the syncs of the disk"
            judged.append(at_least(TO_SYNC, text, speed / run.syncs))
        else:
            text = f"{name} {where} to the reference"
            judged.append(at_least(DURABLE if durable else UNSYNCED, text, run.ratio(name)))
    if "reference" in run.memory:
        share = run.memory["tamias"] / run.memory["reference"]
        judged.append(BenchmarkTarget(f"memory {where} below the reference's", f"{share:.2f} x", share < 1))
    return judged
