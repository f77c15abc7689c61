"""Alerts on what needs attention, put into messages in one transaction, so that each is said once.

They are sent beside the service; any number of instances share the work.
"""

import asyncio
import logging
import platform
import shutil
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from email.message import EmailMessage
from email.utils import format_datetime, localtime
from functools import partial
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import msgspec

from tamias.archive.moments import rfc3339
from tamias.database.connect import Cursor, Session
from tamias.features.alerts.changes import SQL, WEEK_MS, Alert, read_changes
from tamias.features.alerts.mail_client import PASSWORD_VARIABLE, NotSent, mail_place, send_mail
from tamias.features.alerts.settings import AlertKind, AlertsSettings
from tamias.features.service.events.webhooks import post
from tamias.features.service.http.health import Gauge
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.model.errors import ConfigError, TamiasError
from tamias.model.item import WATCH
from tamias.permit.addresses import forbidden
from tamias.service_client import secret_text
from tamias.settings import Settings

MOST_ALERTS = 500
"""Of one kind."""
_DAY_MS = 86_400_000

_TEXTS: dict[AlertKind, str] = {
    "gone": "{0} is gone.",
    "failing": "{0} has had no usable answer since {2}: {1}",
    "suspicious": "{0} gave a suspicious response at {2}: {1}",
    "wall": "{0} has been behind a wall since {2}: {1}",
    "blocked": "{0} has refused all visits since {2}: {1}",
    "harvest": "{0} could not be harvested since {2}: {1}",
}
"""What is said of each kind, by a URL or host, why, and since when."""


def archive_alerts(session: Session, settings: AlertsSettings, known: Collection[str] = ()) -> list[Alert]:
    """Return `MOST_ALERTS` alerts of each kind at most, those with `known` keys first."""
    found = _catalogue(session, settings)
    for kind, name, place, reason, since, _ in _standing(session, settings, known, MOST_ALERTS):
        text = _TEXTS[kind].format(place, reason, rfc3339(since))
        found.append(Alert(f"{kind} {name}", kind, text, since, subject=name))
    return found


def attention_counts(session: Session, data: Path, settings: AlertsSettings) -> dict[AlertKind, int]:
    """Count alerts by kind."""
    return {
        "disk": len(disk_alerts(data, settings)),
        "catalogue": len(_catalogue(session, settings)),
        **dict(session.fetch_all(SQL["count_changes"])),
        **{row[0]: row[-1] for row in _standing(session, settings, (), 1)},
    }


def attention_metric(session: Session, data: Path, settings: Settings) -> Gauge:
    """Return how many things need attention, for Prometheus."""
    counts = attention_counts(session, data, settings.of_feature("alerts", AlertsSettings))
    by_kind = {f'{{kind="{kind}"}}': float(counts.get(kind, 0)) for kind in get_args(AlertKind)}
    return Gauge("tamias_attention", "What needs attention, as alerts say it", by_kind)


def disk_key(data: Path) -> str:
    """The same for all services of one machine with the same data directory."""
    return f"disk {platform.node()}:{data.absolute()}"


def disk_alerts(data: Path, settings: AlertsSettings) -> list[Alert]:
    """Return an alert if the disk of this machine is nearly full."""
    free = shutil.disk_usage(data).free / 1e6
    if free >= settings.disk:
        return []
    where = f"the disk of {data} at {platform.node()}"
    text = f"{free:.0f} MB are free on {where}, less than alerts.disk ({settings.disk:g})."
    return [Alert(disk_key(data), "disk", text, int(time.time() * 1000))]


def _catalogue(session: Session, settings: AlertsSettings) -> list[Alert]:
    [(count, since)] = session.fetch_all(SQL["catalogue_lag"])
    if not count or session.now() - since < settings.catalogue * 60_000:
        return []
    text = f"The catalogue lacks {count} changes, the first of {rfc3339(since)}."
    return [Alert("catalogue", "catalogue", text, since)]


def _standing(
    session: Session, settings: AlertsSettings, known: Collection[str], limit: int
) -> list[tuple[Any, ...]]:
    """Return what needs attention, `limit` of each kind at most; rows end with how many there are in all."""
    now = session.now()
    span = {"failing": now - int(settings.failing * _DAY_MS), "since": now - WEEK_MS}
    return session.fetch_all(SQL["attention"], {"known": list(known), "limit": limit, "watch": WATCH, **span})


LOOK_MS = 60_000
MOST_ATTEMPTS = 14
"""With pauses that double up to six hours: about a day."""
_CLAIM_MS = 900_000
"""For one message; longer than a slow mail server takes with all its steps."""
_FIRST_PAUSE_MS = 30_000
_LONGEST_PAUSE_MS = 6 * 3_600_000
_OLDEST_MS = 30 * 86_400_000
_UNSEEN_MS = 86_400_000
"""A machine that has not looked at its disk for so long is no more."""
MAIL, WEBHOOK = "mail", "webhook"


