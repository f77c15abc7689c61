"""The routes: `/sparql` for queries, and the files that the result of a query names as a zip.

`SparqlSide` is what a running service has of it: the catalogue, these routes, and the thread that fills it.
"""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.versions.resources import read_resources, read_versions
from tamias.content.formats import CSV, JSON_LD, NQUADS, NTRIPLES, RDF_XML, TRIG, TSV, TURTLE, ZIP
from tamias.database.connect import Database
from tamias.features.catalogue.catalogue import Catalogue, CatalogueFollower, options_of
from tamias.features.dcat.terms import bases_of
from tamias.features.service.api.files import Found, zip_answer
from tamias.features.service.http.endpoints import FOR_TRAINING, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.features.service.service import Service
from tamias.features.service.sparql.downloads import iris_of_query, version_ids
from tamias.features.service.sparql.endpoint import SparqlEndpoint, sparql_of
from tamias.settings import ServeSettings

_AT_ONCE = 100
_FORMATS = (
    "application/sparql-results+json",
    "application/sparql-results+xml",
    CSV,
    TSV,
    TURTLE,
    NTRIPLES,
    NQUADS,
    TRIG,
    RDF_XML,
    JSON_LD,
)
_ANSWER = ResponseSpec("The whole answer, in the format that Accept names", media_types=_FORMATS)
_ZIP = ResponseSpec("A zip with all files and manifest.jsonl", media_types=(ZIP,))
_GRAPHS = (
    Parameter("default-graph-uri", "query only this graph"),
    Parameter("named-graph-uri", "use only this graph for GRAPH"),
)


ENDPOINTS = EndpointTable()


@ENDPOINTS.post("/sparql", _ANSWER, *_GRAPHS, about="The same with the query as body, by itself or in a form")
@ENDPOINTS.get(
    "/sparql",
    _ANSWER,
    Parameter("query", "SPARQL 1.1; you do not have to declare the usual prefixes"),
    *_GRAPHS,
    about="The SPARQL 1.1 Protocol, read-only; without a query, the service description",
)
async def _answer(request: Request, service: Service) -> Response:
    return await sparql_of(service).answer(request)


@ENDPOINTS.get(
    "/api/v1/get/files/sparql",
    _ZIP,
    Parameter("q", "a query whose result names versions or datasets", required=True),
    FOR_TRAINING,
)
async def _files(request: Request, service: Service) -> Response:
    """The files of all versions and datasets in the result of a query, as a zip."""
    query = request.query_params.get("q")
    if not query:
        raise HttpProblem(400, "'q' must be a SPARQL query")
    iris = await iris_of_query(sparql_of(service), query)
    ids = await service.pool.run(lambda db: version_ids(db.session, iris))
    if not ids:
        raise HttpProblem(
            404, f"none of the {len(iris)} IRIs in the result is a version or dataset of the archive"
        )
    return await zip_answer(request, service, _found(service.pool, ids), "query")


def _versions_named(db: ServiceSession, ids: list[str]) -> list[Found]:
    """Versions by ids, of versions or of datasets (then the current one); those that are there."""
    named = [each.partition("_")[::2] for each in ids]
    resources = {each.id: each for each in read_resources(db.session, [name for name, _ in named])}
    versions = read_versions(db.session, list(resources))
    wanted: dict[str, Found] = {}
    for name, number in named:
        fits = [each for each in versions.get(name, []) if number in ("", str(each.number))]
        if fits:
            wanted[fits[-1].id] = (resources[name], fits[-1])
    return list(wanted.values())


async def _found(pool: SessionPool, ids: list[str]) -> AsyncIterator[Found]:
    for start in range(0, len(ids), _AT_ONCE):
        for each in await pool.run(partial(_versions_named, ids=ids[start : start + _AT_ONCE])):
            yield each


class SparqlSide:
    """The catalogue and endpoint of a running service; the store starts when it is first needed."""

    def __init__(
        self, data: Path, database: Database, settings: ServeSettings, patience: float = 0.0
    ) -> None:
        """`patience`: so many seconds new versions wait for their profiles, if somebody makes them."""
        self.catalogue = Catalogue(data, options_of(settings), database)
        self.endpoint = SparqlEndpoint(self.catalogue)
        self._following: CatalogueFollower | None = None
        if self.catalogue.is_filled_by_us:
            self._following = CatalogueFollower(
                self.catalogue, database, bases_of(settings), patience=patience
            )
            self._following.start()

    def close(self) -> None:
        """Close everything when running queries are done."""
        if self._following is not None:
            self._following.close()
        self.endpoint.close()
        self.catalogue.close()
