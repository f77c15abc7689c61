"""F9: the clock of the machine jumps an hour ahead, and back."""

import subprocess
from functools import partial

from benchmarks.faults.evidence import evidence
from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.inside import asking_for
from benchmarks.faults.machine import Machine, wait_until
from benchmarks.faults.site import PageTree
from benchmarks.webs.sites import LoopbackSites, gaps, serving

HOSTS, EACH = 20, 30
HOUR = 3600
DELAY = 0.4
MOST_OFF = 0.01
_WORDS = ("--delay", str(DELAY), "--workers", "2", "--sink", "archive", "--quiet")


def run(setup: ExperimentSetup) -> Result:
    """Every process of Tamias sees the jumps; what counts is the database's time and the monotonic clock."""
    pages = PageTree(setup.of(EACH, 8))
    offset = setup.folder / "offset"
    with serving(pages, HOSTS) as web, Machine(setup.folder) as machine:
        machine.environment |= asking_for("clock", offset)
        crawl = machine.start("crawl", *_WORDS, *pages.first(web))
        for turn, jump in enumerate((HOUR, -HOUR, 0), 1):
            part = partial(_is_done, web, crawl, turn * HOSTS * pages.count // 4)
            wait_until(part, 120, "a quarter more was done")
            offset.write_text(str(jump), encoding="ascii")
        code = crawl.wait(240)
        truth, found = pages.truth(web), evidence(machine.data)
        asked, early = len(web.pages()), sum(gap < DELAY - 0.005 for gap in gaps(web.pages()))
    off = asked / len(truth) - 1
    lost, twice = found.lost(truth), found.doubled() + found.twice()
    return Result(
        ok=code == lost == twice == early == 0 and abs(off) <= MOST_OFF,
        figure=f"+1 h, -1 h and back: {asked} requests for {len(truth)} pages ({off:+.2%}),"
        f" {early} too early,"
        f" {lost} lost, {twice} twice",
    )


def _is_done(web: LoopbackSites, crawl: subprocess.Popen[bytes], requests: int) -> bool:
    return len(web.pages()) >= requests or crawl.poll() is not None
