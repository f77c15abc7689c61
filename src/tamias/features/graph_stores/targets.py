"""Makes the sinks of this feature for the targets that a user types."""

from contextlib import closing, suppress
from pathlib import Path

from tamias.features.graph_stores.document_files import DocumentFiles
from tamias.features.graph_stores.placement import PostgresLedger
from tamias.features.graph_stores.sparql_sink import CREDENTIALS, SparqlSink, SparqlStore
from tamias.model.errors import ConfigError
from tamias.service_client import credentials
from tamias.sinks.delivery import GraphSink, SinkError, Surroundings


class TurtleFiles(DocumentFiles):
    """Turtle cannot name graphs: it is used where the document's URL says the only one there is."""

    def __init__(self, folder: Path, *, compress: bool = False) -> None:
        super().__init__(folder, {"turtle": ".ttl", "trig": ".trig"}, _turtle_or_trig, compress=compress)


def _turtle_or_trig(own: bool) -> str:
    return "turtle" if own else "trig"


def turtle_files(target: str | None, around: Surroundings) -> GraphSink:
    """Write to the folder named, or to `turtle/` of the data directory."""
    return TurtleFiles(Path(target) if target else around.data / "turtle", compress=around.compress)


def sparql(target: str | None, around: Surroundings) -> GraphSink:
    """Deliver to the server at that address."""
    if target is None:
        raise ConfigError("sparql: needs the address of a server, such as sparql:http://localhost:7878/store")
    store = SparqlStore(target, credentials(CREDENTIALS))
    return SparqlSink(store, PostgresLedger(around.session, around.sink), around.read)


def try_server(target: str) -> None:
    """Raise `ConfigError` for a server that cannot be used at all; one that is away may come back."""
    with closing(SparqlStore(target, credentials(CREDENTIALS))) as store, suppress(SinkError):
        store.connect()
