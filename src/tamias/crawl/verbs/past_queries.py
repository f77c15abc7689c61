"""Queries to the past: the graphs as they were at a time, and the graphs of single versions.

They are put into a store of their own, which is gone after the answer.
"""

import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from tamias.archive.captures import documents_at
from tamias.archive.catalogue import CatalogueBases, catalogue_quads
from tamias.archive.file_store import segments_of
from tamias.archive.moments import Moment, milliseconds
from tamias.archive.reader.library import ArchiveReader, NotArchived
from tamias.archive.references import committed_lengths
from tamias.crawl.catalogue.catalogue import Catalogue, CatalogueOptions
from tamias.crawl.catalogue.exchange import Answer
from tamias.crawl.catalogue.snapshots import make_store
from tamias.crawl.verbs.read import read_with
from tamias.model.errors import UsageError
from tamias.settings import Settings
from tamias.sinks.segments.segment_files import SegmentReader

MOST_VERSIONS: Final = 100
"""Graphs of versions that one query may name."""
_FROM: Final = re.compile(r"\bFROM\s+(?:NAMED\s+)?<([^<>\s]+)>", re.IGNORECASE)
_VERSION: Final = re.compile(
    r"https?://[^?#]+/(?:get/file/id/([0-9a-f]{24}_[1-9][0-9]{0,8})|dataset/([0-9a-f]{24}/[1-9][0-9]{0,8}))"
)
_MEMENTO: Final = re.compile(r"https?://[^?#]+?/memento/([0-9]{14})/(.+)")


def names_versions(query: str) -> bool:
    """Whether a query is FROM the graph of a version: its address in the catalogue, file or Memento.

    >>> names_versions("SELECT * FROM <http://a.example/dataset/0123456789abcdef01234567/2> { ?s ?p ?o }")
    True
    """
    return any(_VERSION.fullmatch(iri) or _MEMENTO.fullmatch(iri) for iri in _FROM.findall(query))


class PastQueries:
    """Asks an archive. One for each thread."""

    def __init__(self, archive: ArchiveReader, settings: Settings, options: CatalogueOptions) -> None:
        self._archive = archive
        self._settings = settings
        self._options = msgspec.structs.replace(options, server=None, server_graphs=None)
        self._bases = CatalogueBases(service=settings.serve.address.rstrip("/"))

    def ask_at(self, query: str, accept: str, at: Moment) -> Answer:
        """The answer over the crawled graphs and the catalogue as they were at a time."""
        moment = milliseconds(at)
        return self._ask(query, accept, self._graphs_at(moment))

    def ask_versions(self, query: str, accept: str, current: Catalogue) -> Answer:
        """The answer over the graphs that FROM names: of versions, and current ones. Raises `NotArchived`."""
        names = list(dict.fromkeys(_FROM.findall(query)))
        if len(names) > MOST_VERSIONS:
            raise UsageError(f"a query names at most {MOST_VERSIONS} graphs with FROM")
        return self._ask(query, accept, (quad for name in names for quad in self._graph(name, current)))

    def _ask(self, query: str, accept: str, quads: Iterable[Quad]) -> Answer:
        with tempfile.TemporaryDirectory(prefix="tamias-past-", ignore_cleanup_errors=True) as folder:
            store = Path(folder) / "catalogue" / "store"
            store.mkdir(parents=True, mode=0o700)
            (store / "id").write_text(secrets.token_hex(8), encoding="ascii")
            make_store(store, quads)
            with Catalogue(Path(folder), self._options) as catalogue:
                return catalogue.ask(query, accept)

    def _graphs_at(self, moment: int) -> Iterator[Quad]:
        session = self._archive.session
        with SegmentReader(segments_of(session, self._archive.data), committed_lengths(session)) as reader:
            for held in documents_at(session, moment):
                yield from parse(b"".join(reader.read(held.extent)), format=RdfFormat.N_QUADS, lenient=True)
        for batch in catalogue_quads(session, self._bases, moment):
            yield from batch

    def _graph(self, name: str, current: Catalogue) -> Iterator[Quad]:
        graph = NamedNode(name)
        if found := _VERSION.fullmatch(name):
            content = self._archive.get((found[1] or found[2]).replace("/", "_"))
        elif found := _MEMENTO.fullmatch(name):
            content = self._archive.get(found[2], at=found[1])
        else:
            asked = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{name}> {{ ?s ?p ?o }} }}"
            with closing(current.ask(asked, "application/n-triples").content) as body:
                triples = parse(body.read(), format=RdfFormat.N_TRIPLES)
            yield from (Quad(quad.subject, quad.predicate, quad.object, graph) for quad in triples)
            return
        reading = read_with(
            self._settings,
            content.bytes(),
            base=content.resource.url,
            media_type=content.version.told_type or content.version.media_type,
        )
        empty = True
        for quad in reading.quads:
            empty = False
            yield Quad(quad.subject, quad.predicate, quad.object, graph)
        if empty:
            raise NotArchived(f"{name} has no statements: {content.version.media_type or 'of unknown type'}")
