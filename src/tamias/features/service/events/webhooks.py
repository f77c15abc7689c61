"""Webhooks: who wants events gets them as signed POSTs, in order, until each is taken."""

import asyncio
import hmac
import logging
import random
import re
import secrets
import time
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from hashlib import sha256
from typing import Annotated, Final
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import of_row, rfc3339
from tamias.database.columns import storable
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.features.service.events.log import KINDS, EventFilter, events_in, latest_event
from tamias.features.service.http.callers import record_of
from tamias.features.service.http.endpoints import EndpointTable, ResponseSpec, path_parameter
from tamias.features.service.http.exchange import ListPage, json_answer, json_body, page_answer
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.features.service.service import Service
from tamias.model.errors import TamiasError, UsageError
from tamias.model.event import Kind
from tamias.model.url import is_address
from tamias.permit.addresses import forbidden
from tamias.service_client import NoResponse, ServiceClient, addresses_of

SECONDS: Final = 10
"""For the whole of it."""
_MOST_ANSWER: Final = 64 * 1024

Forbidden = Callable[[str], str | None]
"""The reason not to connect to an IP address."""


class Posted(msgspec.Struct, frozen=True):
    """The result of a POST: a status, or the reason why there is none."""

    status: int | None
    trouble: str | None = None

    @property
    def is_taken(self) -> bool:
        """Return whether the receiver accepted the message."""
        return self.status is not None and 200 <= self.status < 300


def post(url: str, body: bytes, headers: Mapping[str, str], forbidden: Forbidden) -> Posted:
    """Sends the body as JSON. Never raises for what the network does."""

    def refused(address: str) -> str | None:
        reason = forbidden(address)
        return reason and f"{reason}: not connected to without --allow-private"

    sent = {**headers, "Content-Type": "application/json"}
    with closing(ServiceClient(forbidden=refused)) as client:
        try:
            response = client.send("POST", url, headers=sent, body=body, seconds=SECONDS, most=_MOST_ANSWER)
        except NoResponse as error:
            return Posted(None, str(error)[:300])
        except UnicodeEncodeError:
            return Posted(None, "the URL has characters that must be percent-encoded")
    posted = Posted(response.status)
    return posted if posted.is_taken else Posted(response.status, f"the receiver answered {response.status}")


PREFIX: Final = "whsec_"
_LEAST, _MOST = 24, 64


def read_key(text: str) -> bytes:
    """The key that an owner chose. Raises `UsageError`."""
    try:
        key = b64decode(text.removeprefix(PREFIX), validate=True)
    except (Error, ValueError):
        key = b""
    if not _LEAST <= len(key) <= _MOST:
        raise UsageError(f"'secret' must be {PREFIX} and {_LEAST} to {_MOST} bytes in Base64")
    return key


