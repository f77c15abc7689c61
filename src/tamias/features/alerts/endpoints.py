"""The alerts that stand, as JSON and as an Atom feed."""

from hashlib import sha256
from typing import get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import of_row
from tamias.features.alerts.changes import SQL
from tamias.features.alerts.settings import AlertKind
from tamias.features.feeds.changes import ATOM, Feed, FeedEntry, atom
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import ListPage, base_of, page_answer, parameter
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.service import Service


class StandingAlert(msgspec.Struct, frozen=True, kw_only=True):
    """A problem or a change that is listed."""

    id: str
    kind: str
    text: str
    since: str


ENDPOINTS = EndpointTable()
_PARAMETERS = (
    Parameter("kind", "only this kind", {"enum": list(get_args(AlertKind))}),
    Parameter("about", "only this host, portal or resource, by its name, address or id"),
)


@ENDPOINTS.get("/api/v1/alerts", ResponseSpec("Alerts", ListPage[StandingAlert]), *_PARAMETERS)
async def listing(request: Request, service: Service) -> Response:
    """List what needs attention, the latest first."""
    return page_answer(request, await _standing(request, service), None)


@ENDPOINTS.get("/api/v1/alerts.atom", ResponseSpec("A feed", media_types=(ATOM,)), *_PARAMETERS)
async def feed(request: Request, service: Service) -> Response:
    """The same as an Atom feed."""
    base = base_of(request)
    entries = tuple(
        FeedEntry(
            id=f"urn:tamias:alert:{sha256(f'{each.id} {each.since}'.encode()).hexdigest()[:32]}",
            title=f"{each.kind}: {each.text[:200]}", updated=each.since, page=f"{base}/",
            data=f"{base}/api/v1/alerts", summary=each.text,
        )
        for each in await _standing(request, service)
    )  # fmt: skip
    here, title = f"{base}{request.url.path}", "What needs attention in the archive"
    content = atom(
        Feed(id="urn:tamias:alerts", title=title, home=f"{base}/", here=here, further=None, entries=entries)
    )
    return Response(content, media_type=ATOM, headers={"Cache-Control": "no-cache"})


async def _standing(request: Request, service: Service) -> list[StandingAlert]:
    kind = parameter(request, "kind")
    if kind is not None and kind not in get_args(AlertKind):
        raise HttpProblem(400, f"'kind' is one of {', '.join(get_args(AlertKind))}")
    values = {"kinds": kind and [kind], "subject": parameter(request, "about")}
    rows = await service.pool.run(lambda db: db.session.fetch_all(SQL["standing"], values))
    return [of_row(StandingAlert, row) for row in reversed(rows)]
