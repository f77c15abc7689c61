"""The endpoint: reads a request, has the catalogue asked in a thread, sends an answer that is whole."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import BinaryIO, Final, TypeVar

from pyoxigraph import BlankNode, NamedNode, Triple, serialize
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tamias.content.formats import JSON_LD, NTRIPLES, RDF_XML, TURTLE, syntax_of
from tamias.features.catalogue.catalogue import Catalogue
from tamias.features.catalogue.errors import AnswerTooLarge, QueryRefused, QueryTooLong, StoreAway
from tamias.features.catalogue.exchange import Answer
from tamias.features.catalogue.result_formats import preferred
from tamias.features.catalogue.store.local_store import RunningQuery
from tamias.features.catalogue.store.memory import MOST_QUERIES
from tamias.features.dcat.terms import PREFIXES
from tamias.features.service.http.identify import caller_of
from tamias.features.service.http.params import base_of, body
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.service import Service
from tamias.features.service.sparql.protocol import LONGEST_QUERY, SparqlRequest, by_get, by_post
from tamias.features.service.sparql.turns import QueryTurns
from tamias.permit.addresses import is_loopback

T = TypeVar("T")
_LONGEST_ACCEPT = 4096
_PIECE = 64 * 1024
_SD: Final = "http://www.w3.org/ns/sparql-service-description#"
_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_FORMATS: Final = (
    "SPARQL_Results_JSON",
    "SPARQL_Results_XML",
    "SPARQL_Results_CSV",
    "SPARQL_Results_TSV",
    "Turtle",
    "N-Triples",
    "N-Quads",
    "TriG",
    "RDF_XML",
    "JSON-LD",
)
_WRITTEN: Final = {kind: syntax_of(kind) for kind in (TURTLE, NTRIPLES, RDF_XML, JSON_LD)}
_ANYTHING = f"application/sparql-results+json, {TURTLE};q=0.9, */*;q=0.1"


class SparqlEndpoint:
    """Asks one catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._threads = ThreadPoolExecutor(MOST_QUERIES, "sparql")
        self._turns = QueryTurns(MOST_QUERIES)

    async def answer(self, request: Request) -> Response:
        """Answer one request. Raises `HttpProblem`."""
        query = await _read(request)
        if query is None:
            return _described(request)
        accept = _bounded(request.headers.get("accept", "").strip() or _ANYTHING)
        asking = RunningQuery()
        leaving = asyncio.create_task(_give_up_when_left(request, asking))
        try:
            return _sent(request, await self.ask(query, accept, asking, _client(request)))
        finally:
            leaving.cancel()
            asking.give_up()

    async def ask(
        self, wanted: SparqlRequest, accept: str, asking: RunningQuery | None = None, client: str = ""
    ) -> Answer:
        """The answer to a query of a client, when it is its turn. Raises `HttpProblem`."""
        asking = asking or RunningQuery()
        work = partial(self.catalogue.ask, wanted.query, accept, wanted.graphs, asking)
        return await self._turns.take(client, partial(self.work, work), asking.give_up)

    async def work(self, work: Callable[[], T]) -> T:
        """Does something with the catalogue in a thread. Raises `HttpProblem`."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except QueryRefused as error:
            raise HttpProblem(error.status, str(error)) from error
        except QueryTooLong as error:
            raise HttpProblem(504, str(error)) from error
        except AnswerTooLarge as error:
            raise HttpProblem(422, str(error)) from error
        except StoreAway as error:
            raise HttpProblem(503, str(error), {"Retry-After": "5"}) from error

    def close(self) -> None:
        """Close the endpoint when running queries are done."""
        self._threads.shutdown()


def sparql_of(service: Service) -> SparqlEndpoint:
    """Return the endpoint of a service. Raises `HttpProblem` where it has none."""
    if service.sparql is None:
        raise HttpProblem(404, "this service has no SPARQL endpoint")
    return service.sparql


def _client(request: Request) -> str:
    """Return the name of a caller; of one without a name the address, as a proxy on this machine says it."""
    if (caller := caller_of(request)) is not None:
        return caller.name
    address = request.client.host if request.client else ""
    forwarded = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    return forwarded if forwarded and is_loopback(address) else address


async def _give_up_when_left(request: Request, asking: RunningQuery) -> None:
    """Ends the query of a client that does not wait for the answer."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    asking.give_up()


async def _read(request: Request) -> SparqlRequest | None:
    parameters = request.query_params.multi_items()
    if request.method != "POST":
        return by_get(parameters)
    # In a form every byte may take three.
    content = await body(request, 3 * LONGEST_QUERY)
    return by_post(request.headers.get("content-type", ""), content, parameters)


def _bounded(accept: str) -> str:
    if len(accept) > _LONGEST_ACCEPT or not accept.isascii() or not accept.isprintable():
        raise HttpProblem(400, f"Accept must be ASCII, {_LONGEST_ACCEPT} characters at most")
    return accept


def _described(request: Request) -> Response:
    endpoint = base_of(request) + request.url.path
    found = description(endpoint, request.headers.get("accept", ""))
    if found is None:
        # Whoever asks without a query and wants a page looks for the description anyhow.
        found = description(endpoint, "")
    assert found is not None
    return Response(found[0], media_type=found[1], headers={"Vary": "Accept"})


def _sent(request: Request, answer: Answer) -> Response:
    headers = {
        "Content-Length": str(answer.size),
        "Content-Type": answer.media_type,
        "Vary": "Accept",
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    if request.method == "HEAD":
        answer.content.close()
        return Response(headers=headers)
    return StreamingResponse(_pieces(answer.content), headers=headers)


async def _pieces(content: BinaryIO) -> AsyncIterator[bytes]:
    with content:
        while piece := content.read(_PIECE):
            yield piece


def description(endpoint: str, accept: str) -> tuple[bytes, str] | None:
    """The description and its media type; None when none of ours is accepted."""
    kind = preferred(accept, list(_WRITTEN))
    if kind is None:
        return None
    prefixes = {"sd": _SD, "rdf": PREFIXES["rdf"]}
    written = serialize(_statements(NamedNode(endpoint)), format=_WRITTEN[kind], prefixes=prefixes)
    return written or b"", kind


def _statements(endpoint: NamedNode) -> list[Triple]:
    service, dataset, graph = NamedNode(endpoint.value + "#service"), BlankNode("dataset"), BlankNode("graph")
    found = [
        Triple(service, _TYPE, _term("Service")),
        Triple(service, _term("endpoint"), endpoint),
        Triple(service, _term("supportedLanguage"), _term("SPARQL11Query")),
        Triple(service, _term("feature"), _term("UnionDefaultGraph")),
        Triple(service, _term("defaultDataset"), dataset),
        Triple(dataset, _TYPE, _term("Dataset")),
        Triple(dataset, _term("defaultGraph"), graph),
        Triple(graph, _TYPE, _term("Graph")),
    ]
    space = "http://www.w3.org/ns/formats/"
    return found + [Triple(service, _term("resultFormat"), NamedNode(space + each)) for each in _FORMATS]


def _term(name: str) -> NamedNode:
    return NamedNode(_SD + name)
