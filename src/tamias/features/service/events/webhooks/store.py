"""Webhooks and their deliveries as rows. What is to be delivered is written down before it is tried."""

import random
from typing import Any, Final
from uuid import uuid4

import msgspec

from tamias.archive.moments import rfc3339, rfc3339_or_none
from tamias.database.columns import storable
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.features.service.events.log import Event, EventFilter, Kind, events_in, latest_event
from tamias.features.service.events.webhooks.post import SECONDS, Posted

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
_SQL = statements("tamias.features.service.events.webhooks", "webhooks.sql")


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


class NewWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook to be made."""

    url: str
    key: bytes
    wanted: EventFilter
    seen: int


class ClaimedDelivery(msgspec.Struct, frozen=True):
    """A delivery that is ours to try."""

    delivery: str
    webhook: str
    url: str
    key: bytes
    body: bytes
    attempts: int


def put_webhook(session: Session, new: NewWebhook) -> str:
    """Makes a webhook and returns its id."""
    wanted = new.wanted
    row = {
        "id": uuid4().hex[:24], "url": new.url, "key": new.key, "kinds": list(wanted.kinds),
        "host": wanted.host, "portal": wanted.portal, "resource": wanted.resource,
        "made_at": session.now(), "seen": new.seen,
    }  # fmt: skip
    session.execute(_SQL["put_webhook"], row)
    return str(row["id"])


def delete_webhook(session: Session, named: str) -> bool:
    """Delete a webhook; return whether there was one."""
    done = session.execute(_SQL["delete_webhook"], {"id": named})
    return done > 0


def count_webhooks(session: Session) -> int:
    """Count the webhooks."""
    return int(session.fetch_all(_SQL["count_webhooks"])[0][0])


def list_webhooks(session: Session, named: str | None = None) -> list[Webhook]:
    """Return all webhooks, or the one of an id."""
    return [_webhook(row) for row in session.fetch_all(_SQL["list_webhooks"], {"id": named})]


def prepare(session: Session) -> None:
    """Puts the latest events into deliveries for whoever wants them."""
    latest = latest_event(session)
    now = session.now()
    session.transact(lambda cursor: _prepare(cursor, latest, now))


def claim(session: Session, limit: int) -> list[ClaimedDelivery]:
    """Deliveries that are due, ours for a while."""
    now = session.now()
    values = {"now": now, "until": now + _CLAIM_MS, "limit": limit}
    return [ClaimedDelivery(*row) for row in session.fetch_all(_SQL["claim"], values)]


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
            row = {
                "delivery": f"msg_{uuid4().hex}",
                "id": named,
                "now": now,
                "after": seen,
                "events": len(events),
            }
            cursor.execute(_SQL["put_delivery"].text, {**row, "body": _body(named, events, now)})
        cursor.execute(_SQL["note_seen"].text, {"id": named, "seen": reached})


def _body(webhook: str, events: list[Event], now: int) -> bytes:
    message = {
        "type": "tamias.events",
        "timestamp": rfc3339(now),
        "data": {"webhook": webhook, "events": events},
    }
    return msgspec.json.encode(message)


def _webhook(row: tuple[Any, ...]) -> Webhook:
    named, url, kinds, host, portal, resource, made_at, seen, state, *last = row
    return Webhook(
        id=named, url=url, kinds=kinds, host=host, portal=portal, dataset=resource, made_at=rfc3339(made_at),
        seen=seen, state=state, last=None if last[0] is None else _last(*last),
    )  # fmt: skip


def _last(
    state: str, attempts: int, status: int | None, trouble: str | None, tried_at: int | None, due: int
) -> LastDelivery:
    return LastDelivery(
        state=state,
        attempts=attempts,
        status=status,
        trouble=trouble,
        tried_at=rfc3339_or_none(tried_at),
        next_try=rfc3339(due) if state == "pending" else None,
    )
