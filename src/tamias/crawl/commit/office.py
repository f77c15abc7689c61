"""What stands at the database: one session, the thread it belongs to, and all that is committed there."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from tamias.crawl.admit import Admission, same_url
from tamias.crawl.commit.bulk_copies import BulkCopies, Coverage
from tamias.crawl.commit.committer import Committer, Visited
from tamias.crawl.commit.listing import Listing
from tamias.crawl.commit.records import Recorder
from tamias.crawl.commit.recover import recover
from tamias.crawl.commit.segment_pool import SegmentPool
from tamias.crawl.commit.tagging import PageTags
from tamias.crawl.held_lease import HeldLease
from tamias.crawl.request.options import user_agent
from tamias.crawl.revisit.archiver import WATCH, Archiver
from tamias.crawl.revisit.change_hints import ChangeHints
from tamias.crawl.steps import Steps
from tamias.crawl.strategy.strategist import Strategist
from tamias.crawl.visit.parking import Parking
from tamias.crawl.visit.visitor import Allowance, Sees, Visitor
from tamias.database.connect import Database
from tamias.frontier.postgres import PostgresFrontier
from tamias.frontier.terms import Terms
from tamias.permit.delay import host_delay_ms
from tamias.settings import Settings
from tamias.sinks.warc import WarcWriter

T = TypeVar("T")
Committed = Callable[[Sequence[HeldLease], Sequence[Visited]], None]
"""Told of the hosts given back with a commit, and of the visits that came too late for it."""


def worker_number(database: Database) -> int:
    """A number of one's own, proven alive by a lock where the database is embedded."""
    return database.embedded.enrol() if database.embedded else secrets.randbelow(2**31 - 1) + 1


class CommitContext:
    """One for each process that commits visits: a worker, or the service that others deliver to."""

    def __init__(
        self,
        database: Database,
        data: Path,
        settings: Settings,
        seeds: Sequence[str],
        *,
        committed: Committed,
        number: int | None = None,
        terms: Terms | None = None,
        sinks: Sequence[int] = (),
        warc: Callable[[int], WarcWriter] | None = None,
        archiver: Callable[[Admission], Archiver] | None = None,
    ) -> None:
        self.number = number or worker_number(database)
        self.settings = settings
        self.data = data
        self.steps = Steps()
        self.session = database.session()
        self.now: Callable[[], int] = self.session.time
        self._thread = ThreadPoolExecutor(1, "database")
        self.admission = Admission(settings, seeds)
        self.frontier = PostgresFrontier(
            self.session,
            same_url=same_url(frozenset(settings.filters.session_names)),
            worker=self.number,
            delay_ms=host_delay_ms(settings.fetch.delay, None, obey_robots=False),
            terms=terms,
        )
        self.recover: Callable[[], int] = lambda: recover(database, self.session, self.frontier, data)
        self.warc = warc(self.number) if warc else None
        self.archiver = archiver(self.admission) if archiver else None
        self.segments = SegmentPool(
            data / "rdf",
            self.number,
            self.session,
            lambda work: self._thread.submit(work).result(),
            self.warc,
            settings.sinks.segments,
        )
        self.coverage = Coverage(self.session, self.in_database, data / "rdf")
        self.committer = Committer(
            self.frontier,
            self.admission,
            self.segments,
            self._thread,
            self.steps,
            committed,
            listing=Listing(self.session, self.admission, self.frontier.buckets, settings.seeds),
            sinks=sinks,
            archiver=self.archiver,
            strategist=Strategist(
                self.session, self.frontier, self.admission, settings.strategy, not_of=[WATCH]
            ),
            wanted=self.coverage.without_own,
        )
        self.parking = Parking(self.committer, self.now, int(settings.frontier.lease * 1000))
        self.hints = ChangeHints(self.session, self.frontier, self.admission)

    def visitor(self, runner: Sees, allowance: Allowance, worker: str | None = None) -> Visitor:
        """Who judges what is seen, and hands it over to be committed; `worker` if another one saw it."""
        return Visitor(
            self.settings,
            allowance=allowance,
            runner=runner,
            admission=self.admission,
            bulk_copies=BulkCopies(self.session, self.in_database, self.admission, self.now),
            hints=self.hints,
            committer=self.committer,
            recorder=Recorder(worker or str(self.number), user_agent(self.settings)),
            archiver=self.archiver,
            parking=self.parking,
            pages=PageTags(self.settings.tags, self.session, self.in_database),
            now=self.now,
        )

    def credit_hosts(self) -> None:
        """What links between hosts have earned since the last time; for the database's thread."""
        self.frontier.credit(self.committer.invitations.take())

    def renew_parked(self) -> None:
        """Keeps others away from the URLs whose documents are still being read; for the database's thread."""
        parked = [each for each in self.parking.documents if each.apart.until is not None]
        until = self.now() + int(self.settings.frontier.lease * 1000)
        asked = [(each.held.lease, each.task, each.apart.until or 0) for each in parked]
        for each, renewed in zip(parked, self.frontier.put_off_further(asked, until), strict=True):
            if renewed:
                each.apart.until = until

    async def in_database(self, work: Callable[..., T], *words: Any) -> T:
        """Runs a function in the thread that the session belongs to."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *words)

    def close(self) -> None:
        """After the last commit."""
        self._thread.shutdown(wait=True)
        if self.archiver is not None:
            self.archiver.close()
        if self.warc is not None:
            self.warc.close()
        self.steps.write(self.committer.tally.visited)
        self.session.close()
