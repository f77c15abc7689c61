"""Feeds by query: the new versions of what a SELECT names. What it named is good for some seconds."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from typing import Final

import msgspec
from pyoxigraph import NamedNode, QueryResultsFormat, QuerySolutions, parse_query_results
from starlette.requests import Request
from starlette.responses import Response

from tamias.crawl.catalogue.exchange import Answer
from tamias.crawl.catalogue.result_formats import preferred
from tamias.serve.api.changes import Row, feed_of, page_of, said_of, span, with_states
from tamias.serve.feeds.entries import ATOM, JSON_FEED, Feed, atom, json_feed
from tamias.serve.http.params import base_of
from tamias.serve.http.problems import HttpProblem
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.replay.usage import feed_words, unlisted
from tamias.serve.service import Service
from tamias.serve.sparql.downloads import ACCEPT, Named, named
from tamias.serve.sparql.endpoint import SparqlEndpoint
from tamias.serve.sparql.protocol import by_get

PATH: Final = "/feed"
FORMS: Final = {"atom": ATOM, "json": JSON_FEED}
MOST_NAMED: Final = 10_000
KEPT_SECONDS: Final = 30.0
MOST_KEPT: Final = 32
_JSON: Final = "application/json"
_WRITERS: Final = {ATOM: atom, JSON_FEED: json_feed}


class NamedByResult(msgspec.Struct, frozen=True):
    """What the rows of a result name, each once."""

    versions: list[str]
    datasets: list[str]
    addresses: list[str]


class QueryFeeds:
    """The feeds of one endpoint."""

    def __init__(self, endpoint: SparqlEndpoint) -> None:
        self._endpoint = endpoint
        self._kept: OrderedDict[str, tuple[float, asyncio.Task[NamedByResult]]] = OrderedDict()

    async def answer(self, request: Request, service: Service) -> Response:
        """A page of a feed, in the form that is asked for. Raises `HttpProblem`."""
        query, form, asked = request.query_params.get("sparql", ""), _form(request), span(request)
        if not query.strip():
            raise HttpProblem(
                400, "say what to follow: ?sparql=SELECT…; /api/v1/changes.atom follows the rest"
            )
        wanted = await self._wanted(query)
        names = {"version": wanted.versions, "dataset": wanted.datasets, "address": wanted.addresses}
        withheld = feed_words(request, search=True)
        rows, hidden = await service.pool.run(partial(_found, asked={**asked, **names}, withheld=withheld))
        changes, after = page_of(rows, asked["limit"], hidden, base_of(request))
        about = f"query {blake2b(query.encode(), digest_size=4).hexdigest()}"
        return _written(feed_of(request, PATH, changes, after, about, await said_of(service, changes)), form)

    async def _wanted(self, query: str) -> NamedByResult:
        """Whoever asks the same at the same time, or a moment later, waits for the same answer."""
        until, asking = self._kept.get(query, (0.0, None))
        if asking is None or until < time.monotonic() or _failed(asking):
            asking = asyncio.create_task(self._ask(query))
            self._kept[query] = time.monotonic() + KEPT_SECONDS, asking
            self._kept.move_to_end(query)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return await asyncio.shield(asking)

    async def _ask(self, query: str) -> NamedByResult:
        asked = by_get([("query", query)])
        assert asked is not None
        answer = await self._endpoint.ask(asked, ACCEPT)
        return await self._endpoint.work(lambda: wanted_of(answer))


def wanted_of(answer: Answer) -> NamedByResult:
    """What a result names. In a row that names versions, datasets only say what these are versions of."""
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
    db: ServiceSession, asked: dict[str, object], withheld: tuple[str, ...]
) -> tuple[list[Row], frozenset[str]]:
    rows = db.rows("changes_named", asked)
    rows = with_states(db, rows, {**asked, "datasets": asked["dataset"], "addresses": asked["address"]})
    return rows, unlisted(db, (row[0] for row in rows), withheld)


def _form(request: Request) -> str:
    told = request.query_params.get("format")
    if told is None:
        liked = preferred(request.headers.get("accept", "")[:4096], [ATOM, JSON_FEED, _JSON])
        return JSON_FEED if liked in (JSON_FEED, _JSON) else ATOM
    if told not in FORMS:
        raise HttpProblem(400, f"'format' must be one of {', '.join(FORMS)}")
    return FORMS[told]


def _written(feed: Feed, form: str) -> Response:
    headers = {"Cache-Control": f"max-age={KEPT_SECONDS:.0f}", "Vary": "Accept"}
    return Response(_WRITERS[form](feed), media_type=form, headers=headers)


def _failed(asking: asyncio.Task[NamedByResult]) -> bool:
    return asking.done() and (asking.cancelled() or asking.exception() is not None)
