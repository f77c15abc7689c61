"""Starts the service on an empty database, runs the phases at two numbers of queues, judges the figures."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import msgspec

from benchmarks.frontier.grpc.lean import GrpcCallFailed, LeanClient
from benchmarks.frontier.grpc.phases import Phase, Phases
from benchmarks.measuring.children import running
from benchmarks.measuring.targets import BenchmarkTarget, report_targets

URLS = 400_000
QUEUES = (4_000, 40_000)
_CALLS = 38
_SETTLE_SECONDS = 2.0

REFERENCE = {
    "put stream": 14_000.0,
    "put batch": 30_000.0,
    "re-put stream": 52_900.0,
    "re-put batch": 116_000.0,
    "get 100x10": 15_900.0,
    "drain": 97_000.0,
}
"""URLs a second of the Java reference, version 2.6 on RocksDB, on two cores with the same kind of client."""


class Run(msgspec.Struct, frozen=True):
    """The phases at one number of queues."""

    queues: int
    phases: list[Phase]
    load: float
    """The machine's load average at the end."""

    def phase(self, name: str) -> Phase:
        """One of the phases."""
        return next(each for each in self.phases if each.name == name)


def run(
    urls: int, queues: tuple[int, ...], target: str | None, out: Callable[[str], None]
) -> dict[str, object]:
    """The whole benchmark; `target` is the address of another server, which must be empty, and asked once."""
    out(
        f"{urls} URLs of 73 bytes, a lean client on this machine. Ratios are to the Java reference 2.6 on "
        "RocksDB, measured with such a client on two cores at another time."
    )
    runs = []
    for number in queues[:1] if target else queues:
        with _service(target) as address:
            runs.append(_run(address, urls, number, out))
    targets = [] if target else _targets(runs)
    return {"runs": runs, **report_targets(targets, out)}


def _run(address: str, urls: int, queues: int, out: Callable[[str], None]) -> Run:
    out(f"{queues} queues")
    found: list[Phase] = []
    with closing(LeanClient(address)) as client:
        phases = Phases(client, urls, queues)
        steps: list[Callable[[], Phase]] = [
            lambda: phases.put_stream("put stream"),
            lambda: phases.put_batches("put batch"),
            lambda: phases.put_stream("re-put stream"),
            lambda: phases.put_batches("re-put batch"),
            lambda: phases.get("get 100x10", _CALLS),
            lambda: phases.drain("drain"),
        ]
        for step in steps:
            if step is steps[-1]:
                time.sleep(_SETTLE_SECONDS)
            found.append(step())
            out(_line(found[-1]))
    return Run(queues, found, os.getloadavg()[0])


def _line(phase: Phase) -> str:
    ratio = phase.per_second / REFERENCE[phase.name]
    shown = "" if phase.p50 is None else f"  p50 {phase.p50:.1f} ms, p99 {phase.p99:.1f} ms"
    return f"  {phase.name:14} {phase.urls:>9} URLs {phase.per_second:>9.0f}/s {ratio:>6.2f}x{shown}"


def _targets(runs: list[Run]) -> list[BenchmarkTarget]:
    first = runs[0]
    batch, stream, drain = (first.phase(name).per_second for name in ("put batch", "put stream", "drain"))
    slowest = max(each.phase("get 100x10").p50 or 0.0 for each in runs)
    judged = [
        BenchmarkTarget("batches are put at 30000 URLs/s or more", f"{batch:.0f}/s", batch >= 30_000),
        BenchmarkTarget("a stream is put at 0.3 of the reference", f"{stream:.0f}/s", stream >= 0.3 * 14_000),
        BenchmarkTarget("a drain is 0.3 of the reference", f"{drain:.0f}/s", drain >= 0.3 * 97_000),
        BenchmarkTarget("get 100x10 takes at most 120 ms (p50)", f"{slowest:.1f} ms", slowest <= 120),
    ]
    if len(runs) > 1:
        p50 = [each.phase("get 100x10").p50 or 0.0 for each in runs]
        text = f"get 100x10 takes as long at {runs[-1].queues} queues as at {first.queues}, within 1.5x"
        judged.append(BenchmarkTarget(text, f"{p50[-1] / p50[0]:.2f}x", p50[-1] <= 1.5 * p50[0]))
    return judged


@contextmanager
def _service(target: str | None) -> Iterator[str]:
    """The address of a service: another's, or our own on a database of its own."""
    if target is not None:
        yield target
        return
    with tempfile.TemporaryDirectory(prefix="tamias-bench-", ignore_cleanup_errors=True) as data:
        words = [sys.executable, "-m", "tamias", "frontier", "--data", data, "--port", "0", "--json"]
        with running(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise GrpcCallFailed("the service did not start")
            yield msgspec.json.decode(line)["address"]
