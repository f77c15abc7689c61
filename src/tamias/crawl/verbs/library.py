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

from tamias.archive.reader.library import ArchiveReader as ArchiveOfVersions
from tamias.crawl.catalogue.catalogue import Catalogue, options_of
from tamias.crawl.catalogue.errors import QueryRefused
from tamias.crawl.catalogue.exchange import Answer
from tamias.model.errors import UsageError
from tamias.settings import resolve

_RESULTS = "application/sparql-results+json"
_ACCEPT = f"{_RESULTS}, application/n-triples;q=0.9"

Found = QuerySolutions | QueryBoolean | Iterator[Triple]
"""To SELECT, to ASK, to CONSTRUCT and DESCRIBE."""


class Archive(ArchiveOfVersions):
    """An archive, opened for reading. Others may write to it meanwhile. Not for two threads at once."""

    _catalogue: Catalogue | None = None

    def query(self, sparql: str) -> Found:
        """The answer to a SPARQL query over the catalogue and the crawled graphs, up to date.

        The usual prefixes need not be declared. Raises `UsageError` for what is no query, and `StoreError`
        when the answer takes too long or is too large.
        """
        if self._catalogue is None:
            self._catalogue = Catalogue(self.data, options_of(resolve().settings.serve))
        if self._catalogue.is_filled_by_us:
            with closing(self._catalogue.refresher(self.session)) as refresher:
                refresher.round()
        try:
            return _found(self._catalogue.ask(sparql, _ACCEPT))
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