class ClaimedMessage(msgspec.Struct, frozen=True):
    """A message that is ours to send."""

    message: str
    target: str
    subject: str
    body: str
    attempts: int


def targets_of(settings: AlertsSettings) -> list[str]:
    """Return the targets of messages."""
    mail = [MAIL] if settings.mail_to and settings.smtp else []
    return [*mail, WEBHOOK] if settings.webhook else mail


def is_quiet(settings: AlertsSettings, hour: int) -> bool:
    """Return whether nothing is sent in this hour, UTC.

    >>> nights = AlertsSettings(quiet="22-7")
    >>> [is_quiet(nights, hour) for hour in (21, 22, 6, 7)]
    [False, True, True, False]
    """
    if not settings.quiet:
        return False
    begin, end = (int(each) % 24 for each in settings.quiet.split("-"))
    return begin <= hour < end if begin <= end else hour >= begin or hour < end


def look(session: Session, data: Path, settings: AlertsSettings, pause_ms: int = LOOK_MS) -> None:
    """Puts what is new into messages, and a digest when it is time; not in quiet hours.

    One process looks at the archive, and one on each machine at its disk.
    """
    now = session.now()
    if is_quiet(settings, now // 3_600_000 % 24):
        return
    disk = disk_key(data) if _begins(session, disk_key(data), now, pause_ms) else None
    alerts = disk_alerts(data, settings) if disk else []
    rounds: dict[str, int] = {}
    shared = _begins(session, "look", now, pause_ms)
    if shared:
        known = [key for (key,) in session.fetch_all(SQL["known"])]
        alerts += archive_alerts(session, settings, known)
        changes, rounds = read_changes(session, settings, now)
        alerts += changes
    if not shared and disk is None:
        return
    over = {"shared": shared, "disk": disk, "unseen": now - _UNSEEN_MS, "week": now - WEEK_MS}
    session.transact(lambda cursor: _note(cursor, alerts, over, settings, now, rounds))
    if settings.digest:
        session.execute(SQL["start_clock"], {"kind": "digest", "now": now})
        if _begins(session, "digest", now, int(settings.digest * 3_600_000)):
            session.transact(lambda cursor: _digest(cursor, settings, now))
    session.execute(SQL["forget_messages"], {"before": now - _OLDEST_MS})
    session.execute(SQL["forget_rounds"], {"unseen": now - _UNSEEN_MS})


def claim_message(session: Session, settings: AlertsSettings) -> ClaimedMessage | None:
    """A message that is due, ours for a while; none in quiet hours."""
    now = session.now()
    if is_quiet(settings, now // 3_600_000 % 24):
        return None
    values = {"now": now, "until": now + _CLAIM_MS}
    row = session.fetch_one(SQL["claim_message"], values)
    return None if row is None else ClaimedMessage(*row)


def settle_message(session: Session, claimed: ClaimedMessage, trouble: str | None) -> None:
    """Note a message as sent, to be tried again, or given up."""
    now = session.now()
    pause = min(_FIRST_PAUSE_MS * 2 ** (claimed.attempts - 1), _LONGEST_PAUSE_MS)
    over = trouble is None or claimed.attempts >= MOST_ATTEMPTS
    row = {
        "message": claimed.message,
        "sent_at": now if over else None,
        "due": now + pause,
        "trouble": trouble,
    }
    session.execute(SQL["settle_message"], row)


def _begins(session: Session, kind: str, now: int, pause_ms: int) -> bool:
    begun = {"kind": kind, "now": now, "pause": pause_ms}
    return session.fetch_one(SQL["begin_round"], begun) is not None


def _note(
    cursor: Cursor,
    alerts: Sequence[Alert],
    over: dict[str, Any],
    settings: AlertsSettings,
    now: int,
    rounds: dict[str, int],
) -> None:
    known = {row[0] for row in cursor.execute(SQL["known"].text).fetchall()}
    for each in alerts:
        row = {**msgspec.structs.asdict(each), "alert": each.key, "now": now}
        cursor.execute(SQL["put_alert"].text, row)
    cursor.execute(SQL["forget_alerts"].text, {**over, "now_known": [each.key for each in alerts]})
    for kind, at in rounds.items():
        cursor.execute(SQL["end_round"].text, {"kind": kind, "now": at})
    wanted = settings.kinds or get_args(AlertKind)
    new = [each for each in alerts if each.key not in known and each.kind in wanted]
    if new:
        subject = f"Tamias: {_summed_up([each.kind for each in new])}"
        footer = "Each is reported once, and again only if it was over in between."
        _put(cursor, settings, now, subject, [(each.kind, each.text, each.since) for each in new], footer)


def _digest(cursor: Cursor, settings: AlertsSettings, now: int) -> None:
    values = {"kinds": list(settings.kinds) or None, "subject": None}
    rows = cursor.execute(SQL["standing"].text, values).fetchall()
    if rows:
        subject = f"Tamias digest: {_summed_up([row[1] for row in rows])}"
        footer = "All of this was reported before and still needs attention."
        _put(cursor, settings, now, subject, [(kind, text, since) for _, kind, text, since in rows], footer)


def _put(
    cursor: Cursor,
    settings: AlertsSettings,
    now: int,
    subject: str,
    said: Sequence[tuple[str, str, int]],
    footer: str,
) -> None:
    alerts = [{"kind": kind, "text": text, "since": rfc3339(since)} for kind, text, since in said]
    lines = ["[{kind}, since {since}] {text}".format(**each) for each in alerts]
    bodies = {
        WEBHOOK: msgspec.json.encode({"subject": subject, "alerts": alerts}).decode(),
        MAIL: "\n".join([*lines, "", footer, ""]),
    }
    for target in targets_of(settings):
        row = {"message": uuid4().hex, "target": target, "subject": subject, "body": bodies[target]}
        cursor.execute(SQL["put_message"].text, {**row, "now": now})


def _summed_up(kinds: Sequence[str]) -> str:
    """Count the alerts of each kind.

    >>> _summed_up(["gone", "disk", "gone"])
    'disk 1, gone 2'
    """
    return ", ".join(f"{kind} {kinds.count(kind)}" for kind in sorted(set(kinds)))


_ROUND_SECONDS = 5.0
_log = logging.getLogger(__name__)


class AlertSender:
    """Runs until it is cancelled."""

    def __init__(
        self, pool: SessionPool, data: Path, settings: AlertsSettings, *, allow_private: bool
    ) -> None:
        """Raises `ConfigError` for settings of mail that cannot be used."""
        self._pool = pool
        self._data = data
        self._settings = settings
        self._forbidden: Callable[[str], str | None] = (lambda _: None) if allow_private else forbidden
        if settings.smtp:
            mail_place(settings)

    async def run(self) -> None:
        """Looks for what needs attention and sends what is due, again and again."""
        while True:
            try:
                await self._round()
            except (HttpProblem, TamiasError, OSError) as error:
                _log.warning("alerts wait: %s", error)
            except Exception:  # noqa: BLE001 (without this task nothing is ever reported again)
                _log.error("alerts wait for an error that was not expected", exc_info=True)
            await asyncio.sleep(_ROUND_SECONDS)

    async def _round(self) -> None:
        await self._pool.run(lambda db: look(db.session, self._data, self._settings))
        while claimed := await self._pool.run(lambda db: claim_message(db.session, self._settings)):
            trouble = await asyncio.to_thread(self._attempt, claimed)
            if trouble is not None:
                _log.warning("an alert could not be sent (%s): %s", claimed.target, trouble)
            await self._pool.run(partial(_settle, claimed=claimed, trouble=trouble))

    def _attempt(self, claimed: ClaimedMessage) -> str | None:
        try:
            return self._send(claimed)
        except Exception as error:  # noqa: BLE001 (a message that is not settled is tried for ever)
            return type(error).__name__  # its text may have a secret

    def _send(self, claimed: ClaimedMessage) -> str | None:
        """Send a message; return why it could not be sent, if so."""
        if claimed.target != MAIL:
            headers = {"webhook-id": claimed.message}
            posted = post(self._settings.webhook, claimed.body.encode(), headers, self._forbidden)
            return None if posted.is_taken else posted.trouble
        if not self._settings.smtp:
            return "alerts.smtp is not set"
        try:
            refused = send_mail(
                self._settings, _message(claimed, self._settings), secret_text(PASSWORD_VARIABLE)
            )
        except (NotSent, ConfigError) as error:
            return str(error)
        for address, answer in refused.items():
            _log.warning("the mail server refuses %s: %s", address, answer)
        return None


def send_alerts(pool: SessionPool, data: Path, settings: Settings) -> Coroutine[None, None, None]:
    """Make the task of a service. Raises `ConfigError` for settings of mail that cannot be used."""
    return AlertSender(
        pool, data, settings.of_feature("alerts", AlertsSettings), allow_private=settings.permit.allow_private
    ).run()


def _settle(db: ServiceSession, claimed: ClaimedMessage, trouble: str | None) -> None:
    settle_message(db.session, claimed, trouble)


def _message(claimed: ClaimedMessage, settings: AlertsSettings) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = " ".join(claimed.subject.split())
    message["From"] = settings.mail_from
    message["To"] = ", ".join(settings.mail_to)
    message["Date"] = format_datetime(localtime())
    # The same at every attempt, so that a mail server can drop a second copy.
    message["Message-ID"] = f"<{claimed.message}@tamias.invalid>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(claimed.body)
    return message
