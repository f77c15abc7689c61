"""F6: writes fail or are cut short."""

from benchmarks.faults.evidence import evidence
from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.inside import asking_for
from benchmarks.faults.machine import Machine
from benchmarks.faults.site import PageTree
from benchmarks.webs.sites import serving

VERSIONS, HOSTS = 5000, 50
SHARE, FAILING = 0.01, 0.25
MOST_STARTS = 200
SECONDS = 300.0
_WORDS = ("--delay", "0.02", "--workers", "2", "--sink", "archive", "--quiet")


def run(setup: ExperimentSetup) -> Result:
    """1 % of the writes to the archive is broken, a quarter of these with EIO; then all is read again."""
    pages = PageTree(setup.of(VERSIONS, 250) // HOSTS)
    with serving(pages, HOSTS) as web, Machine(setup.folder) as machine:
        machine.run("check")  # the database is made before anything breaks
        more = asking_for("writes", machine.data, SHARE, FAILING, setup.seed)
        code, starts = 1, 0
        while code != 0 and starts < MOST_STARTS:
            starts += 1
            code = machine.start("crawl", *_WORDS, *pages.first(web), more=more).wait(SECONDS)
        truth, found = pages.truth(web), evidence(machine.data)
        broken = setup.folder / "data.broken"
        count = broken.stat().st_size if broken.exists() else 0
    lost, wrong = found.lost(truth), found.wrong(truth) + len(found.damages)
    return Result(
        ok=code == 0 and count > 0 and lost == wrong == 0,
        figure=f"{count} broken writes in {len(truth):,} versions: {wrong} corrupt, {lost} lost,"
        f" the crawl was started {starts} times",
    )
