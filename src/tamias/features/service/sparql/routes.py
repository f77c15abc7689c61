"""Routes of SPARQL: `/sparql` for queries, and the files that the result of a query names as a zip."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from pyoxigraph import (
    NamedNode,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    parse,
    parse_query_results,
)
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.reader.library import ArchiveReader
from tamias.archive.versions.resources import read_resources, read_versions
from tamias.content.formats import CSV, JSON_LD, NQUADS, NTRIPLES, RDF_XML, TRIG, TSV, TURTLE, ZIP
from tamias.database.connect import Database, Session
from tamias.database.sql import statements
from tamias.features.catalogue.catalogue import Catalogue, CatalogueFollower
from tamias.features.catalogue.exchange import Answer
from tamias.features.catalogue.past import PastStates
from tamias.features.dcat.terms import bases_of
from tamias.features.service.api.files import Found, zip_answer
from tamias.features.service.http.endpoints import FOR_TRAINING, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.features.service.service import Service
from tamias.features.service.sparql.endpoint import SparqlEndpoint, by_get, sparql_of
from tamias.settings import Settings

T = TypeVar("T")
ACCEPT: Final = "application/sparql-results+json, application/n-triples;q=0.9"
MOST_VERSIONS: Final = 10_000
_IRIS_AT_ONCE: Final = 500
_SQL = statements("tamias.features.service.sparql", "downloads.sql")
_FILE: Final = re.compile(r"https?://[^?#]+/get/file/id/([0-9a-f]{24}_[1-9][0-9]{0,8})")
_DATASET: Final = re.compile(
    r"https?://[^?#]+/dataset/([0-9a-f]{24})(?:/([1-9][0-9]{0,8}))?(?:#distribution)?"
)


class Named(msgspec.Struct, frozen=True):
    """The meaning of an IRI of a result: a version, the newest of a dataset, or a URL."""

    version: str | None = None
    dataset: str | None = None
    address: str | None = None


def named(iri: str) -> Named:
    """Return the meaning of an IRI.

    >>> named("http://archive.example/dataset/0123456789abcdef01234567/2").version
    '0123456789abcdef01234567_2'
    """
    if found := _FILE.fullmatch(iri):
        return Named(version=found[1])
    if found := _DATASET.fullmatch(iri):
        return Named(version=f"{found[1]}_{found[2]}") if found[2] else Named(dataset=found[1])
    return Named(address=iri)


def iris(answer: Answer) -> Iterator[str]:
    """The IRIs of a result, in its order. Raises `HttpProblem` for an answer of yes or no."""
    with answer.content as content:
        if answer.media_type.startswith("application/n-triples"):
            for quad in parse(content, format=RdfFormat.N_TRIPLES):
                yield from _iris((quad.subject, quad.object))
            return
        found = parse_query_results(content, format=QueryResultsFormat.JSON)
        if isinstance(found, QueryBoolean):
            raise HttpProblem(400, "an ASK query names nothing; use one that returns versions or datasets")
        assert isinstance(found, QuerySolutions)
        for solution in found:
            yield from _iris(solution)


def version_ids(session: Session, found: Iterable[str]) -> list[str]:
    """The versions that IRIs stand for, in their order, each once; what the archive has not is left out.

    Raises `HttpProblem` when they are too many.
    """
    wanted = [named(iri) for iri in dict.fromkeys(found)]
    versions: dict[str, None] = {}
    for start in range(0, len(wanted), _IRIS_AT_ONCE):
        batch = wanted[start : start + _IRIS_AT_ONCE]
        values = {name: [getattr(each, name) for each in batch] for name in Named.__struct_fields__}
        rows = session.fetch_all(_SQL["known_versions"], values)
        versions |= dict.fromkeys(f"{resource}_{number}" for resource, number in rows)
        if len(versions) > MOST_VERSIONS:
            raise HttpProblem(422, f"the result names more than {MOST_VERSIONS} versions; ask for less")
    return list(versions)


async def result_of(endpoint: SparqlEndpoint, query: str, read: Callable[[Answer], T]) -> T:
    """Read the result of a query. Raises `HttpProblem`."""
    wanted = by_get([("query", query)])
    assert wanted is not None
    answer = await endpoint.ask(wanted, ACCEPT)
    return await endpoint.work(lambda: read(answer))


def _iris(terms: Iterable[object]) -> Iterator[str]:
    return (term.value for term in terms if isinstance(term, NamedNode))


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

_TIMES = (
    Parameter("at", "query graphs and catalogue as they were at this time: RFC 3339 or a date"),
    Parameter("Accept-Datetime", "the same as an HTTP date", where="header"),
)


ENDPOINTS = EndpointTable()


@ENDPOINTS.post(
    "/sparql", _ANSWER, *_GRAPHS, *_TIMES, about="The same with the query as body, by itself or in a form"
)
@ENDPOINTS.get(
    "/sparql",
    _ANSWER,
    Parameter("query", "SPARQL 1.1; you do not have to declare the usual prefixes"),
    *_GRAPHS,
    *_TIMES,
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
    found = await result_of(sparql_of(service), query, lambda answer: list(iris(answer)))
    ids = await service.pool.run(lambda db: version_ids(db.session, found))
    if not ids:
        raise HttpProblem(
            404, f"none of the {len(found)} IRIs in the result is a version or dataset of the archive"
        )
    return await zip_answer(request, service, _found(service.pool, ids), "query")


def _versions_named(db: ServiceSession, ids: list[str]) -> list[Found]:
    """Versions by ids, of versions or of datasets (then the current one); those that are there."""
    parts = [each.partition("_")[::2] for each in ids]
    resources = {each.id: each for each in read_resources(db.session, [name for name, _ in parts])}
    versions = read_versions(db.session, list(resources))
    wanted: dict[str, Found] = {}
    for name, number in parts:
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

    def __init__(self, data: Path, database: Database, settings: Settings, patience: float = 0.0) -> None:
        """`patience`: so many seconds new versions wait for their profiles, if somebody makes them."""
        self.catalogue = Catalogue(data, settings.serve, database)
        self.catalogue.past = PastStates(self._opened_archive, settings)
        self._data, self._database = data, database
        self._archive: ArchiveReader | None = None
        self.endpoint = SparqlEndpoint(self.catalogue)
        self._following: CatalogueFollower | None = None
        if self.catalogue.is_filled_by_us:
            self._following = CatalogueFollower(
                self.catalogue, database, bases_of(settings.serve), patience=patience
            )
            self._following.start()

    def close(self) -> None:
        """Close everything when running queries are done."""
        if self._following is not None:
            self._following.close()
        self.endpoint.close()
        self.catalogue.close()
        if self._archive is not None:
            self._archive.close()

    def _opened_archive(self) -> ArchiveReader:
        self._archive = ArchiveReader(self._data, database=self._database)
        return self._archive
