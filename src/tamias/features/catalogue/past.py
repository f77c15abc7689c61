"""States of the past for queries: all graphs as they were at a time, or graphs of single versions.

A state is a file of N-Quads that the processes of the SPARQL store load and keep for a while; a large one is
a store of its own.
"""

import hashlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from types import MappingProxyType
from typing import BinaryIO, Final, cast
from urllib.parse import unquote

import msgspec
from pyoxigraph import NamedNode, Quad, RdfFormat, parse, serialize

from tamias.archive.captures import document_states, documents_at
from tamias.archive.file_store import segments_of
from tamias.archive.moments import Moment, milliseconds
from tamias.archive.reader.content import Content
from tamias.archive.reader.library import ArchiveReader, NotArchived
from tamias.archive.references import committed_lengths
from tamias.crawl.verbs.read import read_with
from tamias.database.sql import statements
from tamias.features.catalogue.store.messages import LARGE_STATE
from tamias.features.catalogue.store.snapshots import make_store
from tamias.features.dcat.stream import catalogue_quads
from tamias.features.dcat.terms import bases_of
from tamias.model.capture import Extent
from tamias.model.errors import UsageError
from tamias.model.item import NEVER
from tamias.plugins import load
from tamias.settings import Settings
from tamias.sinks.export import read_quads
from tamias.sinks.segments.segment_files import SegmentReader

MOST_VERSIONS: Final = 100
"""Graphs that one query may name, where one is a version."""
_MOST_BYTES: Final = 256 << 20
"""Of files of states that are kept at hand."""
_MOST_SECONDS: Final = 86_400.0
"""Notes of changes, which say whether a state is what it was, are kept longer."""
_SQL = statements("tamias.features.catalogue", "past.sql")

_FROM: Final = re.compile(r"\bFROM\s+(?:NAMED\s+)?<([^<>\s]+)>", re.IGNORECASE)
_VERSION: Final = re.compile(
    r"https?://[^?#]+/(?:get/file/id/([0-9a-f]{24}_[1-9][0-9]{0,8})|dataset/([0-9a-f]{24}/[1-9][0-9]{0,8}))"
)
_MEMENTO: Final = re.compile(r"https?://[^?#]+?/memento/([0-9]{14})/(.+)")

_SNAPSHOT: Final = re.compile(r"https?://[^?#]+/snapshot/([^/?#]+)")

Graph = Content | list[Extent] | bytes
"""A version, the quads of documents, or the N-Triples of a graph of now."""


def names_versions(query: str, graphs: Mapping[str, list[str]] = MappingProxyType({})) -> list[str]:
    """Return the graphs of a query if one is a snapshot or version: its catalogue IRI, file or Memento.

    >>> names_versions("SELECT * FROM <http://a.example/dataset/0123456789abcdef01234567/2> { ?s ?p ?o }")
    ['http://a.example/dataset/0123456789abcdef01234567/2']
    """
    names = list(dict.fromkeys([each for some in graphs.values() for each in some] or _FROM.findall(query)))
    return (
        names if any(each.fullmatch(iri) for iri in names for each in (_VERSION, _MEMENTO, _SNAPSHOT)) else []
    )


class PastState:
    """A state as a file, or a folder with a store."""

    def __init__(self, key: str, quads: Iterable[bytes]) -> None:
        self.key = key
        self.file = cast("BinaryIO", TemporaryFile())  # noqa: SIM115 - closed by `close`
        self.users = 0
        self._folder: TemporaryDirectory[str] | None = None
        try:
            self.file.writelines(quads)
            self.file.flush()
            self.size = self.file.tell()
            if self.size > LARGE_STATE:
                self._folder = TemporaryDirectory(prefix="tamias-past-", ignore_cleanup_errors=True)
                self.file.seek(0)
                stored = parse(self.file, format=RdfFormat.N_QUADS, lenient=True)
                make_store(Path(self._folder.name), stored)
                self.file.truncate(0)
        except BaseException:
            self.close()
            raise

    @property
    def folder(self) -> str:
        """Return the folder of a large state."""
        return self._folder.name if self._folder else ""

    def close(self) -> None:
        """Let go of it."""
        self.file.close()
        if self._folder is not None:
            self._folder.cleanup()


class _PastCatalogue(msgspec.Struct, frozen=True):
    """The catalogue as it was from one moment until before another, in N-Quads."""

    seen: str
    """All older transactions are in it."""
    since: int
    until: int
    quads: bytes
    made: float


