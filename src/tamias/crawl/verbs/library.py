"""The archive with its catalogue: what `tamias.Archive` is."""

from collections.abc import Iterator
from contextlib import closing

from pyoxigraph import (
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    Triple,
    parse,
    parse_query_results,
)

from tamias.archive.moments import Moment
from tamias.archive.reader.library import ArchiveReader as ArchiveOfVersions
from tamias.crawl.catalogue.catalogue import Catalogue, options_of
from tamias.crawl.catalogue.errors import QueryRefused
from tamias.crawl.catalogue.exchange import Answer
from tamias.crawl.verbs.past_queries import PastQueries, names_versions
from tamias.model.errors import UsageError
from tamias.settings import resolve

_RESULTS = "application/sparql-results+json"
_ACCEPT = f"{_RESULTS}, application/n-triples;q=0.9"

Found = QuerySolutions | QueryBoolean | Iterator[Triple]
"""To SELECT, to ASK, to CONSTRUCT and DESCRIBE."""


class Archive(ArchiveOfVersions):
    """An archive, opened for reading. Others may write to it meanwhile. Not for two threads at once."""

    _catalogue: Catalogue | None = None

    def query(self, sparql: str, at: Moment | None = None) -> Found:
        """The answer to a SPARQL query over the catalogue and the crawled graphs, up to date or as of a time.

        A query may be FROM versions, each a graph called by its IRI in the catalogue, its file's or its
        Memento's. The usual prefixes need not be declared. Raises `UsageError` for what is no query, and
        `StoreError` when the answer takes too long or is too large.
        """
        if self._catalogue is None:
            self._catalogue = Catalogue(self.data, options_of(resolve().settings.serve), self.database)
        if at is None and self._catalogue.is_filled_by_us:
            with closing(self._catalogue.refresher(self.session)) as refresher:
                refresher.round()
        try:
            if at is None and not names_versions(sparql):
                return _found(self._catalogue.ask(sparql, _ACCEPT))
            past = PastQueries(self, resolve().settings, self._catalogue.options)
            if at is not None:
                return _found(past.ask_at(sparql, _ACCEPT, at))
            return _found(past.ask_versions(sparql, _ACCEPT, self._catalogue))
        except QueryRefused as error:
            raise UsageError(f"the query cannot be answered: {error}") from error

    def close(self) -> None:
        """Lets go of the catalogue and the database. May be called twice."""
        if self._catalogue is not None:
            self._catalogue.close()
            self._catalogue = None
        super().close()


def _found(answer: Answer) -> Found:
    with closing(answer.content) as content:
        told = content.read()
    if answer.media_type.startswith(_RESULTS):
        found: QuerySolutions | QueryBoolean = parse_query_results(told, format=QueryResultsFormat.JSON)
        return found
    return (quad.triple for quad in parse(told, format=RdfFormat.N_TRIPLES))
