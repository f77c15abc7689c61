"""Sends queries to one endpoint in the way it accepts them; whatever goes wrong becomes one `QueryFailed`."""

from collections.abc import Awaitable
from typing import Literal, TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec
from pyoxigraph import Quad, RdfFormat, parse

from tamias.features.sparql_copy.answers import Row, SparqlAnswer, UnreadableAnswer, read_answer
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.finding import HarvestEnd
from tamias.protocols import PoliteClient

NAMED = "named-graph-uri"
"""How the SPARQL protocol names a graph that a query is about."""
LONG_QUERY = 2_000
"""Characters of a URL that every server takes."""
MOST_GET = 6_000
"""The same where POST is refused."""
MOST_POST = 256_000

ResultFormat = Literal["json", "xml", "tsv"]
RESULT_FORMATS: tuple[ResultFormat, ...] = ("json", "xml", "tsv")
_ACCEPT: dict[ResultFormat, str] = {
    "json": "application/sparql-results+json, application/json;q=0.9, application/sparql-results+xml;q=0.5",
    "xml": "application/sparql-results+xml, application/xml;q=0.5",
    "tsv": "text/tab-separated-values",
}
_TRIPLES = "application/n-triples"
_NO_GET = frozenset({405, 411, 414, 431, 501})
_NO_POST = frozenset({403, 405, 413, 415, 501})
_TEMPORARY = frozenset({408, 425, 429})
_PARTIAL = ("x-sql-state", "S1TAT")
"""How Virtuoso says that time was up, above an answer that looks complete."""


class EndpointLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the copy of one endpoint."""

    page: int = 20_000
    """Statements first requested at once."""
    least_page: int = 20
    """A page is not made smaller than this for errors."""
    most_bytes: int = 64 << 20
    """Of one response."""
    most_graphs: int = 1_000_000
    most_statements: int = 1_000_000_000
    most_batch: int = 1_000
    """Graphs requested at once."""
    most_abandoned: int = 20
    """Graphs that cannot be had, before the rest is not tried any more."""


class QueryFailed(Exception):
    """A request without a usable response. `lasting` when the same request will fail again."""

    def __init__(self, reason: str, capture: Capture | None = None, *, lasting: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.capture = capture
        self.lasting = lasting

    def end(self, said: str, *, retry: bool) -> HarvestEnd:
        """Return the end of a harvest that cannot go on now; `retry` is whether to try again later."""
        capture = self.capture
        outcome = Outcome.FAILED if capture is None or capture.outcome is Outcome.OK else capture.outcome
        return HarvestEnd(
            outcome=outcome,
            reason=f"{self.reason}; {said}",
            retry=retry and outcome is Outcome.FAILED,
            retry_after_ms=None if capture is None else capture.retry_after_ms,
        )

    @property
    def final(self) -> bool:
        """Return whether no request may be sent now: a rule forbids it, or the server wants a pause."""
        if self.capture is None:
            return False
        return (
            self.capture.outcome in (Outcome.REFUSED, Outcome.SKIPPED)
            or self.capture.retry_after_ms is not None
        )


_T = TypeVar("_T")


async def answered(wanted: Awaitable[_T], otherwise: _T) -> _T:
    """Return what an endpoint answers, or `otherwise` if it does not. Raises only what is final."""
    try:
        return await wanted
    except QueryFailed as failure:
        if failure.final:
            raise
        return otherwise


class EndpointDialect(msgspec.Struct, omit_defaults=True):
    """The way in which an endpoint takes its queries, as learned so far."""

    results: ResultFormat = "json"
    post: bool | None = None
    """None: for long queries. True: always. False: never."""
    requests: int = 0


def without_parameter(url: str, name: str) -> tuple[str, list[str]]:
    """Return an address without a parameter of its query, and the values of that.

    >>> without_parameter("http://example.org/sparql?a=b&query=ASK+%7B%7D", "query")
    ('http://example.org/sparql?a=b', ['ASK {}'])
    """
    address, _, query = url.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    found = [value for each, value in pairs if each == name]
    if not found:
        return url, found
    others = urlencode([pair for pair in pairs if pair[0] != name])
    return (f"{address}?{others}" if others else address), found


def query_request(url: str, form: str, accept: str, *, post: bool) -> Request:
    """Return the request of a query, which is in a form."""
    if post:
        kind = "application/x-www-form-urlencoded"
        return Request(url=url, accept=accept, body=form.encode(), content_type=kind, is_query=True)
    return Request(url=f"{url}{'&' if '?' in url else '?'}{form}", accept=accept, is_query=True)


class EndpointClient:
    """Queries one endpoint, through a polite client."""

    def __init__(self, http: PoliteClient, url: str, dialect: EndpointDialect, most_bytes: int) -> None:
        """Learn into `dialect`; a response has at most `most_bytes`."""
        self.http = http
        self.url, graphs = without_parameter(url, NAMED)
        self.graphs = frozenset(graphs)
        """Only these named graphs are meant; none: all of the endpoint."""
        self.dialect = dialect
        self._most_bytes = most_bytes
        self.last_seconds = 0.0
        """How long the last response took."""

    @property
    def most_query(self) -> int:
        """Return the most characters of a query."""
        return MOST_GET if self.dialect.post is False else MOST_POST

    async def select(self, query: str, tries: int = 1) -> list[Row]:
        """Return the rows of a SELECT, requested again when that can help. Raises `QueryFailed`."""
        return (await self.answer(query, tries)).rows

    async def answer(self, query: str, tries: int = 1) -> SparqlAnswer:
        """Return the rows of a SELECT with its variables."""
        while True:
            try:
                capture = await self._query(query, _ACCEPT[self.dialect.results])
                return self._answer(capture)
            except QueryFailed as failure:
                tries -= 1
                if failure.final or failure.lasting or not tries:
                    raise

    async def number(self, query: str) -> int:
        """Return the `?n` of the only row. Raises `QueryFailed`."""
        rows = await self.select(query, tries=3)
        try:
            return int(rows[0]["n"].text)
        except (IndexError, KeyError, ValueError):
            raise QueryFailed("a count without a number", lasting=True) from None

    async def triples(self, query: str) -> list[Quad]:
        """Return the statements of a CONSTRUCT: five times as fast as rows. Raises `QueryFailed`."""
        capture = await self._query(query, _TRIPLES)
        if not (capture.declared_type or "").lower().startswith((_TRIPLES, "text/plain")):
            raise QueryFailed("answered with other than N-Triples", capture)
        body = self.http.body(capture, self._most_bytes)
        # N-Triples have no end mark; this finds a response that breaks off inside a line.
        if body and not body.rstrip().endswith(b"."):
            raise QueryFailed("answered with N-Triples that are cut off", capture)
        try:
            return list(parse(body, format=RdfFormat.N_TRIPLES, lenient=True))
        except SyntaxError as error:
            raise QueryFailed(f"answered with broken N-Triples: {error}", capture) from None

    def _answer(self, capture: Capture) -> SparqlAnswer:
        try:
            return read_answer(self.http.body(capture, self._most_bytes))
        except UnreadableAnswer as error:
            raise QueryFailed(f"answered with {error}", capture) from None

    async def _query(self, query: str, accept: str) -> Capture:
        dialect = self.dialect
        post = len(query) > LONG_QUERY if dialect.post is None else dialect.post
        capture = await self._send(query, accept, post=post)
        if dialect.post is None and capture.status in (_NO_POST if post else _NO_GET):
            if post:
                dialect.post = False
                if len(query) > MOST_GET:
                    raise QueryFailed("POST is refused", capture)
            second = await self._send(query, accept, post=not post)
            if not post and second.outcome is Outcome.OK:
                dialect.post = True
            # The first error says more: the second may only be that the other method is not allowed.
            capture = second if second.outcome is Outcome.OK else capture
        self.last_seconds = (capture.ended_at - capture.started_at) / 1000
        return self._whole(capture)

    async def _send(self, query: str, accept: str, *, post: bool) -> Capture:
        self.dialect.requests += 1
        form = urlencode([("query", query), *((NAMED, graph) for graph in sorted(self.graphs))])
        return await self.http.ask(query_request(self.url, form, accept, post=post))

    def _whole(self, capture: Capture) -> Capture:
        """Return the capture, if it has a whole response. Raises `QueryFailed`."""
        if capture.outcome is not Outcome.OK or capture.body is None:
            status = capture.status or 0
            lasting = 400 <= status < 500 and status not in _TEMPORARY
            raise QueryFailed(capture.reason, capture, lasting=lasting)
        if capture.body.size > self._most_bytes:
            raise QueryFailed(
                f"a response of {capture.body.size} bytes, more than {self._most_bytes}", capture
            )
        if capture.hops and capture.hops[-1].header(_PARTIAL[0]) == _PARTIAL[1]:
            raise QueryFailed("a partial response: the server's time was up", capture)
        return capture
