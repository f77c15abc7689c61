"""Runs the phases on our service and, phase by phase in turn, on the Java reference; judges the ratios."""

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.frontier.grpc.phases import Phase, Phases
from benchmarks.frontier.grpc.servers import Server, ours, reference
from benchmarks.measuring.targets import BenchmarkTarget, at_least, report_targets

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
    target: str | None,
    jar: Path | None,
    options: tuple[str, ...],
    out: Callable[[str], None],
) -> dict[str, object]:
    """The whole benchmark; `target` is the address of another server, which must be empty, and asked once.

    `jar` is the service of the Java reference, `options` are those of our service.
    """
    out(f"{urls} URLs of 73 bytes, a lean client on this machine; us: processor time for each URL")
    runs = [measure(urls, number, target, jar, options, out) for number in (queues[:1] if target else queues)]
    durable = "--no-sync" not in options
    targets = [] if target else [each for one in runs for each in _targets(one, durable)]
    return {"runs": runs, **report_targets(targets, out)}


def measure(
    urls: int,
    queues: int,
    target: str | None,
    jar: Path | None,
    options: tuple[str, ...],
    out: Callable[[str], object],
) -> Run:
    """All phases at one number of queues."""
    out(f"{queues} queues")
    with ExitStack() as stack:
        servers = {"tamias": stack.enter_context(ours(*options)) if target is None else Server(target)}
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
