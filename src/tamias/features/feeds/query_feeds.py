"""Feeds by query: the new versions of what a SELECT names. What it named is good for some seconds."""

from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from typing import Final

from pyoxigraph import NamedNode, QueryResultsFormat, QuerySolutions, parse_query_results
from starlette.requests import Request
from starlette.responses import Response

from tamias.features.catalogue.exchange import Answer
from tamias.features.feeds.changes import ATOM, JSON_FEED, Row, after_last, feed_of, span, with_states
from tamias.features.service.http.endpoints import FOR_TRAINING, PAGED, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import preferred_by
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import SEARCH, bulk_words, unlisted
from tamias.features.service.service import Service
from tamias.features.service.sparql.endpoint import sparql_of
from tamias.features.service.sparql.routes import Named, named, result_of

PATH: Final = "/feed"
FORMS: Final = {"atom": ATOM, "json": JSON_FEED}
MOST_NAMED: Final = 10_000
CACHE_SECONDS: Final = 30.0


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
    read = partial(result_of, sparql_of(service), query, wanted_of)
    wanted = await service.recent.get(f"feed {query}", CACHE_SECONDS, read)
    withheld = bulk_words(request, SEARCH)
    rows, hidden = await service.pool.run(partial(_found, values={**page, **wanted}, withheld=withheld))
    about = f"query {blake2b(query.encode(), digest_size=4).hexdigest()}"
    shown = [row for row in rows if row[0] not in hidden]
    content = await feed_of(request, service, PATH, form, about, shown, after_last(rows, page["limit"]))
    headers = {"Cache-Control": f"max-age={CACHE_SECONDS:.0f}", "Vary": "Accept"}
    return Response(content, media_type=form, headers=headers)


def wanted_of(answer: Answer) -> dict[str, list[str]]:
    """Return what a result names, by kind; in a row that names versions, its datasets do not count."""
    found: dict[Named, None] = {}
    for row in _rows(answer):
        names = [named(iri) for iri in row]
        found |= dict.fromkeys([each for each in names if each.version] or names)
        if len(found) > MOST_NAMED:
            raise HttpProblem(422, f"the result names more than {MOST_NAMED} things; ask for less")
    kinds = Named.__struct_fields__
    return {kind: [name for each in found if (name := getattr(each, kind))] for kind in kinds}


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
        liked = preferred_by(request, [ATOM, JSON_FEED, "application/json"])
        return ATOM if liked in (ATOM, None) else JSON_FEED
    if given not in FORMS:
        raise HttpProblem(400, f"'format' must be one of {', '.join(FORMS)}")
    return FORMS[given]
