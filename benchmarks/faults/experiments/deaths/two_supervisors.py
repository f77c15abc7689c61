"""F14: several crawls at once on one data directory, and one of them is killed with all its workers."""

from benchmarks.faults.evidence import evidence
from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine, kill, wait_until
from benchmarks.faults.site import PageTree
from benchmarks.webs.sites import most_at_once, serving

HOSTS, EACH = 20, 40
_WORDS = ("--delay", "0.2", "--workers", "1", "--sink", "archive", "--quiet")


def run(setup: ExperimentSetup) -> Result:
    """Three supervisors share the work; the first of them is killed half way."""
    pages = PageTree(setup.of(EACH, 10))
    with serving(pages, HOSTS) as web, Machine(setup.folder) as machine:
        crawls = [machine.start("crawl", *_WORDS, *pages.first(web)) for _ in range(3)]
        half = HOSTS * pages.count // 2
        wait_until(lambda: len(web.pages()) >= half, 240, "half of the pages were asked for")
        kill(crawls[0].pid)
        codes = [crawl.wait(240) for crawl in crawls[1:]]
        truth, found = pages.truth(web), evidence(machine.data)
        asked, at_once = len(web.pages()), most_at_once(web.pages())
    lost, twice = found.lost(truth), found.doubled() + found.twice()
    return Result(
        ok=codes == [0, 0] and lost == twice == 0 and at_once == 1 and not found.damages,
        figure=f"3 crawls on one directory, one killed: {lost} of {len(truth)} lost, {twice} twice,"
        f" {asked - len(truth)} fetched again, at most {at_once} request at once to a host",
    )
