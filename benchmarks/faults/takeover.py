"""One worker is cut off or frozen and another takes its hosts over: what the servers and the archive saw."""

import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from benchmarks.faults.evidence import evidence
from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine, wait_until
from benchmarks.faults.site import PageTree
from benchmarks.webs.sites import ServedRequest, by_host, most_at_once, serving

LEASE, AWAY = 20.0, 60.0
SPARE_SECONDS = 5.0
PATIENCE = 90.0
HOSTS, EACH = 12, 30
ANSWER_SECONDS = 0.4
"""Long enough that the worker has something under way whenever it is struck."""
ELDER, YOUNGER = "https://elder.test/", "https://younger.test/"


class LeaseTimes(msgspec.Struct, frozen=True):
    """How long a lease is and how long the worker is away."""

    lease: float
    away: float

    @classmethod
    def of(cls, setup: ExperimentSetup) -> "LeaseTimes":
        """20 and 60 seconds, or less where less is asked for."""
        share = max(0.2, min(1.0, setup.share))
        return cls(LEASE * share, AWAY * share)


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
    times, pages = LeaseTimes.of(setup), PageTree(EACH, pause=ANSWER_SECONDS)
    settings = {"FRONTIER__LEASE": str(times.lease), **settings}
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
                times.lease + PATIENCE,
                "the second worker had all hosts",
            )
            waited = time.monotonic() - struck
            time.sleep(max(0.0, struck + times.away - time.monotonic()))
        codes = [process.wait(240) for process in (younger, elder)]
        truth, found = pages.truth(web), evidence(machine.data)
        at_once = most_at_once(web.pages())
    lost, twice = found.lost(truth), found.doubled() + found.twice()
    return Result(
        ok=lost == twice == 0
        and at_once == 1
        and waited <= times.lease + SPARE_SECONDS
        and codes[0] == 0
        and not found.damages,
        figure=f"away {times.away:.0f} s with leases of {times.lease:.0f} s:"
        f" {len(held)} hosts taken over after {waited:.1f} s,"
        f" {twice} stale results accepted, {lost} of {len(truth)} lost,"
        f" at most {at_once} request at once to a host",
    )


def _by(visits: list[ServedRequest], contact: str) -> list[ServedRequest]:
    return [visit for visit in visits if contact in visit.agent]
