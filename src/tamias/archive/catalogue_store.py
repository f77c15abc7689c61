"""The catalogue graph in a store of its own, for queries: a scratch copy that goes with whoever asks."""

import shutil
import tempfile
import weakref
from itertools import chain

from pyoxigraph import QueryBoolean, QuerySolutions, QueryTriples, Store

from tamias.archive.catalogue import PREFIXES, CatalogueBases, catalogue_quads
from tamias.database.connect import Session
from tamias.model.errors import UsageError

Answer = QuerySolutions | QueryBoolean | QueryTriples


class CatalogueStore:
    """The catalogue as it is when this is made. On disk, for it may be large."""

    def __init__(self, session: Session, bases: CatalogueBases | None = None) -> None:
        folder = tempfile.mkdtemp(prefix="tamias-catalogue-")
        self._end = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._store = Store(folder)
        self._store.bulk_extend(chain.from_iterable(catalogue_quads(session, bases or CatalogueBases())))

    def query(self, sparql: str) -> Answer:
        """The answer to a SPARQL 1.1 query over all graphs; the usual prefixes need not be declared."""
        try:
            return self._store.query(sparql, prefixes=PREFIXES, use_default_graph_as_union=True)
        except SyntaxError as error:
            raise UsageError(f"the query cannot be read: {error}") from error

    def close(self) -> None:
        """Removes the copy. May be called twice."""
        self._end()
