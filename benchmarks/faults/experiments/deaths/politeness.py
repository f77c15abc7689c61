"""F11: workers near and far die and join all the time, on hosts that ask for a second between requests."""

import re
import time

from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine, kill, wait_until
from benchmarks.faults.site import PageTree
from benchmarks.webs.sites import ROBOTS, by_host, most_at_once, serving, waits

HOSTS, SECONDS, EVERY = 50, 300, 5.0
NEAR, FAR = 6, 2
DELAY = 1.0
PAUSE = 0.1
"""A request takes time, also when nobody waits for its answer any more."""
PATIENCE = 90.0
ROBOTS_TEXT = "User-agent: *\nCrawl-delay: 1\nDisallow: /2\n"
"""/2 and all that begins so."""
_WORDS = ("--delay", "0.1", "--quiet", "--sink", "archive")
_ADDRESS = re.compile(r'"address": ?"([^"]+)"')


def run(setup: ExperimentSetup) -> Result:
    """50 hosts with Crawl-delay 1 and eight workers, a death every five seconds, newcomers for the dead."""
    lasting, random = setup.of(SECONDS, 20), setup.random()
    deaths = joined = 0
    with (
        serving(PageTree(100_000, robots=ROBOTS_TEXT, pause=PAUSE), HOSTS) as web,
        Machine(setup.folder) as machine,
    ):
        seeds = [web.url(host, f"/{number}") for host in web.hosts for number in range(1, 10)]
        machine.start("crawl", *_WORDS, "--workers", str(NEAR), *seeds)
        wait_until(web.pages, PATIENCE, "the crawl began")
        _start_far_workers(machine)
        begun = time.monotonic()
        while time.monotonic() - begun < lasting:
            time.sleep(EVERY)
            workers = machine.workers()
            deaths += bool(workers) and kill(random.choice(workers))
            if len(workers) < NEAR + FAR:
                machine.start("crawl", *_WORDS, "--workers", "1")
                joined += 1
        machine.close()
        visits = web.pages()
        between = waits(visits)
        early = sum(wait < DELAY for wait in between)
        forbidden = sum(visit.path.startswith("/2") for visit in visits)
        read = by_host(visit for visit in web.log if visit.path == ROBOTS)
        robots, at_once = max(map(len, read.values()), default=0), most_at_once(visits)
    well = early == forbidden == 0 and at_once == 1
    return Result(
        ok=well and 0 < robots <= 1 + deaths and deaths > 0 and len(visits) > HOSTS,
        figure=f"{deaths} deaths, {joined} joined in {lasting} s: {len(visits):,} requests,"
        f" {early} before a second was over since the end of the one before"
        f" (least {min(between, default=0):.3f} s), at most {at_once} at once,"
        f" {forbidden} to forbidden paths, robots.txt at most {robots} times a host",
    )


def _start_far_workers(machine: Machine) -> None:
    """Two, for a service on the same frontier."""
    machine.start("frontier", "--port", "0", "--json")
    wait_until(lambda: _ADDRESS.search(machine.said()), PATIENCE, "the service told its address")
    found = _ADDRESS.search(machine.said())
    assert found is not None
    scratch = str(machine.folder / "scratch")
    machine.start(
        "worker", "--frontier", found[1], "--workers", str(FAR), "--allow-private", "--scratch", scratch
    )
