"""The harvester itself: opens an endpoint for a harvest."""

from collections.abc import AsyncIterator

from msgspec.structs import replace

from tamias.harvesters.sparql.client import EndpointClient, EndpointLimits
from tamias.harvesters.sparql.copying import Copy
from tamias.harvesters.sparql.state import unpacked
from tamias.model.finding import Harvest, HarvestStep
from tamias.protocols import PoliteClient


class SparqlHarvester:
    """Copies a SPARQL endpoint whole: its description, its default graph and every named graph."""

    kinds = frozenset({"sparql"})

    def __init__(self, **limits: int) -> None:
        """Keyword arguments are the fields of `Limits`."""
        self._limits = replace(EndpointLimits(), **limits)

    def harvest(self, harvest: Harvest, http: PoliteClient) -> AsyncIterator[HarvestStep]:
        state = unpacked(harvest.state, self._limits.page)
        client = EndpointClient(http, harvest.url, state.dialect, self._limits.most_bytes)
        return Copy(client, state, self._limits).steps()
