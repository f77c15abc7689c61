"""F22: a hostile client of the gRPC frontier beside a good one."""

import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.frontier.grpc.lean import GrpcCallFailed, LeanClient
from benchmarks.hostile.frontier_attacks import ATTACKS, attacked
from benchmarks.measuring.children import running
from tamias.crawl.remote.grpc.messages import FRONTIER, HEALTH, message
from tamias.model.errors import TamiasError

SECONDS, LEAST_SECONDS = 20, 2
"""Of each attack."""
SLOWEST = 1.0
MOST_MEMORY = 300 << 20
_PAUSE = 0.05


def run(setup: ExperimentSetup) -> Result:
    """The good client's slowest call and the service's memory through every attack."""
    words = [sys.executable, "-m", "tamias", "frontier", "--data", str(setup.folder / "data")]
    with running([*words, "--port", "0", "--json"], stdout=subprocess.PIPE) as service:
        assert service.stdout is not None
        line = service.stdout.readline()
        if not line:
            raise TamiasError("the service did not start")
        address = msgspec.json.decode(line)["address"]
        lasting = setup.of(SECONDS, LEAST_SECONDS)
        with closing(_GoodClient(address, service.pid)) as good:
            slowest = {name: _slowest(good, name, lasting) for name in ATTACKS}
        memory = _peak(service.pid)
    worst = max(slowest, key=lambda name: slowest[name].seconds)
    most = max(each.work for each in slowest.values())
    return Result(
        ok=slowest[worst].seconds < SLOWEST and memory < MOST_MEMORY,
        figure=f"{len(ATTACKS)} attacks of {lasting} s: {good.calls:,} calls of a good client answered,"
        f" slowest {slowest[worst].seconds:.2f} s ({worst.replace('_', ' ')}), at most {most:.2f} s of the"
        f" service's processor time during one; at most {memory >> 20} MiB",
    )


class _Longest(msgspec.Struct):
    """The most that any call took."""

    seconds: float = 0.0
    work: float = 0.0
    """Processor time of the service meanwhile: unlike seconds, not longer on a busy machine."""


class _GoodClient:
    """Calls over a connection that it has, and over new ones; opened again when the service closes it."""

    def __init__(self, address: str, service: int) -> None:
        self.address = address
        self._clock = (~service << 3) | 2  # of the process, as clock_getcpuclockid(3) has it
        self._old = LeanClient(address)
        self.calls = 0

    def close(self) -> None:
        self._old.close()

    def ask_all(self, longest: _Longest) -> None:
        """Every call, over both."""
        for path, request in _requests():
            for ask in (self._ask_again, self._ask_new):
                self._measure(longest, partial(ask, path, request))

    def _measure(self, longest: _Longest, call: Callable[[], list[bytes]]) -> None:
        begun, before = time.monotonic(), time.clock_gettime(self._clock)
        if not call():
            raise TamiasError("a call was not answered")
        longest.seconds = max(longest.seconds, time.monotonic() - begun)
        longest.work = max(longest.work, time.clock_gettime(self._clock) - before)
        self.calls += 1

    def _ask_new(self, path: str, request: bytes) -> list[bytes]:
        with closing(LeanClient(self.address)) as new:
            return new.ask(path, request)

    def _ask_again(self, path: str, request: bytes) -> list[bytes]:
        try:
            return self._old.ask(path, request)
        except (OSError, GrpcCallFailed):
            self._old.close()
            self._old = LeanClient(self.address)
            return self._old.ask(path, request)


def _slowest(good: _GoodClient, name: str, seconds: float) -> _Longest:
    longest = _Longest()
    with attacked(name, int(good.address.rpartition(":")[2])):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            good.ask_all(longest)
            time.sleep(_PAUSE)
    return longest


def _requests() -> list[tuple[str, bytes]]:
    item = message("urlfrontier.URLItem")()
    item.discovered.info.url = f"http://h{secrets.randbelow(1000)}.example/{secrets.token_hex(8)}"
    return [
        (f"/{HEALTH}/Check", b""),
        (f"/{FRONTIER}/PutURLs", item.SerializeToString()),
        (f"/{FRONTIER}/GetStats", b""),
    ]


def _peak(pid: int) -> int:
    """The most memory that a process has had, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    raise TamiasError("the service is gone")
