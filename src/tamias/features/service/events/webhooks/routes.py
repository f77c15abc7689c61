"""Webhooks over REST: made, listed and taken away by whoever knows the secret."""

import re
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from tamias.features.service.events.log import KINDS, EventFilter, Kind, latest_event
from tamias.features.service.events.webhooks.post import new_key, read_key, written_key
from tamias.features.service.events.webhooks.store import (
    NewWebhook,
    Webhook,
    count_webhooks,
    delete_webhook,
    list_webhooks,
    put_webhook,
)
from tamias.features.service.http.endpoints import EndpointTable, ResponseSpec, path_parameter
from tamias.features.service.http.identify import note_targets
from tamias.features.service.http.params import json_body
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.http.responses import json_answer
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.service import Service
from tamias.model.url import is_address
from tamias.permit.addresses import forbidden
from tamias.service_client import addresses_of

MOST_WEBHOOKS = 1000
MOST_BYTES = 64 * 1024
_RESOLVE_SECONDS = 5.0
_ID = re.compile(r"[0-9a-f]{24}")
_Text = Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"^[^\x00-\x1f\x7f]*$")]


class WebhookRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A webhook to be made: its address, and the events it is for."""

    url: _Text
    kinds: list[Kind] = msgspec.field(default_factory=lambda: list(KINDS))
    host: _Text | None = None
    portal: _Text | None = None
    dataset: _Text | None = None
    """The id or address of a resource."""
    secret: _Text | None = None
    """That deliveries are signed with: `whsec_` and Base64; one is made unless it is given."""
    after: Annotated[int, Meta(ge=0, le=2**62)] | None = None
    """Tell of what came behind this event; else of what comes from now on."""


class MadeWebhook(msgspec.Struct, frozen=True):
    """A webhook and, this once, its secret."""

    webhook: Webhook
    secret: str


class Webhooks(msgspec.Struct, frozen=True):
    """The webhooks of a service."""

    items: list[Webhook]


ENDPOINTS = EndpointTable()
_PATH = "/api/v1/webhooks"
_BY_ID = path_parameter("id", "as given when it was created", {"type": "string", "pattern": _ID.pattern})


@ENDPOINTS.post(
    _PATH,
    {201: ResponseSpec("Created; its secret is shown only this once", MadeWebhook)},
    body=WebhookRequest,
    scope="admin",
)
async def make(request: Request, service: Service) -> Response:
    """Receive events as signed POSTs, in order, repeated until they are accepted."""
    order = await json_body(request, WebhookRequest, MOST_BYTES)
    note_targets(request, [order.url])
    await _check_address(order.url, allow_private=service.settings.permit.allow_private)
    key = read_key(order.secret) if order.secret else new_key()
    found = await service.histories.find(order.dataset) if order.dataset else None
    wanted = EventFilter(
        kinds=tuple(dict.fromkeys(order.kinds)) or KINDS,
        resource=found.resource.id if found else None,
        host=order.host.lower() if order.host else None,
        portal=order.portal,
    )
    made = await service.pool.run(lambda db: _make(db, order, key, wanted))
    return json_answer(request, MadeWebhook(made, written_key(key)), 201)


@ENDPOINTS.get(_PATH, ResponseSpec("Webhooks", Webhooks), scope="admin")
async def listing(request: Request, service: Service) -> Response:
    """List all webhooks and the status of their deliveries."""
    found = await service.pool.run(lambda db: list_webhooks(db.session))
    return json_answer(request, Webhooks(found))


@ENDPOINTS.get(_PATH + "/{id}", ResponseSpec("It", Webhook), _BY_ID, scope="admin")
async def one(request: Request, service: Service) -> Response:
    """Return one webhook."""
    named = _named(request)
    found = await service.pool.run(lambda db: list_webhooks(db.session, named))
    if not found:
        raise HttpProblem(404, f"there is no webhook {named}")
    return json_answer(request, found[0])


@ENDPOINTS.add("DELETE", _PATH + "/{id}", {204: ResponseSpec("Deleted")}, _BY_ID, scope="admin")
async def take_away(request: Request, service: Service) -> Response:
    """Delete a webhook."""
    named = _named(request)
    note_targets(request, [named])
    if not await service.pool.run(lambda db: delete_webhook(db.session, named)):
        raise HttpProblem(404, f"there is no webhook {named}")
    return Response(status_code=204)


def _make(db: ServiceSession, order: WebhookRequest, key: bytes, wanted: EventFilter) -> Webhook:
    if count_webhooks(db.session) >= MOST_WEBHOOKS:
        raise HttpProblem(422, f"there are {MOST_WEBHOOKS} webhooks already; delete one first")
    latest = latest_event(db.session)
    seen = latest if order.after is None else min(order.after, latest)
    named = put_webhook(db.session, NewWebhook(url=order.url, key=key, wanted=wanted, seen=seen))
    return list_webhooks(db.session, named)[0]


async def _check_address(url: str, *, allow_private: bool) -> None:
    """Refuse an address of a private network; names are looked up again at every delivery."""
    parts = urlsplit(url) if is_address(url) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise HttpProblem(422, "'url' must be an http or https address without a user name")
    if allow_private:
        return
    for address in await addresses_of(parts.hostname, _RESOLVE_SECONDS):
        reason = forbidden(address)
        if reason is not None:
            raise HttpProblem(
                422, f"{parts.hostname[:200]} is a {reason}; that needs 'tamias serve --allow-private'"
            )


def _named(request: Request) -> str:
    named = str(request.path_params["id"])
    if not _ID.fullmatch(named):
        raise HttpProblem(404, f"there is no webhook {named[:100]}")
    return named
