"""F18: many hosts whose robots.txt redirects to one victim, which is to be asked in its own turn."""

from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine
from benchmarks.webs.sites import NOTHING, ROBOTS, SiteAnswer, most_at_once, serving, waits
from benchmarks.webs.wire import WireRequest

HOSTS = 1000
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


def run(setup: ExperimentSetup) -> Result:
    """Every host's page is had, and the victim is asked once for each host, one by one, at its delay."""
    count, site = setup.of(HOSTS, 20), _Amplifier()
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
