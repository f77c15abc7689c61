"""Harvests as jobs: each attempt at a watched source is a row, from its first request to its commit."""

import msgspec

from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.store.visit import CommitBatch, CommitHook
from tamias.database.columns import storable
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.frontier.due import retire_places
from tamias.model.item import WATCH

SQL = statements("tamias.features.harvests", "harvests.sql")
CUT_OFF = "cut off: its worker ended before it did; the next harvest goes on from there"
STOPPED = "stopped by its user"
MOST_JOBS = 500
"""Harvests of a source that are kept."""


class HarvestJob(msgspec.Struct):
    """A harvest that is under way."""

    url: str
    started_at: int
    every: int | None
    """Milliseconds between two harvests, where the user has set them."""
    requests: int = 0
    failed: int = 0


class JobEnded(msgspec.Struct, frozen=True):
    """The end of a harvest, to be written with the visit."""

    job: HarvestJob
    harvest: int
    """When the first of the attempts began that make this harvest: its datasets have this time."""
    outcome: int
    reason: str
    now: int


def begin_job(session: Session, url: str, kind: str, now: int) -> HarvestJob | None:
    """Begin a harvest of a URL; None where the source is not to be harvested any more."""
    named = {"url": url, "kind": kind, "now": now}

    def begin(cursor: Cursor) -> HarvestJob | None:
        [(every,)] = cursor.execute(SQL["source"].text, named).fetchall()
        if cursor.execute(SQL["unwatched"].text, named).fetchone() is not None:
            return None
        cursor.execute(SQL["end_cut_off"].text, {**named, "reason": CUT_OFF})
        cursor.execute(SQL["begin"].text, {**named, "most": MOST_JOBS})
        return HarvestJob(url, now, every)

    return session.transact(begin)


def note_step(session: Session, job: HarvestJob) -> str:
    """Write how far a harvest is; return the state of its source."""
    row = session.fetch_one(SQL["step"], msgspec.structs.asdict(job))
    return row[0] if row else "removed"


class JobsHook(CommitHook):
    """Writes the ends of harvests; a source that was stopped meanwhile is not harvested again."""

    def __init__(self, context: CommitContext) -> None:
        self._frontier = context.frontier

    def write(self, cursor: Cursor, batch: CommitBatch) -> None:
        """Write them in the transaction that settles their URLs."""
        for visit, ended in batch.extras(JobEnded):
            values = msgspec.structs.asdict(ended) | msgspec.structs.asdict(ended.job)
            cursor.execute(SQL["end"].text, values | {"reason": storable(ended.reason)})
            if cursor.execute(SQL["unwatched"].text, {"url": ended.job.url}).fetchone() is not None:
                lease = visit.held.lease
                place = (lease.qid, WATCH, visit.task.uid)
                retire_places(lease.bucket, [place], self._frontier.now(), cursor)
