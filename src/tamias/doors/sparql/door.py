"""The door itself: opens an endpoint for a walk."""

from collections.abc import AsyncIterator

from msgspec.structs import replace

from tamias.doors.sparql.client import EndpointClient
from tamias.doors.sparql.copying import Copy
from tamias.doors.sparql.limits import Limits
from tamias.doors.sparql.state import unpacked
from tamias.model.walk import Step, Walk
from tamias.protocols import Guide


class SparqlDoor:
    """Copies a SPARQL endpoint whole: its description, its default graph and every named graph."""

    kinds = frozenset({"sparql"})

    def __init__(self, **limits: int) -> None:
        """Keyword arguments are the fields of `Limits`."""
        self._limits = replace(Limits(), **limits)

    def walk(self, walk: Walk, guide: Guide) -> AsyncIterator[Step]:
        state = unpacked(walk.state, self._limits.page)
        client = EndpointClient(guide, walk.url, state.dialect, self._limits.most_bytes)
        return Copy(client, state, self._limits).steps()
