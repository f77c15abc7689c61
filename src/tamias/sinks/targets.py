"""Makes the sinks that are fed from the outbox, from what a user types: `NAME` or `NAME:TARGET`."""

import os
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from tamias.database.connect import Session
from tamias.database.disk import write_errors
from tamias.model.errors import ConfigError
from tamias.service_client import credentials
from tamias.sinks.delivery import GraphSink, Read, SinkError
from tamias.sinks.document_files import DocumentFiles
from tamias.sinks.sparql.placement import PostgresLedger
from tamias.sinks.sparql.sparql_sink import CREDENTIALS, SparqlSink, SparqlStore, checked_address


class TurtleFiles(DocumentFiles):
    """Turtle cannot name graphs: it is used where the document's URL says the only one there is."""

    def __init__(self, folder: Path, *, compress: bool = False) -> None:
        super().__init__(folder, {"turtle": ".ttl", "trig": ".trig"}, _turtle_or_trig, compress=compress)


def _turtle_or_trig(own: bool) -> str:
    return "turtle" if own else "trig"


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a sink."""

    data: Path
    session: Session
    """Of the thread that delivers."""
    sink: int
    """The number that `add_sink` gave."""
    read: Read
    compress: bool = False
    """Whether files are gzipped, where the format is not packed by itself."""


OpenSink = Callable[[str | None, Surroundings], GraphSink]
"""Makes a sink for a target; None when the user named none."""


def split_sink(text: str) -> tuple[str, str | None]:
    """Name and target of `NAME[:TARGET]`. Raises `ConfigError` for a target that must not be kept as it is.

    >>> split_sink("turtle-files"), split_sink("sparql:http://localhost:7878/store")
    (('turtle-files', None), ('sparql', 'http://localhost:7878/store'))
    """
    name, _, target = text.partition(":")
    if name == "sparql":
        return name, checked_address(target)
    return name, target or None


def try_sink(text: str) -> None:
    """Raise `ConfigError` for a sink that cannot be used at all; a server that is away may come back."""
    name, target = split_sink(text)
    if name != "sparql" or target is None:
        with write_errors(target, ConfigError):
            os.makedirs(target or os.curdir, exist_ok=True)
        return
    with closing(SparqlStore(target, credentials(CREDENTIALS))) as store, suppress(SinkError):
        store.connect()


def turtle_files(target: str | None, around: Surroundings) -> GraphSink:
    """Write to the folder named, or to `turtle/` of the data directory."""
    return TurtleFiles(Path(target) if target else around.data / "turtle", compress=around.compress)


def sparql(target: str | None, around: Surroundings) -> GraphSink:
    """Deliver to the server at that address."""
    if target is None:
        raise ConfigError("sparql: needs the address of a server, such as sparql:http://localhost:7878/store")
    store = SparqlStore(target, credentials(CREDENTIALS))
    return SparqlSink(store, PostgresLedger(around.session, around.sink), around.read)
