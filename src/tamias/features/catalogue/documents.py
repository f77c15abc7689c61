"""Crawled documents for a store: what was captured becomes due for it, as for any sink, and is delivered.

Small documents go many at once; whoever delivers is alone, so nobody else changes a graph meanwhile.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from uuid import UUID

from tamias.archive.file_store import segments_of
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.features.catalogue.store.local_store import LocalGraphs
from tamias.features.graph_stores.placement import GraphStore, Placement, PostgresLedger, Share
from tamias.model.capture import new_capture_id
from tamias.model.item import NEVER
from tamias.sinks.delivery import DocumentRefused, SinkStumbled
from tamias.sinks.graphs import NoQuad, SortedGraphs
from tamias.sinks.outbox import Outbox, OutboxClaim, Settled
from tamias.sinks.segments.segment_files import SegmentError, SegmentReader

_SQL = statements("tamias.sinks", "outbox.sql")
_FIRST: Final = UUID(int=0)
_OVERLAP_MS: Final = 30_000
_LONG_OVERLAP_MS: Final = 1_800_000
_LONG_SECONDS: Final = 300.0
_AT_ONCE: Final = 200
_HOLD_SECONDS: Final = 600.0
_SMALL_BYTES: Final = 64 * 1024
"""Documents up to this length are delivered together: so many of them fit into one request."""

Loaded = Mapping[UUID, SortedGraphs]


class Documents:
    """The documents of one store, known as a sink."""

    def __init__(self, session: Session, data: Path, sink: int, graphs: GraphStore, buckets: int) -> None:
        self._session = session
        self._sink = sink
        self._graphs = graphs
        self._buckets = buckets
        self._reader = SegmentReader(segments_of(session, data))
        self._ledger = PostgresLedger(session, sink)
        self._placement = Placement(graphs, self._ledger, self._reader.read)
        self._outbox = Outbox(session, sink, buckets=buckets)
        self._looked_far_at = float("-inf")

    def deliver(self, is_enough: Callable[[], bool] = lambda: False) -> int:
        """Brings what was captured since the last time, until it is enough; returns how many documents."""
        self._catch_up()
        delivered = 0
        while not is_enough() and (claims := self._outbox.claim(_AT_ONCE, _HOLD_SECONDS)):
            try:
                settled = self._bring(claims)
            except BaseException:
                now = self._outbox.now()
                self._outbox.settle([Settled(claim, due=now, tries=claim.tries) for claim in claims])
                raise
            self._outbox.settle(settled)
            delivered += len(claims)
        return delivered

    def waiting(self) -> int:
        """Return how many documents are known to lack in the store."""
        return self._outbox.waiting().documents

    def close(self) -> None:
        """Lets go of the files."""
        self._reader.close()

    def _bring(self, claims: list[OutboxClaim]) -> list[Settled]:
        small = [claim for claim in claims if _length(claim) <= _SMALL_BYTES]
        try:
            self._bring_together(small)
        except (SinkStumbled, SegmentError, NoQuad, ValueError):
            return [self._bring_alone(claim) for claim in claims]
        large = [claim for claim in claims if _length(claim) > _SMALL_BYTES]
        return [Settled(claim, due=NEVER) for claim in small] + [self._bring_alone(claim) for claim in large]

    def _bring_alone(self, claim: OutboxClaim) -> Settled:
        """Bring one document; what the store refuses is noted, and others go on."""
        try:
            self._placement.deliver(claim.edition, self._quads(claim), _no_beat)
        except (SinkStumbled, DocumentRefused, SegmentError, NoQuad, ValueError) as error:
            return Settled(claim, due=NEVER, tries=claim.tries + 1, problem=str(error))
        return Settled(claim, due=NEVER)

    def _bring_together(self, claims: list[OutboxClaim]) -> None:
        with ExitStack() as stack:
            loaded = {
                claim.edition.capture: stack.enter_context(SortedGraphs(self._quads(claim)))
                for claim in claims
            }
            placed = [(claim.edition, loaded[claim.edition.capture].names) for claim in claims]
            left = self._ledger.place_all(placed)
            names = [name for sorted_graphs in loaded.values() for name in sorted_graphs.names]
            graphs = list(dict.fromkeys([*names, *(graph for some in left.values() for graph in some)]))
            shares = self._ledger.others("", graphs)
            contents = {
                graph: b"".join(self._triples(graph, shares.get(graph, []), loaded)) for graph in graphs
            }
            replace_all(self._graphs, contents)
        for document in left:
            self._ledger.forget_vacated(document)

    def _triples(self, graph: str, shares: list[Share], loaded: Loaded) -> Iterator[bytes]:
        for share in shares:
            if share.capture in loaded:
                yield from loaded[share.capture].triples(graph)
            else:
                with SortedGraphs(self._reader.read(share.extent)) as theirs:
                    yield from theirs.triples(graph)

    def _quads(self, claim: OutboxClaim) -> Iterator[bytes]:
        extent = claim.edition.extent
        return self._reader.read(extent) if extent else iter(())

    def _catch_up(self) -> None:
        """A capture has its id when it begins and is seen when it is committed. So it is looked for in what
        is past already (a wrong clock dates some ahead), and every few minutes in all that may be under way.
        """
        far = time.monotonic() - self._looked_far_at > _LONG_SECONDS
        overlap, newest = _LONG_OVERLAP_MS if far else _OVERLAP_MS, new_capture_id(self._outbox.now())

        def work(cursor: Cursor) -> None:
            for bucket in range(self._buckets):
                place = {"bucket": bucket, "sink": self._sink}
                latest = cursor.execute(_SQL["latest_told"].text, place).fetchone()
                after = _before(min(latest[0], newest), overlap) if latest else _FIRST
                cursor.execute(_SQL["catch_up"].text, {**place, "after": after})

        self._session.transact(work)
        if far:
            self._looked_far_at = time.monotonic()


def replace_all(graphs: GraphStore, contents: Mapping[str, bytes]) -> None:
    """Puts many graphs, at once where that can be done; one without content is removed."""
    if isinstance(graphs, LocalGraphs):
        graphs.replace_all(contents)
        return
    for graph, content in contents.items():
        if content:
            graphs.replace(graph, lambda content=content: iter([content]), _no_beat)  # type: ignore[misc]
        else:
            graphs.remove(graph, _no_beat)


def _length(claim: OutboxClaim) -> int:
    return claim.edition.extent.length if claim.edition.extent else 0


def _before(capture: UUID, milliseconds: int) -> UUID:
    """An id that sorts before all of captures that began so much earlier."""
    return UUID(int=new_capture_id(max(0, (capture.int >> 80) - milliseconds)).int >> 80 << 80)


def _no_beat() -> None:
    """Do nothing: no lease can be lost."""