def signature_headers(key: bytes, delivery: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers by which a receiver checks a message.

    >>> signature_headers(bytes(24), "msg_1", 1614265330, b"{}")["webhook-signature"]
    'v1,ONjOH+g8tKQOwBW/l2Ew8DI7ahP5iygTrq4r12BiJXg='
    """
    signed = hmac.new(key, f"{delivery}.{seconds}.".encode() + body, sha256).digest()
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{b64encode(signed).decode()}",
    }


EVENTS_A_DELIVERY: Final = 100
MOST_ATTEMPTS: Final = 14
"""With the pauses between them almost two days; then the webhook is stopped."""
MOST_DELIVERIES: Final = 20
_WINDOW: Final = 5000
"""Events that are looked through for one webhook at a time."""
_FIRST_PAUSE_MS: Final = 2000
_LONGEST_PAUSE_MS: Final = 6 * 3_600_000
_CLAIM_MS: Final = 2 * 1000 * SECONDS
_GONE: Final = 410
_AT_ONCE: Final = 100
_SQL = statements("tamias.features.service.events", "webhooks.sql")


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook: its address, the events it is for, and the state of its deliveries."""

    id: str
    url: str
    kinds: list[Kind]
    host: str | None
    portal: str | None
    dataset: str | None
    made_at: str
    seen: int
    """The number of the last event that was delivered, or is under way."""
    state: str
    """`active`, or `stopped` after too many attempts in vain."""
    last: "LastDelivery | None"


class LastDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """The latest delivery of a webhook."""

    state: str
    attempts: int
    status: int | None
    trouble: str | None
    tried_at: str | None
    next_try: str | None


class ClaimedDelivery(msgspec.Struct, frozen=True):
    """A delivery that is ours to try."""

    delivery: str
    webhook: str
    url: str
    key: bytes
    body: bytes
    attempts: int


def count_webhooks(session: Session) -> int:
    """Count the webhooks."""
    return int(session.fetch_all(_SQL["count_webhooks"])[0][0])


def list_webhooks(session: Session, named: str | None = None) -> list[Webhook]:
    """Return all webhooks, or the one of an id."""
    return [
        of_row(Webhook, row[:9], last=None if row[9] is None else of_row(LastDelivery, row[9:]))
        for row in session.fetch_all(_SQL["list_webhooks"], {"id": named})
    ]


def settle(session: Session, claimed: ClaimedDelivery, posted: Posted) -> None:
    """Notes how an attempt went, and when the next one is."""
    lost = not posted.is_taken and (posted.status == _GONE or claimed.attempts >= MOST_ATTEMPTS)
    state = "delivered" if posted.is_taken else "failed" if lost else "pending"
    values = {
        "delivery": claimed.delivery, "state": state, "status": posted.status,
        "trouble": storable(posted.trouble), "due": session.now() + pause_ms(claimed.attempts),
    }  # fmt: skip

    def note(cursor: Cursor) -> None:
        cursor.execute(_SQL["settle"].text, values)
        if lost:
            cursor.execute(_SQL["stop_webhook"].text, values)
        cursor.execute(_SQL["forget_deliveries"].text, {"id": claimed.webhook, "keep": MOST_DELIVERIES})

    session.transact(note)


def pause_ms(attempts: int) -> int:
    """Return the pause after so many attempts: three times as long each time, give or take a fifth."""
    pause = min(_FIRST_PAUSE_MS * 3 ** min(attempts - 1, 20), _LONGEST_PAUSE_MS)
    return int(pause * random.uniform(0.8, 1.2))


def _prepare(cursor: Cursor, latest: int, now: int) -> None:
    values = {"latest": latest, "limit": _AT_ONCE}
    for named, kinds, host, portal, resource, seen in cursor.execute(_SQL["behind"].text, values).fetchall():
        wanted = EventFilter(kinds=tuple(kinds), host=host, portal=portal, resource=resource)
        until = min(latest, seen + _WINDOW)
        events = events_in(cursor, seen, until, EVENTS_A_DELIVERY, wanted)
        reached = events[-1].id if len(events) == EVENTS_A_DELIVERY else until
        if events:
            data = {"webhook": named, "events": events}
            message = {"type": "tamias.events", "timestamp": rfc3339(now), "data": data}
            row = {"delivery": f"msg_{uuid4().hex}", "id": named, "now": now, "after": seen}
            body = {"events": len(events), "body": msgspec.json.encode(message)}
            cursor.execute(_SQL["put_delivery"].text, {**row, **body})
        cursor.execute(_SQL["note_seen"].text, {"id": named, "seen": reached})


AT_ONCE: Final = 8
_LOOK_SECONDS: Final = 1.0
_LOG = logging.getLogger("tamias.serve.events.webhooks")


class Sender:
    """Runs until it is cancelled. What it was at is tried again by whoever comes next."""

    def __init__(self, pool: SessionPool, *, allow_private: bool) -> None:
        self._pool = pool
        self._forbidden = (lambda _: None) if allow_private else forbidden
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Looks for what is due, again and again."""
        try:
            while True:
                try:
                    await self._round()
                except (HttpProblem, TamiasError) as error:
                    _LOG.debug("webhooks wait: %s", error)  # a database that is away comes back
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for task in self._under_way:
                task.cancel()

    async def _round(self) -> None:
        room = AT_ONCE - len(self._under_way)
        for claimed in await self._pool.run(partial(_due, room=room)):
            task = asyncio.create_task(self._deliver(claimed))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _deliver(self, claimed: ClaimedDelivery) -> None:
        headers = signature_headers(claimed.key, claimed.delivery, int(time.time()), claimed.body)
        posted: Posted = await asyncio.to_thread(post, claimed.url, claimed.body, headers, self._forbidden)
        try:
            await self._pool.run(lambda db: settle(db.session, claimed, posted))
        except (HttpProblem, TamiasError) as error:
            # Its claim ends, and it is tried once more.
            _LOG.warning("how the delivery %s went could not be noted: %s", claimed.delivery, error)


def _due(db: ServiceSession, room: int) -> list[ClaimedDelivery]:
    """Return deliveries that are due, ours for a while."""
    if not room or not count_webhooks(db.session):
        return []
    # The latest events are put into deliveries for whoever wants them.
    latest, now = latest_event(db.session), db.session.now()
    db.session.transact(lambda cursor: _prepare(cursor, latest, now))
    values = {"now": now, "until": now + _CLAIM_MS, "limit": room}
    return [ClaimedDelivery(*row) for row in db.session.fetch_all(_SQL["claim"], values)]


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
    record_of(request).targets.extend([order.url])
    await _check_address(order.url, allow_private=service.settings.permit.allow_private)
    key = read_key(order.secret) if order.secret else secrets.token_bytes(32)
    found = await service.histories.find(order.dataset) if order.dataset else None
    wanted = EventFilter(
        kinds=tuple(dict.fromkeys(order.kinds)) or KINDS,
        resource=found.resource.id if found else None,
        host=order.host.lower() if order.host else None,
        portal=order.portal,
    )
    made = await service.pool.run(lambda db: _make(db, order, key, wanted))
    return json_answer(request, MadeWebhook(made, PREFIX + b64encode(key).decode()), 201)


@ENDPOINTS.get(_PATH, ResponseSpec("Webhooks", ListPage[Webhook]), scope="admin")
async def listing(request: Request, service: Service) -> Response:
    """List all webhooks and the status of their deliveries."""
    found = await service.pool.run(lambda db: list_webhooks(db.session))
    return page_answer(request, found, None)


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
    record_of(request).targets.extend([named])
    if not await service.pool.run(lambda db: db.session.execute(_SQL["delete_webhook"], {"id": named})):
        raise HttpProblem(404, f"there is no webhook {named}")
    return Response(status_code=204)


def _make(db: ServiceSession, order: WebhookRequest, key: bytes, wanted: EventFilter) -> Webhook:
    if count_webhooks(db.session) >= MOST_WEBHOOKS:
        raise HttpProblem(422, f"there are {MOST_WEBHOOKS} webhooks already; delete one first")
    latest = latest_event(db.session)
    seen = latest if order.after is None else min(order.after, latest)
    named, now = uuid4().hex[:24], db.session.now()
    row = {"id": named, "url": order.url, "key": key, "made_at": now, "seen": seen}
    about = {**msgspec.structs.asdict(wanted), "kinds": list(wanted.kinds)}
    db.session.execute(_SQL["put_webhook"], {**about, **row})
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
