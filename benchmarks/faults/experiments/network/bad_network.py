"""F12: answers are cut off, reset, refused for a while, or come byte by byte."""

from collections import Counter
from random import Random

from benchmarks.faults.evidence import evidence
from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine
from benchmarks.faults.site import PageTree
from benchmarks.webs.proxy import NO_TROUBLE, ConnectionFault, Proxy, to_port
from benchmarks.webs.server import in_thread
from benchmarks.webs.sites import ServedRequest, SiteAnswer, by_host, serving
from benchmarks.webs.wire import WireRequest

HOSTS, EACH = 20, 50
RETRY_AFTER = 2
_SHARES = (
    (0.10, ConnectionFault(cut_after=400)),
    (0.05, ConnectionFault(reset_after=300)),
    (0.01, ConnectionFault(bytes_per_second=1)),
    (0.02, ConnectionFault(silent_after=200)),
    (0.05, ConnectionFault(delay=0.5)),
)
BUSY = 0.05
_WORDS = ("--delay", "0.1", "--workers", "2", "--sink", "archive", "--quiet")
_SETTINGS = {
    "CRAWL__RETRIES": "12",
    "CRAWL__RETRY_WAIT": "0.1",
    "FETCH__FIRST_BYTE_TIMEOUT": "3",
    "FETCH__MIN_RATE_WINDOW": "2",
    "FETCH__TIMEOUT": "8",
}


def run(setup: ExperimentSetup) -> Result:
    """A tenth of the answers cut, a twentieth reset, a twentieth 503, others slow, half open or late."""
    pages, random = PageTree(setup.of(EACH, 10)), setup.random()
    busy = Random(setup.seed + 1)

    def site(asked: WireRequest) -> SiteAnswer:
        if asked.path != "/robots.txt" and busy.random() < BUSY:
            return SiteAnswer(status=503, headers=(("Retry-After", str(RETRY_AFTER)),))
        return pages(asked)

    with serving(site, HOSTS) as web, in_thread() as do, Machine(setup.folder, **_SETTINGS) as machine:
        troubles: Counter[ConnectionFault] = Counter()
        proxy = Proxy(web.hosts, to_port(web.port), lambda: _drawn(random, troubles))
        do(proxy.open())
        try:
            code = machine.run("crawl", *_WORDS, *pages.first(web, proxy.port), seconds=400)
        finally:
            do(proxy.close())
        truth, found = pages.truth(web, proxy.port), evidence(machine.data)
        waits, hasty = _hasty(web.pages())
    lost, torn = found.lost(truth), found.wrong(truth) + len(found.damages)
    broken = sum(count for trouble, count in troubles.items() if trouble != NO_TROUBLE)
    return Result(
        ok=code == lost == torn == hasty == 0 and broken > 0 and waits > 0,
        figure=f"{broken} broken connections and {waits} times 503: {lost} of {len(truth)} pages missing,"
        f" {torn} cut bodies accepted as complete, Retry-After ignored {hasty} times",
    )


def _drawn(random: Random, troubles: Counter[ConnectionFault]) -> ConnectionFault:
    chance, drawn = random.random(), NO_TROUBLE
    for share, trouble in _SHARES:
        if 0 <= chance < share:
            drawn = trouble
        chance -= share
    troubles[drawn] += 1
    return drawn


def _hasty(visits: list[ServedRequest]) -> tuple[int, int]:
    """How often a host asked for time, and how often it was fetched again before that was over."""
    waits = hasty = 0
    for each in by_host(visits).values():
        for place, visit in enumerate(each):
            if visit.retry_after:
                waits += 1
                hasty += any(later.at < visit.at + visit.retry_after for later in each[place + 1 :])
    return waits, hasty
