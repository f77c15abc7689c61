"""Two kinds of store: the one that is kept in the data directory, and a server that somebody else keeps."""

import gc
import secrets
import shutil
from itertools import chain
from pathlib import Path

from pyoxigraph import Store

from tamias.archive.catalogue import CatalogueBases, catalogue_quads
from tamias.crawl.catalogue.documents import replace_all
from tamias.crawl.catalogue.exchange import KeptGraphs
from tamias.crawl.catalogue.kept import KeptStore
from tamias.crawl.catalogue.refresh import by_graph, ntriples
from tamias.database.connect import Session
from tamias.sinks.sparql.credentials import credentials
from tamias.sinks.sparql.sparql_sink import CREDENTIALS, SparqlStore


class OwnFilling:
    """The store in `catalogue/store`. A new one is made beside it and takes its place when it is complete."""

    def __init__(self, kept: KeptStore) -> None:
        self._kept = kept
        self.graphs = KeptGraphs(kept)

    def name(self) -> str:
        """The store carries its name: what is known of another one is never taken for this one's."""
        self._kept.running()
        mark = self._kept.folder / "store" / "id"
        if not mark.exists():
            mark.write_text(secrets.token_hex(8), encoding="ascii")
        return f"catalogue:{mark.read_text(encoding='ascii')}"

    def fill(self, session: Session, bases: CatalogueBases) -> None:
        partial = self._kept.folder / "store.part"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        (partial / "id").write_text(secrets.token_hex(8), encoding="ascii")
        _make_store(partial / "oxigraph", session, bases)
        self.graphs.close()
        partial.rename(self._kept.folder / "store.new")
        self._kept.adopt()


class OtherFilling:
    """A server by the address at which it takes graphs. What is there already and is not ours stays there."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.graphs = SparqlStore(url, credentials(CREDENTIALS))

    def name(self) -> str:
        return f"catalogue:{self._url}"

    def fill(self, session: Session, bases: CatalogueBases) -> None:
        for quads in catalogue_quads(session, bases):
            replace_all(self.graphs, {graph: ntriples(some) for graph, some in by_graph(quads).items()})


def _make_store(folder: Path, session: Session, bases: CatalogueBases) -> None:
    store = Store(str(folder))
    store.bulk_extend(chain.from_iterable(catalogue_quads(session, bases)))
    store.flush()
    del store
    gc.collect()  # only then are its files closed, and the server can have them
