"""Crawled documents for a store: what was captured becomes due for it, as for any sink, and is delivered."""

import time
from pathlib import Path
from typing import Final
from uuid import UUID

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.capture_id import new_capture_id
from tamias.sinks.delivery import Deliverer
from tamias.sinks.outbox import Outbox
from tamias.sinks.placement import GraphStore, Placement, PostgresLedger
from tamias.sinks.segments import SegmentReader

_SQL = statements("tamias.sinks", "outbox.sql")
_FIRST: Final = UUID(int=0)
_OVERLAP_MS: Final = 30_000
_LONG_OVERLAP_MS: Final = 1_800_000
_LONG_SECONDS: Final = 300.0


class Documents:
    """The documents of one store, known as a sink."""

    def __init__(self, session: Session, data: Path, sink: int, graphs: GraphStore, buckets: int) -> None:
        self._session = session
        self._sink = sink
        self._buckets = buckets
        self._reader = SegmentReader(data / "rdf")
        placement = Placement(graphs, PostgresLedger(session, sink), self._reader.read)
        outbox = Outbox(session, sink, buckets=buckets)
        self._deliverer = Deliverer(outbox, placement, self._reader.read)
        self._looked_far_at = float("-inf")

    def deliver(self) -> int:
        """Brings what was captured since the last time; returns how many documents that were."""
        self._catch_up()
        delivered = 0
        while True:
            progress = self._deliverer.round()
            delivered += progress.delivered
            if progress.wait or not (progress.delivered or progress.refused or progress.put_off):
                return delivered

    def close(self) -> None:
        """Lets go of the files."""
        self._reader.close()

    def _catch_up(self) -> None:
        """A capture has its id when it begins and is seen when it is committed. So it is looked for in what
        is past already, and every few minutes in all that may still have been under way.
        """
        far = time.monotonic() - self._looked_far_at > _LONG_SECONDS
        overlap = _LONG_OVERLAP_MS if far else _OVERLAP_MS

        def work(cursor: Cursor) -> None:
            for bucket in range(self._buckets):
                place = {"bucket": bucket, "sink": self._sink}
                latest = cursor.execute(_SQL["latest_told"].text, place).fetchone()
                after = _before(latest[0], overlap) if latest else _FIRST
                cursor.execute(_SQL["catch_up"].text, {**place, "after": after})

        self._session.transact(work)
        if far:
            self._looked_far_at = time.monotonic()


def _before(capture: UUID, milliseconds: int) -> UUID:
    """An id that sorts before all of captures that began so much earlier."""
    return UUID(int=new_capture_id(max(0, (capture.int >> 80) - milliseconds)).int >> 80 << 80)
