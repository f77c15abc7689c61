"""F15 to F17: no name service, no network, hosts that never answer: in network namespaces of their own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import USUAL
from benchmarks.webs.island import Island, why_not
from benchmarks.webs.island_web import LOG
from tamias.model.errors import TamiasError

HOSTS = 9
PAGES = 10
GOOD_HOSTS = 40
OUTAGE_SECONDS = 20.0
_PATIENCE = 900.0


def names(setup: ExperimentSetup) -> Result:
    """The name service is killed before hosts are met for the first time."""

    def outage(trip: "_Trip") -> None:
        trip.island.kill("dns")
        trip.start()
        trip.wait(trip.is_working)
        time.sleep(OUTAGE_SECONDS)
        trip.island.start("dns")

    return _compared(setup, outage)


def network(setup: ExperimentSetup) -> Result:
    """The cable is pulled in the middle of the crawl, for longer than a request may take."""

    def outage(trip: "_Trip") -> None:
        trip.start()
        trip.wait(lambda: trip.requests() >= 3 * HOSTS)
        trip.island.cable(plugged=False)
        time.sleep(OUTAGE_SECONDS)
        trip.island.cable(plugged=True)

    return _compared(setup, outage)


def dead_hosts(setup: ExperimentSetup) -> Result:
    """The good pages behind the dead hosts take at most twice the time that they take alone."""
    if (missing := why_not()) is not None:
        return Result(figure=missing)
    dead = setup.of(2000, 200)
    good = _seeds("h", GOOD_HOSTS)
    lost = [*_seeds("d", dead // 2), *_seeds("t", dead - dead // 2)]
    alone, before = _timed(setup.folder / "alone", good)
    together, after = _timed(setup.folder / "together", [*lost, *good])
    figure = (
        f"{GOOD_HOSTS * PAGES} good pages behind {dead} dead hosts: {len(before - after)} of {len(before)} "
        f"quads missing, {together:.1f} s, alone {alone:.1f} s"
    )
    return Result(ok=after == before and together <= 2 * alone, figure=figure)


class _Trip:
    """One crawl on an island of its own."""

    def __init__(self, folder: Path, seeds: list[str], **settings: str) -> None:
        self.folder = folder
        self.island = Island(folder / "island", PAGES)
        self._seeds = seeds
        self._env = {**os.environ, **USUAL, "TAMIAS_CRAWL__RETRY_WAIT": "2", **settings}

    def start(self, *words: str) -> None:
        listed = self.folder / "seeds"
        listed.write_text("\n".join(self._seeds))
        program = [sys.executable, "-m", "tamias", "crawl", "--data", str(self.folder / "data")]
        more = ["--allow-private", "--seeds", str(listed), "--delay", "0.5", *words]
        self.crawl = self.island.popen([*program, *more], self._env, self.folder / "said")

    def is_working(self) -> bool:
        return any((self.folder / "data" / "spool").glob("*"))

    def requests(self) -> int:
        log = self.folder / "island" / LOG
        return len(log.read_bytes().splitlines()) if log.exists() else 0

    def wait(self, condition: Callable[[], bool]) -> float:
        """When it came true, by the monotonic clock."""
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > deadline or self.crawl.poll() is not None:
                raise TamiasError(f"the crawl ended too early: {(self.folder / 'said').read_text()[-500:]}")
            time.sleep(0.05)
        return time.monotonic()

    def quads(self) -> set[str]:
        program = [sys.executable, "-m", "tamias", "export", "--data", str(self.folder / "data")]
        done = subprocess.run(program, check=True, capture_output=True, text=True, env=self._env)
        return set(done.stdout.splitlines())


def _compared(setup: ExperimentSetup, outage: Callable[[_Trip], None]) -> Result:
    """The quads of a crawl with an outage beside those of one without."""
    if (missing := why_not()) is not None:
        return Result(figure=missing)
    calm = _Trip(setup.folder / "calm", _seeds("h", HOSTS))
    rough = _Trip(
        setup.folder / "rough",
        _seeds("h", HOSTS),
        TAMIAS_FETCH__CONNECT_TIMEOUT="5",
        TAMIAS_FETCH__FIRST_BYTE_TIMEOUT="8",
    )
    with calm.island:
        calm.start()
        calm.crawl.wait(_PATIENCE)
    with rough.island:
        outage(rough)
        code = rough.crawl.wait(_PATIENCE)
    before, after = calm.quads(), rough.quads()
    figure = (
        f"exit {code}; {len(before - after)} of {len(before)} quads missing, {len(after - before)} too many"
    )
    return Result(ok=code == 0 and after == before, figure=figure)


def _timed(folder: Path, seeds: list[str]) -> tuple[float, set[str]]:
    """Seconds from the first worker's start to the last good page, and what was found by then."""
    trip = _Trip(folder, seeds, TAMIAS_CRAWL__RETRY_WAIT="10")
    with trip.island:
        trip.start()
        begun = trip.wait(trip.is_working)
        ended = trip.wait(lambda: trip.requests() >= GOOD_HOSTS * (PAGES + 1))
        trip.crawl.terminate()
        trip.crawl.wait(_PATIENCE)
    return ended - begun, trip.quads()


def _seeds(kind: str, count: int) -> list[str]:
    return [f"http://{kind}{number}.example/" for number in range(1, count + 1)]
