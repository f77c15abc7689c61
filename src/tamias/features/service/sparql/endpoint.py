"""The SPARQL endpoint: reads a request, waits for its turn, asks the catalogue and sends whole answers."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar
from urllib.parse import parse_qsl

import msgspec
from pyoxigraph import RdfFormat, parse, serialize
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tamias.archive.moments import milliseconds, rfc3339
from tamias.content.formats import JSON_LD, NTRIPLES, RDF_XML, TURTLE, syntax_of
from tamias.features.catalogue.catalogue import Catalogue
from tamias.features.catalogue.errors import AnswerTooLarge, QueryRefused, QueryTooLong, StoreAway
from tamias.features.catalogue.exchange import Answer
from tamias.features.catalogue.query_text import asks_elsewhere
from tamias.features.catalogue.store.local_store import RunningQuery
from tamias.features.catalogue.store.messages import MOST_QUERIES
from tamias.features.dcat.terms import PREFIXES
from tamias.features.service.files.delivery import http_date, part_of, read_http_date
from tamias.features.service.http.callers import record_of
from tamias.features.service.http.exchange import base_of, body, preferred_by
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.service import Service
from tamias.permit.addresses import is_loopback

LONGEST_QUERY: Final = 128 * 1024
_MOST_PARAMETERS: Final = 1000
_GRAPHS: Final = ("default-graph-uri", "named-graph-uri")

Parameters = Sequence[tuple[str, str]]


class SparqlRequest(msgspec.Struct, frozen=True):
    """A query and the graphs that it is about; without graphs it is about all."""

    query: str
    graphs: dict[str, list[str]]
    at: str | None = None
    """Of which time its graphs are."""


def by_get(parameters: Parameters) -> SparqlRequest | None:
    """A query by its parameters; None asks for the description of the service."""
    _refuse_update(parameters)
    queries = [value for name, value in parameters if name == "query"]
    if not queries:
        return None
    return _request(queries, parameters)


def by_post(content_type: str, body: bytes, parameters: Parameters) -> SparqlRequest:
    """A query by either form of POST. Raises `HttpProblem`."""
    kind = content_type.partition(";")[0].strip().lower()
    _refuse_update(parameters)
    if kind == "application/sparql-query":
        return _request([_decoded(body)], parameters)
    if kind == "application/x-www-form-urlencoded":
        form = _form(body)
        _refuse_update(form)
        return _request([value for name, value in form if name == "query"], form)
    if kind == "application/sparql-update":
        raise _read_only()
    raise HttpProblem(
        415, "a query is posted as application/sparql-query or as application/x-www-form-urlencoded"
    )


def _request(queries: list[str], parameters: Parameters) -> SparqlRequest:
    if len(queries) != 1 or not queries[0].strip():
        raise HttpProblem(400, "send exactly one 'query'")
    (query,) = queries
    if len(query) > LONGEST_QUERY:
        raise HttpProblem(413, f"a query may have {LONGEST_QUERY} characters at most")
    if asks_elsewhere(query):
        raise HttpProblem(400, "SERVICE is not supported: other servers are not queried")
    graphs = {name: [value for each, value in parameters if each == name] for name in _GRAPHS}
    at = next((value for name, value in parameters if name == "at"), None)
    return SparqlRequest(query, {name: values for name, values in graphs.items() if values}, at)


def _form(body: bytes) -> Parameters:
    try:
        return parse_qsl(
            _decoded(body), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS, errors="strict"
        )
    except ValueError as error:
        raise HttpProblem(400, f"the form cannot be read: {error}") from None


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise HttpProblem(400, f"the query is not UTF-8 at byte {error.start}") from None


def _refuse_update(parameters: Parameters) -> None:
    if any(name == "update" for name, _ in parameters):
        raise _read_only()


def _read_only() -> HttpProblem:
    return HttpProblem(403, "this endpoint is for reading only: it takes no updates")


T = TypeVar("T")
QUICK_SECONDS = 1.0
"""A query that takes longer is a long one."""
WAIT_SECONDS = 10.0
"""No query waits longer for its turn."""
MOST_WAITING = 64
MOST_OF_A_CLIENT = 16
_REFUSED = {"Retry-After": "10"}


class _WaitingQuery:
    def __init__(self, client: str, give_up: Callable[[], None]) -> None:
        self.client = client
        self.give_up = give_up
        self.begun = 0.0
        self.comes = asyncio.Event()
        self.is_ended = False


class QueryTurns:
    """Places for queries: the client with the fewest queries under way is next, and the eldest query of it.

    Half of the places are for long queries. When others wait, one that is long beyond that number ends, of
    the client with the most, or of one whose queries ended so: it would have made short ones wait.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._working: list[_WaitingQuery] = []
        self._waiting: list[_WaitingQuery] = []
        self._stopped: Counter[str] = Counter()

    async def take(self, client: str, work: Callable[[], Awaitable[T]], give_up: Callable[[], None]) -> T:
        """Return the result of the work when it is its turn; `give_up` makes it end. Raises `HttpProblem`."""
        turn = _WaitingQuery(client, give_up)
        ours = sum(each.client == client for each in self._waiting)
        if len(self._waiting) >= MOST_WAITING or ours >= MOST_OF_A_CLIENT:
            raise HttpProblem(503, f"{len(self._waiting)} queries are waiting already", _REFUSED)
        self._waiting.append(turn)
        self._assign()
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(turn.comes.wait(), WAIT_SECONDS)
            if not turn.comes.is_set():
                self._stopped.pop(client, None)
                raise HttpProblem(503, f"{len(self._working)} other queries are under way", _REFUSED)
            answer = await work()
            self._stopped.pop(client, None)
            return answer
        except Exception:
            if not turn.is_ended:
                raise
            detail = "the query was stopped for shorter ones: too many long queries are under way"
            raise HttpProblem(503, detail, _REFUSED) from None
        finally:
            (self._working if turn in self._working else self._waiting).remove(turn)
            self._assign()

    def _assign(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and len(self._working) < self._places:
            turn = min(self._waiting, key=self._rank)
            self._waiting.remove(turn)
            self._working.append(turn)
            turn.begun = loop.time()
            turn.comes.set()
            loop.call_later(QUICK_SECONDS, self._assign)
        if self._waiting and not any(each.is_ended for each in self._working):
            self._end_one(loop.time() - QUICK_SECONDS)

    def _end_one(self, begun_before: float) -> None:
        long = [each for each in self._working if each.begun <= begun_before]
        if len(long) > self._places // 2:
            turn = max(long, key=lambda each: (*self._rank(each), each.begun))
            if min(map(self._rank, self._waiting))[1] <= self._stopped[turn.client]:
                turn.is_ended = True
                self._stopped[turn.client] += 1
                turn.give_up()

    def _rank(self, turn: _WaitingQuery) -> tuple[int, int]:
        return sum(each.client == turn.client for each in self._working), self._stopped[turn.client]


_LONGEST_ACCEPT = 4096
_DESCRIPTION: Final = """
PREFIX sd: <http://www.w3.org/ns/sparql-service-description#>
PREFIX formats: <http://www.w3.org/ns/formats/>
<#service> a sd:Service ; sd:endpoint <> ; sd:supportedLanguage sd:SPARQL11Query ;
  sd:feature sd:UnionDefaultGraph ; sd:defaultDataset _:dataset ;
  sd:resultFormat formats:SPARQL_Results_JSON, formats:SPARQL_Results_XML, formats:SPARQL_Results_CSV,
    formats:SPARQL_Results_TSV, formats:Turtle, formats:N-Triples, formats:N-Quads, formats:TriG,
    formats:RDF_XML, formats:JSON-LD .
_:dataset a sd:Dataset ; sd:defaultGraph _:graph .
_:graph a sd:Graph .
"""
"""The description of the service, at the address of the endpoint."""
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
        query = _at_header(query, request)
        accept = request.headers.get("accept", "").strip() or _ANYTHING
        if len(accept) > _LONGEST_ACCEPT or not accept.isascii() or not accept.isprintable():
            raise HttpProblem(400, f"Accept must be ASCII, {_LONGEST_ACCEPT} characters at most")
        asking = RunningQuery()
        leaving = asyncio.create_task(_give_up_when_left(request, asking))
        try:
            return _sent(request, await self.ask(query, accept, asking, _client(request)), query.at)
        finally:
            leaving.cancel()
            asking.give_up()

    async def ask(
        self, wanted: SparqlRequest, accept: str, asking: RunningQuery | None = None, client: str = ""
    ) -> Answer:
        """The answer to a query of a client, when it is its turn. Raises `HttpProblem`."""
        asking = asking or RunningQuery()
        work = partial(self.catalogue.ask, wanted.query, accept, wanted.graphs, asking, wanted.at)
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
    if (caller := record_of(request).caller) is not None:
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


def _described(request: Request) -> Response:
    # Whoever asks without a query and wants a page looks for the description anyhow.
    kind = preferred_by(request, list(_WRITTEN)) or TURTLE
    endpoint = base_of(request) + request.url.path
    statements = parse(_DESCRIPTION, format=RdfFormat.TURTLE, base_iri=endpoint)
    prefixes = {"sd": "http://www.w3.org/ns/sparql-service-description#", "rdf": PREFIXES["rdf"]}
    written = serialize((each.triple for each in statements), format=_WRITTEN[kind], prefixes=prefixes)
    return Response(written or b"", media_type=kind, headers={"Vary": "Accept"})


def _at_header(query: SparqlRequest, request: Request) -> SparqlRequest:
    """Return a query with the time of Accept-Datetime, if its parameters name none. Raises `HttpProblem`."""
    wanted = request.headers.get("accept-datetime")
    if query.at is not None or wanted is None:
        return query
    moment = read_http_date(wanted)
    if moment is None:
        raise HttpProblem(
            400, "Accept-Datetime is not an HTTP date such as 'Tue, 14 Nov 2023 22:13:20 GMT'; or use at="
        )
    return msgspec.structs.replace(query, at=rfc3339(moment))


def _sent(request: Request, answer: Answer, at: str | None) -> Response:
    headers = {
        "Content-Length": str(answer.size),
        "Content-Type": answer.media_type,
        "Vary": "Accept, Accept-Datetime",
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    if at is not None:
        headers["Memento-Datetime"] = http_date(milliseconds(at))
    if request.method == "HEAD":
        answer.content.close()
        return Response(headers=headers)
    return StreamingResponse(part_of(answer.content, 0, answer.size), headers=headers)
