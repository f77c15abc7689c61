"""What needs attention now: pure values from a few statements and the disk."""

import shutil
from pathlib import Path
from typing import Literal

import msgspec

from tamias.archive.moments import rfc3339
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.settings import AlertsSettings

SQL = statements("tamias.serve.alerts", "alerts.sql")
MOST_ALERTS = 500
_DAY_MS = 86_400_000
_SUSPICIOUS_MS = 7 * _DAY_MS

AlertKind = Literal["gone", "failing", "suspicious", "disk", "catalogue"]


class Alert(msgspec.Struct, frozen=True):
    """One thing that needs attention."""

    key: str
    """The same for as long as it is the same thing."""
    kind: AlertKind
    text: str


def needing_attention(session: Session, data: Path, settings: AlertsSettings) -> list[Alert]:
    """Everything that does now."""
    now = session.now()
    return [
        *_disk(data, settings),
        *_catalogue(session, now, settings),
        *_resources(session, now, settings),
        *_suspicious(session, now),
    ]


def _disk(data: Path, settings: AlertsSettings) -> list[Alert]:
    free = shutil.disk_usage(data).free / 1e6
    if free >= settings.disk:
        return []
    text = f"{free:.0f} MB are free on the disk of {data}, fewer than alerts.disk ({settings.disk:g})."
    return [Alert("disk", "disk", text)]


def _catalogue(session: Session, now: int, settings: AlertsSettings) -> list[Alert]:
    row = session.fetch_one(SQL["catalogue_lag"])
    assert row is not None
    count, since = row
    if not count or now - since < settings.catalogue * 60_000:
        return []
    text = f"The catalogue lacks {count} changes, the first of {rfc3339(since)}. Is a 'tamias serve' running?"
    return [Alert("catalogue", "catalogue", text)]


def _resources(session: Session, now: int, settings: AlertsSettings) -> list[Alert]:
    asked = {"failing": now - int(settings.failing * _DAY_MS), "limit": MOST_ALERTS}
    alerts = []
    for name, url, state, trouble, answered in session.fetch_all(SQL["in_trouble"], asked):
        if state == "gone":
            alerts.append(Alert(f"gone {name}", "gone", f"{url} is gone."))
        else:
            text = f"{url} has had no usable answer since {rfc3339(answered)}: {trouble}"
            alerts.append(Alert(f"failing {name}", "failing", text))
    return alerts


def _suspicious(session: Session, now: int) -> list[Alert]:
    asked = {"since": now - _SUSPICIOUS_MS, "limit": MOST_ALERTS}
    return [
        Alert(
            f"suspicious {name}", "suspicious", f"{url} gave a suspicious response at {rfc3339(seen)}: {why}"
        )
        for name, url, why, seen in session.fetch_all(SQL["suspicious"], asked)
    ]
