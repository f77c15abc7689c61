"""F3: processes die between any two steps of a commit, by `TAMIAS_FAULT`."""

import re
import time
from contextlib import closing

from benchmarks.faults.evidence import evidence
from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine
from benchmarks.faults.site import PageTree
from benchmarks.webs.sites import NOTHING, SiteAnswer, serving
from benchmarks.webs.wire import WireRequest
from tamias.database.connect import Database
from tamias.model.faults import VARIABLE

PLACES = (
    "body-fetched:2",
    "pack-made",
    "blob-part-written:3",
    "blob-written:2",
    "segments-synced:2",
    "blobs-synced:2",
    "links-put:2",
    "captures-inserted:2",
    "before-commit:2",
    "after-commit:2",
    "pack-closed",
)
DEATHS = 20
HOSTS, EACH = 8, 12
SECONDS = 120.0
_WORDS = ("--delay", "0.1", "--workers", "2", "--sink", "archive", "--quiet")


def run(setup: ExperimentSetup) -> Result:
    """Each place kills 20 workers, or as many as come there; then the crawl goes on and is checked."""
    sites = {_name(place): PageTree(EACH, folder=f"/{_name(place)}") for place in PLACES}

    def site(asked: WireRequest) -> SiteAnswer:
        pages = sites.get(asked.path.split("/")[1])
        return pages(asked) if pages else NOTHING

    with (
        serving(site, HOSTS, network="127.71") as web,
        Machine(setup.folder) as machine,
        closing(Database(machine.data)),  # open all the time, so that the server is started once
    ):
        wanted = setup.of(DEATHS, 2)
        deaths = {
            place: _die(machine, place, list(sites[_name(place)].truth(web)), wanted) for place in PLACES
        }
        ended = machine.run("crawl", *_WORDS, seconds=SECONDS)
        repaired, checked = machine.run("check", "--repair"), machine.run("check")
        found = evidence(machine.data)
        truth = {url: body for pages in sites.values() for url, body in pages.truth(web).items()}
    lost, doubled = found.lost(truth), found.doubled() + found.twice()
    return Result(
        ok=ended == repaired == checked == lost == doubled == 0
        and not found.damages
        and all(deaths.values()),
        figure=f"{sum(deaths.values())} deaths at {len(PLACES)} places: {lost} of {len(truth)} lost,"
        f" {len(found.set_aside)} set aside as deadly, {doubled} doubled,"
        f" {len(found.damages)} rows without bytes;"
        f" check after one repair ends with {checked}"
        + "".join(f"; nobody came to {place}" for place, count in deaths.items() if not count),
    )


def _name(place: str) -> str:
    return place.partition(":")[0]


def _die(machine: Machine, place: str, seeds: list[str], wanted: int) -> int:
    """Crawls until so many were killed there, or nobody comes there any more; how many were."""
    name = re.escape(_name(place))
    before = len(re.findall(rf"killed at {name}\n", machine.said()))
    deadline = time.monotonic() + SECONDS
    killed = 0
    while killed < wanted and time.monotonic() < deadline:
        crawl = machine.start("crawl", *_WORDS, *seeds, more={VARIABLE: place})
        while crawl.poll() is None and killed < wanted and time.monotonic() < deadline:
            time.sleep(0.05)
            killed = len(re.findall(rf"killed at {name}\n", machine.said())) - before
        ended = crawl.poll() == 0
        crawl.kill()
        crawl.wait()
        if ended:
            break
    return killed
