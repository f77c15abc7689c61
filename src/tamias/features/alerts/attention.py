"""Alerts on what needs attention now, from a few statements and the disk."""

import platform
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from tamias.archive.moments import rfc3339
from tamias.database.connect import Session
from tamias.database.sql import statements
from tamias.features.alerts.settings import AlertsSettings
from tamias.features.service.http.health import Gauge
from tamias.settings import Settings

SQL = statements("tamias.features.alerts", "alerts.sql")
MOST_ALERTS = 500
"""Of one kind."""
_DAY_MS = 86_400_000
_SUSPICIOUS_MS = 7 * _DAY_MS

AlertKind = Literal["gone", "failing", "suspicious", "disk", "catalogue"]


class Alert(msgspec.Struct, frozen=True):
    """An alert."""

    key: str
    """The same for as long as it is the same thing."""
    kind: AlertKind
    text: str


def archive_alerts(session: Session, settings: AlertsSettings, known: Collection[str] = ()) -> list[Alert]:
    """Return `MOST_ALERTS` alerts of each kind at most, those with `known` keys first."""
    now = session.now()
    return [
        *_catalogue(session, now, settings),
        *(
            Alert(f"gone {name}", "gone", f"{url} is gone.")
            for name, url, _ in _rows(session, now, settings, "gone", known)
        ),
        *(
            Alert(f"failing {name}", "failing", f"{url} has had no usable answer since {rfc3339(at)}: {why}")
            for name, url, why, at, _ in _rows(session, now, settings, "failing", known)
        ),
        *(
            Alert(
                f"suspicious {name}",
                "suspicious",
                f"{url} gave a suspicious response at {rfc3339(at)}: {why}",
            )
            for name, url, why, at, _ in _rows(session, now, settings, "suspicious", known)
        ),
    ]


def attention_counts(session: Session, data: Path, settings: AlertsSettings) -> dict[AlertKind, int]:
    """Count alerts by kind."""
    now = session.now()
    counts: dict[AlertKind, int] = {
        "disk": len(disk_alerts(data, settings)),
        "catalogue": len(_catalogue(session, now, settings)),
    }
    kinds: tuple[AlertKind, ...] = ("gone", "failing", "suspicious")
    for kind in kinds:
        rows = _rows(session, now, settings, kind, (), limit=1)
        counts[kind] = rows[0][-1] if rows else 0
    return counts


def attention_metric(session: Session, data: Path, settings: Settings) -> Gauge:
    """Return how many things need attention, for Prometheus."""
    counts = attention_counts(session, data, settings.of_feature("alerts", AlertsSettings))
    by_kind = {f'{{kind="{kind}"}}': float(counts[kind]) for kind in get_args(AlertKind)}
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
    return [Alert(disk_key(data), "disk", text)]


def _catalogue(session: Session, now: int, settings: AlertsSettings) -> list[Alert]:
    row = session.fetch_one(SQL["catalogue_lag"])
    assert row is not None
    count, since = row
    if not count or now - since < settings.catalogue * 60_000:
        return []
    text = f"The catalogue lacks {count} changes, the first of {rfc3339(since)}."
    return [Alert("catalogue", "catalogue", text)]


def _rows(
    session: Session,
    now: int,
    settings: AlertsSettings,
    kind: AlertKind,
    known: Collection[str],
    limit: int = MOST_ALERTS,
) -> list[tuple[Any, ...]]:
    """Resources of a kind; each row ends with how many there are in all."""
    values = {
        "known": [key.removeprefix(f"{kind} ") for key in known if key.startswith(f"{kind} ")],
        "failing": now - int(settings.failing * _DAY_MS),
        "since": now - _SUSPICIOUS_MS,
        "limit": limit,
    }
    return session.fetch_all(SQL[kind], values)
