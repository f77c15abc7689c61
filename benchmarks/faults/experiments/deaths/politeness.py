"""F11: workers die and join all the time, on hosts that ask for a second between requests."""

import time

from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine, kill, wait_until
from benchmarks.faults.site import PageTree
from benchmarks.webs.sites import ROBOTS, by_host, gaps, serving

HOSTS, SECONDS, EVERY = 50, 300, 5.0
DELAY = 1.0
PATIENCE = 90.0
ROBOTS_TEXT = "User-agent: *\nCrawl-delay: 1\nDisallow: /2\n"
"""/2 and all that begins so."""
_WORDS = ("--delay", "0.1", "--quiet", "--sink", "archive")


def run(setup: ExperimentSetup) -> Result:
    """50 hosts with Crawl-delay 1, a death and a newcomer every five seconds."""
    lasting, random = setup.of(SECONDS, 20), setup.random()
    deaths = joined = 0
    with (
        serving(PageTree(100_000, robots=ROBOTS_TEXT), HOSTS) as web,
        Machine(setup.folder) as machine,
    ):
        seeds = [web.url(host, f"/{number}") for host in web.hosts for number in range(1, 10)]
        machine.start("crawl", *_WORDS, "--workers", "2", *seeds)
        wait_until(web.pages, PATIENCE, "the crawl began")
        begun = time.monotonic()
        while time.monotonic() - begun < lasting:
            time.sleep(EVERY)
            workers = machine.workers()
            deaths += bool(workers) and kill(random.choice(workers))
            if len(workers) < 4:
                machine.start("crawl", *_WORDS, "--workers", "1")
                joined += 1
        machine.close()
        visits = web.pages()
        early = sum(gap < DELAY for gap in gaps(visits))
        forbidden = sum(visit.path.startswith("/2") for visit in visits)
        read = by_host(visit for visit in web.log if visit.path == ROBOTS)
        robots = max(map(len, read.values()), default=0)
    return Result(
        ok=early == forbidden == 0 and 0 < robots <= 1 + deaths and deaths > 0 and len(visits) > HOSTS,
        figure=f"{deaths} deaths, {joined} joined in {lasting} s: {len(visits):,} requests,"
        f" {early} before the second was over, {forbidden} to forbidden paths,"
        f" robots.txt at most {robots} times a host",
    )
