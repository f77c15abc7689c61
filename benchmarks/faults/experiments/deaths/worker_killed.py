"""F1: workers are killed at random moments of a crawl."""

import time
from contextlib import closing
from random import Random

import msgspec

from benchmarks.faults.evidence import evidence
from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.machine import Machine, kill
from benchmarks.faults.site import PageTree
from benchmarks.webs.sites import SiteAnswer, serving
from benchmarks.webs.wire import WireRequest
from tamias.archive.captures import corpus_figures
from tamias.database.connect import Database, Session

HOSTS, EACH, KILLS = 25, 400, 100
DELAY = 1.0
MOST_EXTRA = 0.015
_WORDS = ("--delay", str(DELAY), "--workers", "2", "--sink", "archive", "--quiet")


def run(setup: ExperimentSetup) -> Result:
    """10,000 URLs on 25 hosts, a request a second to each, 100 deaths."""
    random, kills = setup.random(), setup.of(KILLS, 3)
    pages = PageTree(setup.of(EACH, 8))
    with (
        serving(Staggered(pages, setup.seed), HOSTS) as web,
        Machine(setup.folder) as machine,
        closing(Database(machine.data)) as database,
        closing(database.session()) as session,
    ):
        crawl = machine.start("crawl", *_WORDS, *pages.first(web))
        killed, in_flight, pause = 0, 0, pages.count * DELAY / kills
        while crawl.poll() is None:
            time.sleep(random.uniform(0.5, 1.4) * pause if killed < kills else 0.2)
            workers = machine.workers() if web.pages() and killed < kills else []
            if workers and kill(random.choice(workers)):
                killed += 1
                in_flight += len({(visit.host, visit.path) for visit in web.pages()}) - _committed(session)
        truth, found, asked = pages.truth(web), evidence(machine.data), len(web.pages())
    lost, doubled = found.lost(truth), found.doubled() + found.twice()
    again, extra = asked - len(truth), asked / len(truth) - 1
    return Result(
        ok=crawl.returncode == 0
        and killed > 0
        and lost == doubled == 0
        and not found.damages
        and again <= in_flight
        and extra <= MOST_EXTRA,
        figure=f"{killed} workers killed in {len(truth):,} URLs: {lost} lost, {doubled} doubled,"
        f" {again} fetched again ({extra:.2%}; {in_flight} were in progress when workers died)",
    )


class Staggered(msgspec.Struct, frozen=True):
    """The first page of each host takes a while of its own, so that hosts are not asked in step."""

    pages: PageTree
    seed: int

    def __call__(self, asked: WireRequest) -> SiteAnswer:
        """A page."""
        answer = self.pages(asked)
        if not asked.path.endswith("/1"):
            return answer
        return msgspec.structs.replace(answer, pause=Random(f"{self.seed}/{asked.host}").uniform(0, DELAY))


def _committed(session: Session) -> int:
    return sum(each.attempts for each in corpus_figures(session).outcomes)
