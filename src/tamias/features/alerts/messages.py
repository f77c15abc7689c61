"""Messages of alerts: made in one transaction with what they say, so that each is said once, then sent."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from tamias.archive.moments import rfc3339
from tamias.database.connect import Cursor, Session
from tamias.features.alerts.attention import SQL, Alert, archive_alerts, disk_alerts, disk_key
from tamias.features.alerts.settings import AlertsSettings

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
    shared = _begins(session, "look", now, pause_ms)
    if shared:
        known = [key for (key,) in session.fetch_all(SQL["known"])]
        alerts += archive_alerts(session, settings, known)
    if not shared and disk is None:
        return
    over = {"shared": shared, "disk": disk, "unseen": now - _UNSEEN_MS}
    session.transact(lambda cursor: _note(cursor, alerts, over, settings, now))
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
    return (
        session.transact(lambda cursor: cursor.execute(SQL["begin_round"].text, begun).fetchone()) is not None
    )


def _note(
    cursor: Cursor, alerts: Sequence[Alert], over: dict[str, Any], settings: AlertsSettings, now: int
) -> None:
    known = {row[0] for row in cursor.execute(SQL["known"].text).fetchall()}
    for each in alerts:
        row = {"alert": each.key, "kind": each.kind, "text": each.text, "now": now}
        cursor.execute(SQL["put_alert"].text, row)
    cursor.execute(SQL["forget_alerts"].text, {**over, "now_known": [each.key for each in alerts]})
    new = [each for each in alerts if each.key not in known]
    if new:
        subject = f"Tamias: {_summed_up([each.kind for each in new])}"
        footer = "Each is reported once, and again only if it was over in between."
        _put(cursor, settings, now, subject, [(each.kind, each.text, now) for each in new], footer)


def _digest(cursor: Cursor, settings: AlertsSettings, now: int) -> None:
    rows = cursor.execute(SQL["standing"].text).fetchall()
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
    for target in targets_of(settings):
        body = _as_json(subject, said) if target == WEBHOOK else _as_text(said, footer)
        row: dict[str, Any] = {"message": uuid4().hex, "target": target, "subject": subject, "body": body}
        cursor.execute(SQL["put_message"].text, {**row, "now": now})


def _summed_up(kinds: Sequence[str]) -> str:
    """Count the alerts of each kind.

    >>> _summed_up(["gone", "disk", "gone"])
    'disk 1, gone 2'
    """
    return ", ".join(f"{kind} {kinds.count(kind)}" for kind in sorted(set(kinds)))


def _as_text(said: Sequence[tuple[str, str, int]], footer: str) -> str:
    lines = [f"[{kind}, since {rfc3339(since)}] {text}" for kind, text, since in said]
    return "\n".join([*lines, "", footer, ""])


def _as_json(subject: str, said: Sequence[tuple[str, str, int]]) -> str:
    alerts = [{"kind": kind, "text": text, "since": rfc3339(since)} for kind, text, since in said]
    return msgspec.json.encode({"subject": subject, "alerts": alerts}).decode()
