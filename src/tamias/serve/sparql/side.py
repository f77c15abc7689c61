"""The SPARQL side of a running service: the catalogue, its routes, and the thread that keeps it up."""

from pathlib import Path

from tamias.crawl.catalogue.catalogue import Catalogue, CatalogueFollower, bases_of, options_of
from tamias.database.connect import Database
from tamias.serve.http.endpoints import Endpoint
from tamias.serve.mcp.http import mcp_endpoints
from tamias.serve.sparql.endpoint import SparqlEndpoint
from tamias.serve.sparql.routes import sparql_endpoints
from tamias.settings import ServeSettings


class SparqlSide:
    """From now until `close`. The server itself starts when it is first needed."""

    def __init__(self, data: Path, database: Database, settings: ServeSettings) -> None:
        self.catalogue = Catalogue(data, options_of(settings))
        self._endpoint = SparqlEndpoint(self.catalogue)
        self._following: CatalogueFollower | None = None
        if self.catalogue.is_filled_by_us:
            self._following = CatalogueFollower(self.catalogue, database, bases_of(settings))
            self._following.start()

    @property
    def endpoints(self) -> list[Endpoint]:
        """To be given to the application."""
        return [*sparql_endpoints(self._endpoint), *mcp_endpoints(self._endpoint, self.catalogue)]

    def close(self) -> None:
        """When what is under way is done."""
        if self._following is not None:
            self._following.close()
        self._endpoint.close()
        self.catalogue.close()
