"""Keeps a store up with what is committed: changes are noted in the database, and their graphs replaced."""

import secrets
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, zip_longest
from pathlib import Path

import msgspec
from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

from tamias.archive.captures import count_buckets
from tamias.database.connect import Cursor, Session
from tamias.database.disk import alone
from tamias.database.sql import statements
from tamias.features.catalogue.documents import Documents, replace_all
from tamias.features.catalogue.errors import StoreAway
from tamias.features.catalogue.store.local_store import LocalGraphs, LocalStore
from tamias.features.catalogue.store.snapshots import make_store
from tamias.features.dcat.stream import (
    archive_quads,
    catalogue_quads,
    declared_quads,
    quads_of_heads,
    quads_of_portals,
    quads_of_versions,
)
from tamias.features.dcat.terms import CatalogueBases, catalogue_graph
from tamias.features.graph_stores.sparql_sink import CREDENTIALS, SparqlStore
from tamias.service_client import credentials

_SQL = statements("tamias.features.catalogue", "changes.sql")
_SINKS = statements("tamias.sinks", "outbox.sql")
_PATIENCE_SECONDS = 60.0
_NOTE_SECONDS = 60.0


class Followed(msgspec.Struct, frozen=True):
    """The point up to which a store has followed."""

    seen: str
    service: str
    """What the IRIs of its resources begin with; empty while it is being filled."""


class CatalogueChanges(msgspec.Struct, frozen=True):
    """Changes, and the point up to which they are complete."""

    resources: list[str]
    versions: list[str]
    portals: list[str]
    sitemaps: list[str]
    """Whose declared datasets have changed."""
    seen: str


class Changes:
    """The changes for one store, known as a sink."""

    def __init__(self, session: Session, sink: int) -> None:
        self._session = session
        self._sink = sink
        self._reported: set[tuple[str, str, str]] = set()
        self._noted_at = float("-inf")

    def followed(self) -> Followed | None:
        """Return how far the store has followed, or None when it must be filled again."""
        row = self._session.fetch_one(_SQL["find"], {"sink": self._sink})
        return Followed(*row) if row and row[1] else None

    def enter(self, service: str = "") -> str:
        """Begin to note changes for the store; return the transaction to begin with.

        Whoever wrote without leaving a note has ended when this returns, so what is read now is complete.
        """
        ((seen,),) = self._session.fetch_all(_SQL["enter"], {"sink": self._sink, "service": service})
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while int(self._oldest_running()) <= int(seen) and time.monotonic() < deadline:
            time.sleep(0.05)
        return str(seen)

    def filled(self, followed: Followed) -> None:
        """The store has all that there was."""

        def work(cursor: Cursor) -> None:
            cursor.execute(_SQL["enter"].text, {"sink": self._sink, "service": followed.service})
            cursor.execute(_SQL["follow"].text, {"sink": self._sink, "seen": followed.seen})

        self._session.transact(work)

    def news(self, since: str, patience: float = 0.0) -> CatalogueChanges:
        """Return what was changed since, without what was returned before.

        What is about to change again, as the profile of a new version is made, is told with that, or after
        so many seconds.
        """
        seen = self._oldest_running()
        found = self._session.fetch_all(_SQL["news"], {"seen": since, "patience": patience})
        rows = {(xid, kind, name) for xid, kind, name, waits in found if not waits}
        fresh = rows - self._reported
        self._reported = rows
        seen = min([seen, *(xid for xid, _, _, waits in found if waits)], key=int)

        def named(kind: str) -> list[str]:
            return sorted({name for _, each, name in fresh if each == kind})

        return CatalogueChanges(named("resource"), named("version"), named("portal"), named("declared"), seen)

    def follow(self, seen: str) -> None:
        """The store has all news up to there. Where there were none, this is noted once a minute."""
        if self._reported or time.monotonic() - self._noted_at > _NOTE_SECONDS:
            self._session.execute(_SQL["follow"], {"sink": self._sink, "seen": seen})
            self._session.execute(_SQL["forget_news"])
            self._noted_at = time.monotonic()

    def forget_reported(self) -> None:
        """Forget the changes returned last: they have not reached the store."""
        self._reported = set()

    def _oldest_running(self) -> str:
        ((seen,),) = self._session.fetch_all(_SQL["oldest_running"])
        return str(seen)


def numbered(session: Session, name: str) -> int:
    """The number of a store among the sinks; the same name twice is one store."""
    ((sink,),) = session.fetch_all(_SINKS["add_sink"], {"name": name})
    return int(sink)


def forget_deliveries(session: Session, name: str, buckets: int) -> None:
    """Forget which documents were brought to a store, after it was lost."""
    sink = numbered(session, name)

    def work(cursor: Cursor) -> None:
        for bucket in range(buckets):
            cursor.execute(_SQL["forget_outbox"].text, {"bucket": bucket, "sink": sink})
        cursor.execute(_SQL["forget_placed"].text, {"sink": sink})

    session.transact(work)


