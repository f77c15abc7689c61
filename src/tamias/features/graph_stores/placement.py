"""Delivers documents to a store of graphs: each graph is replaced by all that is known to belong into it.

Several documents may write into one graph. So the database remembers who put what where, before it is put.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol
from uuid import UUID

import msgspec

from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.capture import Extent
from tamias.sinks.delivery import Beat, Read
from tamias.sinks.graphs import SortedGraphs
from tamias.sinks.outbox import Edition, text_key

GRAPHS_AT_ONCE = 1000

_SQL = statements("tamias.sinks", "outbox.sql")

Triples = Callable[[], Iterator[bytes]]
"""The N-Triples of a graph, whole lines in pieces; may be asked for twice."""


class Share(msgspec.Struct, frozen=True):
    """The statements that another document has in a graph."""

    capture: UUID
    extent: Extent


class GraphStore(Protocol):
    """Keeps graphs under their names."""

    def replace(self, graph: str, triples: Triples, beat: Beat) -> None:
        """The graph holds these triples from now on, and no others."""
        ...

    def remove(self, graph: str, beat: Beat) -> None:
        """Remove a graph."""
        ...

    def close(self) -> None:
        """Lets go of it. May be called twice."""
        ...


class PostgresLedger:
    """Remember which documents of a sink have put what into which graph. All calls may be repeated."""

    def __init__(self, session: Session, sink: int) -> None:
        self._session = session
        self._sink = sink

    def place(self, edition: Edition, graphs: list[str]) -> list[str]:
        """Note that the document is about to be in these graphs; return those it has to be taken from."""
        return self.place_all([(edition, graphs)]).get(edition.document, [])

    def place_all(self, placed: Sequence[tuple[Edition, list[str]]]) -> dict[str, list[str]]:
        """The same for many documents at once; those that need not be taken from any graph are left out."""

        def work(cursor: Cursor) -> dict[str, list[str]]:
            left: dict[str, list[str]] = {}
            for edition, graphs in placed:
                extent = edition.extent
                params = {
                    **self._params(edition.document, graphs),
                    "graph": graphs,
                    "capture": edition.capture,
                    "segment": extent.segment if extent else None,
                    "frame": extent.frame if extent else None,
                    "start": extent.start if extent else None,
                    "length": extent.length if extent else 0,
                }
                if rows := cursor.execute(_SQL["vacate"].text, params).fetchall():
                    left[edition.document] = [row[0] for row in rows]
                cursor.execute(_SQL["place"].text, params)
            return left

        return self._session.transact(work)

    def others(self, document: str, graphs: list[str]) -> dict[str, list[Share]]:
        """Return the statements that other documents have in these graphs."""
        shares: dict[str, list[Share]] = {}
        for graph, capture, *place in self._session.fetch_all(_SQL["others"], self._params(document, graphs)):
            shares.setdefault(graph, []).append(Share(capture, Extent(*place)))
        return shares

    def forget_vacated(self, document: str) -> None:
        """The document has been taken from the graphs that `place` returned."""
        self._session.execute(_SQL["forget_vacated"], self._params(document, []))

    def _params(self, document: str, graphs: list[str]) -> dict[str, Any]:
        keys = [text_key(graph) for graph in graphs]
        return {"sink": self._sink, "document_key": text_key(document), "graph_key": keys}


class Placement:
    """The `GraphSink` over a store of graphs."""

    def __init__(self, store: GraphStore, ledger: PostgresLedger, read: Read) -> None:
        self.store = store
        self._ledger = ledger
        self._read = read

    def deliver(self, edition: Edition, nquads: Iterable[bytes], beat: Beat) -> None:
        with SortedGraphs(nquads) as own:
            left = self._ledger.place(edition, own.names)
            for some in _portions([*own.names, *left]):
                self._write(edition.document, some, own, beat)
        if left:
            self._ledger.forget_vacated(edition.document)

    def sync(self) -> None:
        """Do nothing: the store has what it accepted."""

    def close(self) -> None:
        self.store.close()

    def _write(self, document: str, graphs: list[str], own: SortedGraphs, beat: Beat) -> None:
        """Writes graphs until nobody else has changed them meanwhile.

        Whoever shares a graph has noted so before. If two write it at once, the one whose writing ends last
        has either seen the other's note before it began, or sees it now and writes again.
        """
        seen = self._ledger.others(document, graphs)
        while graphs:
            for graph in graphs:
                beat()
                self._write_graph(graph, own, seen.get(graph, []), beat)
            now = self._ledger.others(document, graphs)
            graphs = [graph for graph in graphs if now.get(graph) != seen.get(graph)]
            seen = now

    def _write_graph(self, graph: str, own: SortedGraphs, others: list[Share], beat: Beat) -> None:
        def triples() -> Iterator[bytes]:
            yield from own.triples(graph)
            for share in others:
                with SortedGraphs(self._read(share.extent)) as theirs:
                    yield from theirs.triples(graph)

        if others or graph in own:
            self.store.replace(graph, triples, beat)
        else:
            self.store.remove(graph, beat)


def _portions(graphs: list[str]) -> Iterator[list[str]]:
    rest = iter(graphs)
    while some := list(islice(rest, GRAPHS_AT_ONCE)):
        yield some