class PastStates:
    """The states that were asked for last. For any number of threads, which take turns."""

    def __init__(self, open_archive: Callable[[], ArchiveReader], settings: Settings) -> None:
        """The archive is opened when the first state is asked for, and closed by whoever opened it."""
        self._open_archive = open_archive
        self._settings = settings
        self._bases = bases_of(settings.serve)
        self._lock = threading.Lock()
        self._catalogues: list[_PastCatalogue] = []
        self._forgotten = -1
        """How much was ever forgotten, when the states that are at hand were made."""
        self._states: OrderedDict[str, PastState] = OrderedDict()

    @cached_property
    def _archive(self) -> ArchiveReader:
        return self._open_archive()

    @contextmanager
    def at(self, moment: Moment) -> Iterator[PastState]:
        """Give the graphs and the catalogue as they were at a time."""
        at = milliseconds(moment)
        with self._lock:
            held = [each.extent for each in documents_at(self._archive.session, at, at_once=True)]
            catalogue = self._catalogue_at(at)
            key = [*map(str, held), hashlib.sha256(catalogue).hexdigest()]
            state = self._take(key, lambda: chain(self._statements(held), [catalogue]))
        with self._held(state):
            yield state

    @contextmanager
    def of_graphs(self, names: Sequence[str], ask_now: Callable[[str], bytes]) -> Iterator[PastState]:
        """Give graphs of versions, and of now: `ask_now` answers a query for one in N-Triples."""
        if len(names) > MOST_VERSIONS:
            raise UsageError(f"a query names at most {MOST_VERSIONS} graphs with FROM")
        with self._lock:
            graphs = [(name, self._graph(name, ask_now)) for name in names]
            key = [
                f"{name} {graph.version.id if isinstance(graph, Content) else graph!r}"
                for name, graph in graphs
            ]
            state = self._take(key, lambda: chain(*(self._renamed(name, graph) for name, graph in graphs)))
        with self._held(state):
            yield state

    def close(self) -> None:
        """Let go of all states; whoever uses one closes it."""
        while self._states:
            state = self._states.popitem()[1]
            if not state.users:
                state.close()

    def _take(self, key: Sequence[str], quads: Callable[[], Iterable[bytes]]) -> PastState:
        """Return a state, made if it is not at hand, and count its user."""
        name = hashlib.sha256("\n".join(key).encode()).hexdigest()
        state = self._states.pop(name, None) or PastState(name, quads())
        self._states[name] = state
        state.users += 1
        while sum(each.size for each in self._states.values()) > _MOST_BYTES and len(self._states) > 1:
            oldest = self._states.pop(next(iter(self._states)))
            if not oldest.users:
                oldest.close()
        return state

    @contextmanager
    def _held(self, state: PastState) -> Iterator[None]:
        try:
            yield
        finally:
            with self._lock:
                state.users -= 1
                if not state.users and state.key not in self._states:
                    state.close()

    def _catalogue_at(self, at: int) -> bytes:
        session = self._archive.session
        now = time.monotonic()
        self._drop_outdated(now)
        for each in self._catalogues:
            if each.since <= at < each.until:
                return each.quads
        around = session.fetch_one(_SQL["catalogue_around"], {"at": at})
        assert around is not None
        seen, since, until = around
        found = catalogue_quads(session, self._bases, at)
        quads = b"".join(serialize(batch, format=RdfFormat.N_QUADS) or b"" for batch in found)
        self._catalogues.append(_PastCatalogue(seen, since or 0, until or NEVER, quads, now))
        if sum(len(each.quads) for each in self._catalogues) > _MOST_BYTES // 4:
            self._catalogues.clear()
        return quads

    def _drop_outdated(self, now: float) -> None:
        """Drop catalogues after a change or some time, and all states after something was forgotten."""
        first = self._catalogues[0] if self._catalogues else None
        changes = self._archive.session.fetch_one(
            _SQL["changed_since"], {"seen": first.seen if first else "0"}
        )
        assert changes is not None
        if changes[0] or first is None or now - first.made > _MOST_SECONDS:
            self._catalogues.clear()
        if changes[1] != self._forgotten:
            self._forgotten = changes[1]
            self.close()

    def _statements(self, held: Iterable[Extent]) -> Iterator[bytes]:
        session = self._archive.session
        with SegmentReader(segments_of(session, self._archive.data), committed_lengths(session)) as reader:
            for extent in held:
                yield from reader.read(extent)

    def _graph(self, name: str, ask_now: Callable[[str], bytes]) -> Graph:
        if found := _VERSION.fullmatch(name):
            return self._archive.get((found[1] or found[2]).replace("/", "_"))
        if found := _SNAPSHOT.fullmatch(name):
            return [*load("comparisons", "snapshot_graphs")(self._archive, unquote(found[1])).values()]
        found = _MEMENTO.fullmatch(name)
        if found is None:
            return ask_now(f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{name}> {{ ?s ?p ?o }} }}")
        try:
            return self._archive.get(found[2], at=found[1])
        except NotArchived:
            at, extent = milliseconds(found[1]), None
            for state in document_states(self._archive.session, found[2]):
                extent = state.extent if state.read_at <= at else extent
            if extent is None:
                raise
            return [extent]

    def _renamed(self, name: str, graph: Graph) -> Iterator[bytes]:
        """Yield the statements of a graph under another name. Raises `NotArchived` where it has none."""
        if isinstance(graph, bytes):
            quads: Iterable[Quad] = parse(graph, format=RdfFormat.N_TRIPLES)
        elif isinstance(graph, list):
            quads = read_quads(self._statements(graph))
        else:
            version = graph.version
            quads = read_with(
                self._settings, graph.bytes(), base=graph.resource.url,
                media_type=version.declared_type or version.media_type,
            ).quads  # fmt: skip
        node = NamedNode(name)
        found = [Quad(quad.subject, quad.predicate, quad.object, node) for quad in quads]
        if not found and isinstance(graph, Content):
            media_type = graph.version.media_type or "of unknown type"
            raise NotArchived(f"{name} has no statements: {media_type}")
        yield serialize(found, format=RdfFormat.N_QUADS) or b""