def forget_store(session: Session, name: str) -> None:
    """A store that is no more."""
    session.execute(_SQL["forget_store"], {"name": name})


def forget_stale_stores(session: Session, sink: int, buckets: int) -> None:
    """Delete the notes for stores of services that are gone. One that comes back is filled again."""
    for (name,) in session.fetch_all(_SQL["stale_stores"], {"sink": sink}):
        forget_deliveries(session, name, buckets)
        forget_store(session, name)


RESOURCES_AT_ONCE = 500
_TURN_SECONDS = 3600.0


class OwnFilling:
    """The store in `catalogue/store`. A new one is made beside it and takes its place when it is complete."""

    def __init__(self, local: LocalStore, is_ending: Callable[[], bool]) -> None:
        self._local = local
        self._is_ending = is_ending
        self.graphs = LocalGraphs(local)

    def name(self) -> str:
        """The store carries its name: what is known of another one is never taken for this one's."""
        self._local.running()
        mark = self._local.folder / "store" / "id"
        if not mark.exists():
            mark.write_text(secrets.token_hex(8), encoding="ascii")
        return f"catalogue:{mark.read_text(encoding='ascii')}"

    def replace(self, graphs: Mapping[str, Iterable[Quad]]) -> None:
        """Put graphs, safe once `publish` returns; one without statements is removed."""
        self.graphs.hold(_ntriples(graphs))

    def publish(self) -> None:
        """Let queries see what was written."""
        self.graphs.publish()

    def fill(self, session: Session, bases: CatalogueBases) -> None:
        """Put the whole catalogue there, in place of all that is there."""
        unfinished = self._local.folder / "store.part"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        (unfinished / "id").write_text(secrets.token_hex(8), encoding="ascii")
        make_store(unfinished, chain.from_iterable(self._until_the_end(catalogue_quads(session, bases))))
        self.graphs.close()
        unfinished.rename(self._local.folder / "store.new")
        self._local.adopt()

    def _until_the_end(self, batches: Iterable[list[Quad]]) -> Iterator[list[Quad]]:
        """Yield batches until the service ends: the next one begins again."""
        for batch in batches:
            if self._is_ending():
                raise StoreAway("the catalogue was not filled to its end: the service is ending")
            yield batch


class OtherFilling:
    """A server by the address at which it takes graphs. What is there already and is not ours stays there."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.graphs = SparqlStore(url, credentials(CREDENTIALS))

    def name(self) -> str:
        """Return the name by which the database knows the store."""
        return f"catalogue:{self._url}"

    def replace(self, graphs: Mapping[str, Iterable[Quad]]) -> None:
        """Put graphs; one without statements is removed."""
        replace_all(self.graphs, _ntriples(graphs))

    def publish(self) -> None:
        """Do nothing: what was written is visible at once."""

    def fill(self, session: Session, bases: CatalogueBases) -> None:
        """Put the whole catalogue there, beside what others have put."""
        for quads in catalogue_quads(session, bases):
            self.replace(by_graph(quads))


class Refresher:
    """Brings the news to one store. For one thread; others, in other processes, wait for their turn."""

    def __init__(
        self,
        session: Session,
        data: Path,
        store: OwnFilling | OtherFilling,
        usual: CatalogueBases,
        bases: CatalogueBases | None = None,
    ) -> None:
        """Take the bases, by default those with which the store was filled, or the `usual` ones."""
        self._session = session
        self._data = data
        self._store = store
        self._usual, self._bases = usual, bases
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
        bases = self._bases or self._usual
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
            empty = [name.split("_") for name, quads in found.items() if not quads]
            removed: dict[str, list[Quad]] = {catalogue_graph(*name).value: [] for name in empty}
            self._store.replace(removed | by_graph(chain.from_iterable(found.values())))
        return len(news.resources) + len(news.versions)

    def _write_archive(self, bases: CatalogueBases) -> None:
        """Write the description of the archive itself, once, before there is something in it."""
        if not self._has_archive:
            self._store.replace({catalogue_graph().value: archive_quads(bases)})
            self._has_archive = True

    def _write_portals(self, news: CatalogueChanges) -> int:
        """And what sites declare."""
        written = 0
        portals = quads_of_portals(self._session, frozenset(news.portals)) if news.portals else ()
        declared = declared_quads(self._session, frozenset(news.sitemaps)) if news.sitemaps else ()
        for quads in chain(portals, declared):
            graphs = by_graph(quads)
            self._store.replace(graphs)
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


def _ntriples(graphs: Mapping[str, Iterable[Quad]]) -> dict[str, bytes]:
    return {
        graph: serialize((quad.triple for quad in quads), format=RdfFormat.N_TRIPLES) or b""
        for graph, quads in graphs.items()
    }
