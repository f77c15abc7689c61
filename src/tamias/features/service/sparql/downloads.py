"""Downloads by query: every version or dataset that a result names becomes a version to be had."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

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

from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.catalogue.exchange import Answer
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.sparql.endpoint import SparqlEndpoint
from tamias.features.service.sparql.protocol import by_get

ACCEPT: Final = "application/sparql-results+json, application/n-triples;q=0.9"
MOST_VERSIONS: Final = 10_000
_AT_ONCE: Final = 500
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
    for start in range(0, len(wanted), _AT_ONCE):
        versions |= dict.fromkeys(_known(session, wanted[start : start + _AT_ONCE]))
        if len(versions) > MOST_VERSIONS:
            raise HttpProblem(422, f"the result names more than {MOST_VERSIONS} versions; ask for less")
    return list(versions)


async def iris_of_query(endpoint: SparqlEndpoint, query: str) -> list[str]:
    """The IRIs in the result of a query; `version_ids` says which versions they are. Raises `HttpProblem`."""
    wanted = by_get([("query", query)])
    assert wanted is not None
    answer = await endpoint.ask(wanted, ACCEPT)
    return await endpoint.work(lambda: list(iris(answer)))


def _known(session: Session, wanted: list[Named]) -> Iterator[str]:
    values = {
        "version": [each.version for each in wanted],
        "dataset": [each.dataset for each in wanted],
        "address": [each.address for each in wanted],
    }
    return (f"{resource}_{number}" for resource, number in session.fetch_all(_SQL["known_versions"], values))


def _iris(terms: Iterable[object]) -> Iterator[str]:
    return (term.value for term in terms if isinstance(term, NamedNode))
