"""F5: the disk of the archive fills up, and is freed again."""

import time

from benchmarks.faults.evidence import evidence
from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine, disk_refusal, small_disk, wait_until
from benchmarks.faults.site import PageTree
from benchmarks.webs.sites import serving

MEGABYTES = 64
HOSTS, EACH = 10, 120
FULL_SECONDS = 8.0
MOST_PAUSE, MOST_RESUME = 2.0, 10.0
_WORDS = ("--delay", "0.2", "--workers", "1", "--sink", "archive")


def run(setup: ExperimentSetup) -> Result:
    """An archive on 64 MiB: fetching stops, says why, and goes on when there is room."""
    refusal = disk_refusal()
    if refusal is not None:
        return Result(figure=refusal)
    pages = PageTree(setup.of(EACH, 60))
    with (
        small_disk(setup.folder / "data" / "blobs", MEGABYTES) as disk,
        serving(pages, HOSTS) as web,
        Machine(setup.folder, CRAWL__ROOM="4") as machine,
    ):
        crawl = machine.start("crawl", *_WORDS, *pages.first(web))
        wait_until(lambda: len(web.pages()) > 2 * HOSTS, 60, "the crawl was under way")
        disk.fill()
        full_at = time.monotonic()
        time.sleep(FULL_SECONDS)
        stopped = max(visit.at for visit in web.pages()) - full_at
        asked, said = len(web.pages()), "no disk space left" in machine.said()
        disk.free()
        resumed = wait_until(lambda: len(web.pages()) > asked, 60, "the crawl went on")
        code = crawl.wait(300)
        truth, found = pages.truth(web), evidence(machine.data)
    lost, wrong = found.lost(truth), found.wrong(truth) + len(found.damages)
    return Result(
        ok=code == 0 and lost == wrong == 0 and said and stopped <= MOST_PAUSE and resumed <= MOST_RESUME,
        figure=f"last request {max(0.0, stopped):.1f} s after it was full"
        f"{'' if said else ', without a word'},"
        f" first one {resumed:.1f} s after there was room; {lost} of {len(truth)} lost, {wrong} torn,"
        f" exit {code}",
    )
