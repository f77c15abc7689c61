"""Keeps a store up with what is committed: the graphs of what changed are replaced."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, zip_longest
from pathlib import Path
from typing import Protocol

from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

from tamias.archive.captures import count_buckets
from tamias.database.connect import Session
from tamias.database.locks import alone
from tamias.features.catalogue.changes import (
    CatalogueChanges,
    Changes,
    Followed,
    forget_deliveries,
    forget_stale_stores,
    forget_store,
    numbered,
)
from tamias.features.catalogue.documents import Documents
from tamias.features.dcat.stream import (
    archive_quads,
    quads_of_declared,
    quads_of_heads,
    quads_of_portals,
    quads_of_versions,
)
from tamias.features.dcat.terms import CatalogueBases, catalogue_graph
from tamias.features.graph_stores.placement import GraphStore

RESOURCES_AT_ONCE = 500
_TURN_SECONDS = 3600.0


class Filling(Protocol):
    """A store that can be filled from the beginning."""

    @property
    def graphs(self) -> GraphStore:
        """Return the store that single graphs are written to."""
        ...

    def name(self) -> str:
        """Return the name by which the database knows the store; `fill` may change it."""
        ...

    def fill(self, session: Session, bases: CatalogueBases) -> None:
        """Puts the whole catalogue there, in place of all that is there."""
        ...

    def replace(self, contents: Mapping[str, bytes]) -> None:
        """Graphs by their N-Triples; one without any is removed. They are safe once `publish` returns."""
        ...

    def publish(self) -> None:
        """Queries see what was written from now on."""
        ...


class Refresher:
    """Brings the news to one store. For one thread; others, in other processes, wait for their turn."""

    def __init__(
        self, session: Session, data: Path, store: Filling, bases: CatalogueBases | None = None
    ) -> None:
        """Take the bases, by default those with which the store was filled."""
        self._session = session
        self._data = data
        self._store = store
        self._bases = bases
        self._lock = data / "catalogue" / "refresh.lock"
        self._opened: tuple[str, Changes, Documents] | None = None
        self._has_archive = False

    def round(
        self,
        patience: float = 0.0,
        is_enough: Callable[[], bool] = lambda: False,
        turn: float = _TURN_SECONDS,
    ) -> int:
        """Brings all that was committed before; returns how many graphs and documents were written.

        Raises `DataInUse` if another process does the same for longer than the seconds of a `turn`.

        A version that waits for its profile is written with it, if that is made within so many seconds.
        When it is enough, further documents are left to the next round.
        """
        self._lock.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        with alone(self._lock, turn):
            changes, documents = self._open()
            followed = changes.followed()
            if followed is None or (self._bases is not None and followed.service != self._bases.service):
                return self._fill(is_enough)
            written = self._bring(changes, followed, patience) + documents.deliver(is_enough)
            self._store.publish()
            return written

    def lacking(self) -> str:
        """Return what the store lacks while another process brings it."""
        changes, documents = self._open()
        if changes.followed() is None:
            return "the SPARQL store is being filled by another process, and lacks what that has not brought"
        return f"another process is bringing {documents.waiting():,} documents, which the SPARQL store lacks"

    def rebuild(self) -> int:
        """The same from the beginning; returns how many documents were written."""
        self._lock.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        with alone(self._lock, _TURN_SECONDS):
            if self._bases is None and (followed := self._open()[0].followed()) is not None:
                self._bases = CatalogueBases(service=followed.service)
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
            forget_stale_stores(self._session, sink, buckets)
            documents = Documents(self._session, self._data, sink, self._store.graphs, buckets)
            self._opened = name, Changes(self._session, sink), documents
            self._has_archive = False
        return self._opened[1:]

    def _fill(self, is_enough: Callable[[], bool] = lambda: False) -> int:
        bases = self._bases or CatalogueBases()
        before = self._store.name()
        seen = self._open()[0].enter()
        self._store.fill(self._session, bases)
        changes, documents = self._open()
        changes.filled(Followed(seen, bases.service))
        forget_deliveries(self._session, before, count_buckets(self._session))
        if self._store.name() != before:
            forget_store(self._session, before)
        delivered = documents.deliver(is_enough)
        self._store.publish()
        return delivered

    def _bring(self, changes: Changes, followed: Followed, patience: float) -> int:
        news = changes.news(followed.seen, patience)
        bases = self._bases or CatalogueBases(service=followed.service)
        try:
            written = self._write_resources(news, bases) + self._write_portals(news)
            if written:
                self._write_archive(bases)
                self._store.publish()
        except BaseException:
            changes.forget_reported()
            raise
        if written or news.seen != followed.seen:
            changes.follow(news.seen)
        return written

    def _write_resources(self, news: CatalogueChanges, bases: CatalogueBases) -> int:
        """The heads of resources, and versions that are new, gone or told of otherwise."""
        nothing: list[str] = []
        lots = zip_longest(_batches(news.resources), _batches(news.versions), fillvalue=nothing)
        for resources, versions in lots:
            found = quads_of_heads(self._session, resources, bases)
            found |= quads_of_versions(self._session, versions, bases)
            self._replace_named({catalogue_graph(*name.split("_")).value: it for name, it in found.items()})
        return len(news.resources) + len(news.versions)

    def _write_archive(self, bases: CatalogueBases) -> None:
        """Write the description of the archive itself, once, before there is something in it."""
        if not self._has_archive:
            self._replace({catalogue_graph().value: archive_quads(bases)})
            self._has_archive = True

    def _replace_named(self, found: Mapping[str, list[Quad]]) -> None:
        """Graphs by their names, which may bring quads of others; one without quads is removed."""
        removed: dict[str, list[Quad]] = {graph: [] for graph, quads in found.items() if not quads}
        self._replace(removed | by_graph(chain.from_iterable(found.values())))

    def _replace(self, graphs: Mapping[str, Iterable[Quad]]) -> None:
        self._store.replace({graph: ntriples(quads) for graph, quads in graphs.items()})

    def _write_portals(self, news: CatalogueChanges) -> int:
        """And what sites declare."""
        written = 0
        portals = quads_of_portals(self._session, frozenset(news.portals)) if news.portals else ()
        declared = quads_of_declared(self._session, frozenset(news.sitemaps)) if news.sitemaps else ()
        for quads in chain(portals, declared):
            graphs = by_graph(quads)
            self._replace(graphs)
            written += len(graphs)
        return written


def _batches(names: list[str]) -> Iterator[list[str]]:
    return (names[start : start + RESOURCES_AT_ONCE] for start in range(0, len(names), RESOURCES_AT_ONCE))


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
