"""Queries to an archive, also to the past: graphs as they were at a time, and graphs of single versions.

Graphs of the past are put into a store of their own, which is gone after the answer.
"""

import logging
import re
import secrets
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
from pyoxigraph import (
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    parse,
    parse_query_results,
)

from tamias.archive.captures import documents_at
from tamias.archive.file_store import segments_of
from tamias.archive.moments import Moment, milliseconds
from tamias.archive.reader.library import ArchiveReader, NotArchived
from tamias.archive.references import committed_lengths
from tamias.crawl.verbs.library import Found
from tamias.crawl.verbs.read import read_with
from tamias.database.locks import is_free
from tamias.features.catalogue.catalogue import Catalogue, DocumentTurn
from tamias.features.catalogue.errors import QueryRefused
from tamias.features.catalogue.exchange import Answer
from tamias.features.catalogue.store.snapshots import make_store
from tamias.features.dcat.stream import catalogue_quads
from tamias.features.dcat.terms import CatalogueBases, bases_of
from tamias.model.errors import DataInUse, UsageError
from tamias.settings import Settings
from tamias.sinks.segments.segment_files import SegmentReader

MOST_VERSIONS: Final = 100
"""Graphs of versions that one query may name."""
_TURN_SECONDS: Final = 3.0
"""A service that brings news for longer has many: the answer is of what the store has."""
_LOG: Final = logging.getLogger("tamias.catalogue")
_RESULTS: Final = "application/sparql-results+json"
_ACCEPT: Final = f"{_RESULTS}, application/n-triples;q=0.9"
_FROM: Final = re.compile(r"\bFROM\s+(?:NAMED\s+)?<([^<>\s]+)>", re.IGNORECASE)
_VERSION: Final = re.compile(
    r"https?://[^?#]+/(?:get/file/id/([0-9a-f]{24}_[1-9][0-9]{0,8})|dataset/([0-9a-f]{24}/[1-9][0-9]{0,8}))"
)
_MEMENTO: Final = re.compile(r"https?://[^?#]+?/memento/([0-9]{14})/(.+)")


def names_versions(query: str) -> bool:
    """Return whether a query is FROM the graph of a version: its IRI in the catalogue, file or Memento.

    >>> names_versions("SELECT * FROM <http://a.example/dataset/0123456789abcdef01234567/2> { ?s ?p ?o }")
    True
    """
    return any(_VERSION.fullmatch(iri) or _MEMENTO.fullmatch(iri) for iri in _FROM.findall(query))


class ArchiveQueries:
    """The queries to an archive: up to date, as of a time, or FROM versions. One for each thread."""

    def __init__(
        self, archive: ArchiveReader, settings: Settings, bases: CatalogueBases | None = None
    ) -> None:
        """Take the bases of IRIs, by default those with which the store was filled."""
        self._archive = archive
        self._settings = settings
        self._catalogue = Catalogue(archive.data, settings.serve, archive.database)
        self._bases = bases

    def close(self) -> None:
        """Let go of the store."""
        self._catalogue.close()

    def find(self, query: str, at: Moment | None = None) -> Found:
        """Return the answer to a query as values. Raises `UsageError` for what is no query."""
        try:
            answer = self.ask(query, _ACCEPT, at)
        except QueryRefused as error:
            raise UsageError(f"the query cannot be answered: {error}") from error
        with closing(answer.content) as content:
            body = content.read()
        if answer.media_type.startswith(_RESULTS):
            found: QuerySolutions | QueryBoolean = parse_query_results(body, format=QueryResultsFormat.JSON)
            return found
        return (quad.triple for quad in parse(body, format=RdfFormat.N_TRIPLES))

    def ask(self, query: str, accept: str, at: Moment | None = None) -> Answer:
        """Return the answer to a query, in one of the media types accepted. Raises `StoreError`."""
        if at is not None:
            return self._ask_quads(query, accept, self._graphs_at(milliseconds(at)))
        if self._catalogue.is_filled_by_us:
            self._bring_news()
        if not names_versions(query):
            return self._catalogue.ask(query, accept)
        names = list(dict.fromkeys(_FROM.findall(query)))
        if len(names) > MOST_VERSIONS:
            raise UsageError(f"a query names at most {MOST_VERSIONS} graphs with FROM")
        return self._ask_quads(query, accept, (quad for name in names for quad in self._graph(name)))

    def _bring_news(self) -> None:
        lock = self._archive.data / "catalogue" / "eldest.lock"
        is_followed, turn = not is_free(lock), DocumentTurn(threading.Event())
        bases = None if is_followed else self._bases
        with closing(self._catalogue.refresher(self._archive.session, bases)) as refresher:
            try:
                refresher.round(is_enough=lambda: is_followed and turn.is_over(), turn=_TURN_SECONDS)
            except DataInUse:
                turn.was_cut = True
            if turn.was_cut:
                _LOG.warning("%s", refresher.lacking())

    def _ask_quads(self, query: str, accept: str, quads: Iterable[Quad]) -> Answer:
        with tempfile.TemporaryDirectory(prefix="tamias-past-", ignore_cleanup_errors=True) as folder:
            store = Path(folder) / "catalogue" / "store"
            store.mkdir(parents=True, mode=0o700)
            (store / "id").write_text(secrets.token_hex(8), encoding="ascii")
            make_store(store, quads)
            serve = msgspec.structs.replace(self._settings.serve, sparql=None, sparql_update=None)
            with Catalogue(Path(folder), serve) as catalogue:
                return catalogue.ask(query, accept)

    def _graphs_at(self, moment: int) -> Iterator[Quad]:
        session = self._archive.session
        with SegmentReader(segments_of(session, self._archive.data), committed_lengths(session)) as reader:
            for held in documents_at(session, moment):
                yield from parse(b"".join(reader.read(held.extent)), format=RdfFormat.N_QUADS, lenient=True)
        for batch in catalogue_quads(session, bases_of(self._settings.serve), moment):
            yield from batch

    def _graph(self, name: str) -> Iterator[Quad]:
        graph = NamedNode(name)
        if found := _VERSION.fullmatch(name):
            content = self._archive.get((found[1] or found[2]).replace("/", "_"))
        elif found := _MEMENTO.fullmatch(name):
            content = self._archive.get(found[2], at=found[1])
        else:
            query = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{name}> {{ ?s ?p ?o }} }}"
            with closing(self._catalogue.ask(query, "application/n-triples").content) as body:
                triples = parse(body.read(), format=RdfFormat.N_TRIPLES)
            yield from (Quad(quad.subject, quad.predicate, quad.object, graph) for quad in triples)
            return
        reading = read_with(
            self._settings,
            content.bytes(),
            base=content.resource.url,
            media_type=content.version.declared_type or content.version.media_type,
        )
        empty = True
        for quad in reading.quads:
            empty = False
            yield Quad(quad.subject, quad.predicate, quad.object, graph)
        if empty:
            raise NotArchived(f"{name} has no statements: {content.version.media_type or 'of unknown type'}")
