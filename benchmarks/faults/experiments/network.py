"""Connections that break, and hosts that lead to others."""

from collections import Counter
from random import Random
from typing import Any

import msgspec

from benchmarks.faults.experiment import ExperimentSetup, Result, evidence
from benchmarks.faults.machine import Machine, PageTree
from benchmarks.webs.proxy import NO_TROUBLE, ConnectionFault, Proxy, to_port
from benchmarks.webs.server import WireRequest, in_thread
from benchmarks.webs.sites import (
    NOTHING,
    ROBOTS,
    ServedRequest,
    SiteAnswer,
    by_host,
    most_at_once,
    serving,
    waits,
)

F12_HOSTS, EACH = 20, 50
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


def bad_network(setup: ExperimentSetup) -> Result:
    """A tenth of the answers cut, a twentieth reset, a twentieth 503, others slow, half open or late."""
    pages, random = PageTree(setup.of(EACH, 10)), setup.random()
    busy = Random(setup.seed + 1)

    def site(asked: WireRequest) -> SiteAnswer:
        if asked.path != "/robots.txt" and busy.random() < BUSY:
            return SiteAnswer(status=503, headers=(("Retry-After", str(RETRY_AFTER)),))
        return pages(asked)

    with serving(site, F12_HOSTS) as web, in_thread() as do, Machine(setup.folder, **_SETTINGS) as machine:
        troubles: Counter[ConnectionFault] = Counter()
        proxy = Proxy(web.hosts, to_port(web.port), lambda: _drawn(random, troubles))
        do(proxy.open())
        try:
            code = machine.run("crawl", *_WORDS, *pages.first(web, proxy.port), seconds=400)
        finally:
            do(proxy.close())
        truth, found = pages.truth(web, proxy.port), evidence(machine.data)
        pauses, hasty = _hasty(web.pages())
    lost, torn = found.lost(truth), found.wrong(truth) + len(found.damages)
    broken = sum(count for trouble, count in troubles.items() if trouble != NO_TROUBLE)
    return Result(
        ok=code == lost == torn == hasty == 0 and broken > 0 and pauses > 0,
        figure=f"{broken} broken connections and {pauses} times 503: {lost} of {len(truth)} pages missing,"
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
    pauses = hasty = 0
    for each in by_host(visits).values():
        for place, visit in enumerate(each):
            if visit.retry_after:
                pauses += 1
                hasty += any(later.at < visit.at + visit.retry_after for later in each[place + 1 :])
    return pauses, hasty


F18_HOSTS = 1000
DELAY = 0.1
RULES = "/rules"
PAUSE = 0.02
SECONDS = 900.0
_PLAIN = (("Content-Type", "text/plain"),)


class _Amplifier:
    """The first host is the victim; all others send whoever asks for their rules there."""

    victim = ""

    def __call__(self, asked: WireRequest) -> SiteAnswer:
        if asked.path == RULES:
            return SiteAnswer(body=b"User-agent: *\nDisallow: /shut\n", headers=_PLAIN, pause=PAUSE)
        if asked.path == ROBOTS and f"//{asked.host}" not in self.victim:
            return SiteAnswer(status=302, headers=(("Location", f"{self.victim}{RULES}?{asked.host}"),))
        return SiteAnswer(body=b'<> <#says> "page" .\n') if asked.path == "/" else NOTHING


def amplifier(setup: ExperimentSetup) -> Result:
    """Every host's page is had, and the victim is asked once for each host, one by one, at its delay."""
    count, site = setup.of(F18_HOSTS, 20), _Amplifier()
    with serving(site, count + 1) as web, Machine(setup.folder) as machine:
        site.victim = web.url(web.hosts[0], "")
        seeds = setup.folder / "seeds"
        seeds.write_text("\n".join(web.url(host, "/") for host in web.hosts[1:]), encoding="utf-8")
        words = ("--seeds", str(seeds), "--delay", str(DELAY), "--workers", "8", "--quiet")
        code = machine.run("crawl", *words, seconds=SECONDS)
        asked = [visit for visit in web.log if visit.host == web.hosts[0]]
        rules = [visit for visit in asked if visit.path.startswith(RULES)]
        had = {visit.host for visit in web.log if visit.path == "/"}
    span = asked[-1].at - asked[0].at if len(asked) > 1 else 0.0
    between, at_once = waits(asked), most_at_once(asked)
    early = sum(wait < DELAY for wait in between)
    return Result(
        ok=code == 0 and len(had) == len(rules) == count and early == 0 and at_once == 1,
        figure=f"{count:,} hosts, 8 workers, delay {DELAY} s: the victim was asked {len(asked):,} times in"
        f" {span:.0f} s ({len(asked) / max(span, 0.001):.1f} a second), at most {at_once} at once, {early}"
        f" before its delay was over (least {min(between, default=0):.3f} s); {len(had):,} pages had",
    )


F10_SITES, F10_EACH = 40, 50
GIBIBYTE = 1 << 30


def hostile(setup: ExperimentSetup) -> Result:
    """`python -m benchmarks hostile`, or what it told before."""
    if setup.hostile is not None:
        report = msgspec.json.decode(setup.hostile.read_bytes())
    else:
        from tests.hostile.web.run import run as run_hostile

        report = run_hostile(lambda _: None, sites=F10_SITES, pages=setup.of(F10_EACH, 10))
    return judged(report)


def judged(report: dict[str, Any]) -> Result:
    """The figures that count."""
    ratio = report["ratio"]
    return Result(
        ok=bool(report["ok"]),
        figure=f"{report['contained']} of {report['attacks']} attacks contained,"
        f" {report['good_pages']:,} good pages {'complete' if report['good_complete'] else 'NOT complete'}"
        f" ({report['workers']} workers),"
        f" {report['peak_bytes'] / GIBIBYTE:.2f} GiB,"
        + (f" {ratio:.2f} times the time without them," if ratio else "")
        + f" {report['canary_connections']} connections to the canaries",
    )
