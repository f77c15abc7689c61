"""What all parts of a commit share: a session and its thread, the frontier, the open segments."""

import msgspec

from tamias.crawl.admit import Admission
from tamias.crawl.commit.bulk_copies import Coverage
from tamias.crawl.commit.segment_pool import SegmentPool
from tamias.crawl.threads import SessionThread
from tamias.crawl.worker_store import Sinks
from tamias.database.connect import Session
from tamias.frontier.postgres import PostgresFrontier
from tamias.settings import Settings


class CommitContext(msgspec.Struct, frozen=True, kw_only=True):
    """One for each process that commits visits: a worker, or the service that others deliver to."""

    thread: SessionThread
    frontier: PostgresFrontier
    admission: Admission
    settings: Settings
    segments: SegmentPool
    coverage: Coverage
    sinks: Sinks = Sinks()

    @property
    def session(self) -> Session:
        """For the thread's own functions."""
        return self.thread.session

    def now(self) -> int:
        """The frontier's time."""
        return self.thread.session.time()
