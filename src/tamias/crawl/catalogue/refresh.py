"""Keeps a store up with what is committed: the graphs of what changed are replaced."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Protocol

from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

from tamias.archive.catalogue import (
    CatalogueBases,
    catalogue_graph,
    quads_of_declared,
    quads_of_portals,
    quads_of_resources,
)
from tamias.crawl.catalogue.changes import (
    CatalogueChanges,
    Changes,
    Followed,
    count_buckets,
    forget_deliveries,
    forget_store,
    numbered,
)
from tamias.crawl.catalogue.documents import Documents, replace_all
from tamias.database.connect import Session
from tamias.database.locks import alone
from tamias.sinks.sparql.placement import GraphStore

RESOURCES_AT_ONCE = 200
_TURN_SECONDS = 3600.0


class Filling(Protocol):
    """A store that can be filled from the beginning."""

    @property
    def graphs(self) -> GraphStore:
        """Where single graphs are written."""
        ...

    def name(self) -> str:
        """By which the database knows the store with what is in it; after `fill` it may be another one."""
        ...

    def fill(self, session: Session, bases: CatalogueBases) -> None:
        """Puts the whole catalogue there, in place of all that is there."""
        ...


class Refresher:
    """Brings the news to one store. For one thread; others, in other processes, wait for their turn."""

    def __init__(
        self, session: Session, data: Path, store: Filling, bases: CatalogueBases | None = None
    ) -> None:
        """Without bases they are as they were when the store was filled."""
        self._session = session
        self._data = data
        self._store = store
        self._bases = bases
        self._lock = data / "catalogue" / "refresh.lock"
        self._opened: tuple[str, Changes, Documents] | None = None

    def round(self) -> int:
        """Brings all that was committed before; returns how many graphs and documents were written."""
        self._lock.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        with alone(self._lock, _TURN_SECONDS):
            changes, documents = self._open()
            followed = changes.followed()
            if followed is None or (self._bases is not None and followed.service != self._bases.service):
                return self._fill()
            return self._bring(changes, followed) + documents.deliver()

    def rebuild(self) -> int:
        """The same from the beginning; returns how many documents were written."""
        self._lock.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        with alone(self._lock, _TURN_SECONDS):
            return self._fill()

    def close(self) -> None:
        """Lets go of the store."""
        self._close_documents()
        self._store.graphs.close()

    def _close_documents(self) -> None:
        if self._opened is not None:
            self._opened[2].close()
            self._opened = None

    def _open(self) -> tuple[Changes, Documents]:
        """The store may have been filled anew by another process, and then has another name."""
        name = self._store.name()
        if self._opened is None or self._opened[0] != name:
            self._close_documents()
            buckets = count_buckets(self._session)
            sink = numbered(self._session, name)
            documents = Documents(self._session, self._data, sink, self._store.graphs, buckets)
            self._opened = name, Changes(self._session, sink), documents
        return self._opened[1:]

    def _fill(self) -> int:
        bases = self._bases or CatalogueBases()
        before = self._store.name()
        seen = self._open()[0].enter()
        self._store.fill(self._session, bases)
        changes, documents = self._open()
        changes.filled(Followed(seen, bases.service))
        forget_deliveries(self._session, before, count_buckets(self._session))
        if self._store.name() != before:
            forget_store(self._session, before)
        return documents.deliver()

    def _bring(self, changes: Changes, followed: Followed) -> int:
        news = changes.news(followed.seen)
        bases = self._bases or CatalogueBases(service=followed.service)
        try:
            written = self._write_resources(news, bases) + self._write_portals(news)
        except BaseException:
            changes.forget_told()
            raise
        if written or news.seen != followed.seen:
            changes.follow(news.seen)
        return written

    def _write_resources(self, news: CatalogueChanges, bases: CatalogueBases) -> int:
        for start in range(0, len(news.resources), RESOURCES_AT_ONCE):
            some = news.resources[start : start + RESOURCES_AT_ONCE]
            found = quads_of_resources(self._session, some, bases)
            contents = {catalogue_graph(name).value: ntriples(quads) for name, quads in found.items()}
            replace_all(self._store.graphs, contents)
        return len(news.resources)

    def _write_portals(self, news: CatalogueChanges) -> int:
        """And what sites declare."""
        written = 0
        portals = quads_of_portals(self._session, frozenset(news.portals)) if news.portals else ()
        declared = quads_of_declared(self._session, frozenset(news.sitemaps)) if news.sitemaps else ()
        for quads in chain(portals, declared):
            contents = {graph: ntriples(some) for graph, some in by_graph(quads).items()}
            replace_all(self._store.graphs, contents)
            written += len(contents)
        return written


def by_graph(quads: Iterable[Quad]) -> dict[str, list[Quad]]:
    """Quads by the names of their graphs."""
    found: dict[str, list[Quad]] = defaultdict(list)
    for quad in quads:
        assert isinstance(quad.graph_name, NamedNode)
        found[quad.graph_name.value].append(quad)
    return found


def ntriples(quads: Iterable[Quad]) -> bytes:
    """The statements without their graph."""
    return serialize((quad.triple for quad in quads), format=RdfFormat.N_TRIPLES) or b""
