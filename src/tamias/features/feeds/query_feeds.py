"""Feeds by query: the new versions of what a SELECT names. What it named is good for some seconds."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from typing import Final
from weakref import WeakKeyDictionary

import msgspec
from pyoxigraph import NamedNode, QueryResultsFormat, QuerySolutions, parse_query_results
from starlette.requests import Request
from starlette.responses import Response

from tamias.features.catalogue.exchange import Answer
from tamias.features.catalogue.result_formats import preferred
from tamias.features.feeds.changes import Row, feed_of, page_of, said_of, span, with_states
from tamias.features.feeds.entries import ATOM, JSON_FEED, Feed, atom, json_feed
from tamias.features.service.http.endpoints import FOR_TRAINING, PAGED, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.params import base_of
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import feed_words, unlisted
from tamias.features.service.service import Service
from tamias.features.service.sparql.downloads import ACCEPT, Named, named
from tamias.features.service.sparql.endpoint import SparqlEndpoint, sparql_of
from tamias.features.service.sparql.protocol import by_get

PATH: Final = "/feed"
FORMS: Final = {"atom": ATOM, "json": JSON_FEED}
MOST_NAMED: Final = 10_000
CACHE_SECONDS: Final = 30.0
MOST_CACHED: Final = 32
_JSON: Final = "application/json"
_WRITERS: Final = {ATOM: atom, JSON_FEED: json_feed}


class NamedByResult(msgspec.Struct, frozen=True):
    """The versions, datasets and URLs in a result, each once."""

    versions: list[str]
    datasets: list[str]
    addresses: list[str]


class QueryCache:
    """A cache of what queries named, by their texts."""

    def __init__(self, endpoint: SparqlEndpoint) -> None:
        self._endpoint = endpoint
        self._tasks: OrderedDict[str, tuple[float, asyncio.Task[NamedByResult]]] = OrderedDict()

    async def find(self, query: str) -> NamedByResult:
        """Return what a query names; whoever sends the same a moment later gets the same answer."""
        until, asking = self._tasks.get(query, (0.0, None))
        if asking is None or until < time.monotonic() or _failed(asking):
            asking = asyncio.create_task(self._ask(query))
            self._tasks[query] = time.monotonic() + CACHE_SECONDS, asking
            self._tasks.move_to_end(query)
            if len(self._tasks) > MOST_CACHED:
                self._tasks.popitem(last=False)
        return await asyncio.shield(asking)

    async def _ask(self, query: str) -> NamedByResult:
        request = by_get([("query", query)])
        assert request is not None
        result = await self._endpoint.ask(request, ACCEPT)
        return await self._endpoint.work(lambda: wanted_of(result))


_caches: WeakKeyDictionary[SparqlEndpoint, QueryCache] = WeakKeyDictionary()


ENDPOINTS = EndpointTable()


@ENDPOINTS.get(
    PATH,
    ResponseSpec("A feed", media_types=tuple(FORMS.values())),
    Parameter("sparql", "a SELECT whose rows name datasets or versions", required=True),
    Parameter("format", "instead of the Accept header", {"enum": list(FORMS)}),
    Parameter("since", "from this time on: RFC 3339 or YYYYMMDDhhmmss"),
    Parameter("until", "up to this time"),
    FOR_TRAINING,
    *PAGED,
)
async def answer(request: Request, service: Service) -> Response:
    """New versions of the results of a query, newest first, as an Atom feed or a JSON Feed."""
    query, form, page = request.query_params.get("sparql", ""), _form(request), span(request)
    if not query.strip():
        raise HttpProblem(400, "say what to follow: ?sparql=SELECT…; /api/v1/changes.atom follows the rest")
    endpoint = sparql_of(service)
    wanted = await _caches.setdefault(endpoint, QueryCache(endpoint)).find(query)
    names = {"version": wanted.versions, "dataset": wanted.datasets, "address": wanted.addresses}
    withheld = feed_words(request, search=True)
    rows, hidden = await service.pool.run(partial(_found, values={**page, **names}, withheld=withheld))
    changes, after = page_of(rows, page["limit"], hidden, base_of(request))
    about = f"query {blake2b(query.encode(), digest_size=4).hexdigest()}"
    return _written(feed_of(request, PATH, changes, after, about, await said_of(service, changes)), form)


def wanted_of(answer: Answer) -> NamedByResult:
    """Return what a result names; in a row that names versions, its datasets do not count."""
    found: dict[Named, None] = {}
    for row in _rows(answer):
        names = [named(iri) for iri in row]
        found |= dict.fromkeys([each for each in names if each.version] or names)
        if len(found) > MOST_NAMED:
            raise HttpProblem(422, f"the result names more than {MOST_NAMED} things; ask for less")
    return NamedByResult(
        versions=[each.version for each in found if each.version],
        datasets=[each.dataset for each in found if each.dataset],
        addresses=[each.address for each in found if each.address],
    )


def _rows(answer: Answer) -> Iterator[list[str]]:
    """The IRIs of each row. Raises `HttpProblem` where there are no rows."""
    with answer.content as content:
        if answer.media_type.startswith("application/sparql-results+json"):
            found = parse_query_results(content, format=QueryResultsFormat.JSON)
            if isinstance(found, QuerySolutions):
                for row in found:
                    yield [term.value for term in row if isinstance(term, NamedNode)]
                return
    raise HttpProblem(400, "a feed is made of the rows of a SELECT that names datasets or versions")


def _found(
    db: ServiceSession, values: dict[str, object], withheld: tuple[str, ...]
) -> tuple[list[Row], frozenset[str]]:
    rows = db.rows("changes_named", values)
    rows = with_states(db, rows, {**values, "datasets": values["dataset"], "addresses": values["address"]})
    return rows, unlisted(db, (row[0] for row in rows), withheld)


def _form(request: Request) -> str:
    given = request.query_params.get("format")
    if given is None:
        liked = preferred(request.headers.get("accept", "")[:4096], [ATOM, JSON_FEED, _JSON])
        return JSON_FEED if liked in (JSON_FEED, _JSON) else ATOM
    if given not in FORMS:
        raise HttpProblem(400, f"'format' must be one of {', '.join(FORMS)}")
    return FORMS[given]


def _written(feed: Feed, form: str) -> Response:
    headers = {"Cache-Control": f"max-age={CACHE_SECONDS:.0f}", "Vary": "Accept"}
    return Response(_WRITERS[form](feed), media_type=form, headers=headers)


def _failed(asking: asyncio.Task[NamedByResult]) -> bool:
    return asking.done() and (asking.cancelled() or asking.exception() is not None)
