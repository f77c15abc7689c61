"""Queries to an archive, up to date or to the past, for commands and for Python."""

import logging
import threading
from contextlib import closing
from typing import Final

from pyoxigraph import (
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    parse,
    parse_query_results,
)

from tamias.archive.moments import Moment
from tamias.archive.reader.library import ArchiveReader
from tamias.crawl.verbs.library import Found
from tamias.database.disk import is_free
from tamias.features.catalogue.catalogue import Catalogue, DocumentTurn
from tamias.features.catalogue.errors import QueryRefused
from tamias.features.catalogue.exchange import Answer
from tamias.features.catalogue.past import PastStates
from tamias.model.errors import DataInUse, UsageError
from tamias.settings import Settings

_TURN_SECONDS: Final = 3.0
"""A service that brings news for longer has many: the answer is of what the store has."""
_LOG: Final = logging.getLogger("tamias.catalogue")
_RESULTS: Final = "application/sparql-results+json"
_ACCEPT: Final = f"{_RESULTS}, application/n-triples;q=0.9"


class ArchiveQueries:
    """The queries to an archive: up to date, as of a time, or FROM versions. One for each thread."""

    def __init__(self, archive: ArchiveReader, settings: Settings) -> None:
        self._archive = archive
        self._catalogue = Catalogue(archive.data, settings.serve, archive.database)
        self._catalogue.past = PastStates(lambda: archive, settings)

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
        if at is None and self._catalogue.is_filled_by_us:
            self._bring_news()
        return self._catalogue.ask(query, accept, at=at)

    def _bring_news(self) -> None:
        lock = self._archive.data / "catalogue" / "eldest.lock"
        is_followed, turn = not is_free(lock), DocumentTurn(threading.Event())
        with closing(self._catalogue.refresher(self._archive.session)) as refresher:
            try:
                refresher.round(is_enough=lambda: is_followed and turn.is_over(), turn=_TURN_SECONDS)
            except DataInUse:
                turn.was_cut = True
            if turn.was_cut:
                _LOG.warning("%s", refresher.lacking())
