"""Rows of the schedule: revisits, rates of change, figures of the whole archive."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec

from tamias.database.columns import Bools, Digests, Floats, Ints, Longs, Texts
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements

_SQL = statements("tamias.archive.sources", "revisits.sql")


class UrlPlace(msgspec.Struct, frozen=True, order=True):
    """The place of a URL in the frontier."""

    bucket: int
    qid: int
    crawl: int
    uid: int


class KnownUrl(msgspec.Struct, frozen=True):
    """The history of a URL, from visits and hints."""

    sha256: str | None = None
    history: bytes | None = None
    visited_at: int | None = None
    hint_at: int | None = None
    frequency: str | None = None
    priority: float | None = None
    moved: bool = False


class Revisit(msgspec.Struct, frozen=True, kw_only=True):
    """The history of a URL after a visit."""

    place: UrlPlace
    sha256: str | None
    """None leaves what is known."""
    history: bytes
    rate: float | None
    """Changes a day; None where no further visits are planned."""
    importance: float
    visited_at: int | None
    moved: bool = False


class UrlHint(msgspec.Struct, frozen=True, kw_only=True):
    """A hint of a sitemap about a URL."""

    place: UrlPlace
    changed_at: int | None
    frequency: str | None
    priority: float | None


def read_revisits(session: Session, places: Sequence[UrlPlace]) -> dict[UrlPlace, KnownUrl]:
    """Return the histories of URLs; those without any are left out."""
    found: dict[UrlPlace, KnownUrl] = {}
    for bucket, group in groupby(sorted(places), key=lambda place: place.bucket):
        values = {"bucket": bucket, **_places(list(group))}
        for qid, crawl, uid, *known in session.fetch_all(_SQL["read_revisits"], values):
            found[UrlPlace(bucket, qid, crawl, uid)] = KnownUrl(*known)
    return found


def write_revisits(cursor: Cursor, revisits: Sequence[Revisit]) -> None:
    """Write histories inside the transaction of the visits. It is safe to repeat."""
    latest = {each.place: each for each in revisits}
    for bucket, group in groupby(sorted(latest), key=lambda place: place.bucket):
        news = [latest[place] for place in group]
        cursor.execute(
            _SQL["write_revisits"].text,
            {
                "bucket": bucket,
                **_places([each.place for each in news]),
                "sha256": Digests([each.sha256 for each in news]),
                "history": Digests([each.history for each in news]),
                "rate": Floats([each.rate for each in news]),
                "importance": Floats([each.importance for each in news]),
                "visited_at": Longs([each.visited_at for each in news]),
                "moved": Bools([each.moved for each in news]),
            },
        )


def note_url_hints(
    session: Session, hints: Sequence[UrlHint]
) -> list[tuple[UrlPlace, int | None, int | None]]:
    """Keeps what a sitemap says; returns each URL with its last visit and when it is said to have changed."""
    latest = {each.place: each for each in hints}
    found: list[tuple[UrlPlace, int | None, int | None]] = []
    for bucket, group in groupby(sorted(latest), key=lambda place: place.bucket):
        news = [latest[place] for place in group]
        values = {
            "bucket": bucket,
            **_places([each.place for each in news]),
            "hint_at": Longs([each.changed_at for each in news]),
            "frequency": Texts([each.frequency for each in news]),
            "priority": Floats([each.priority for each in news]),
        }
        crawl = news[0].place.crawl
        rows = session.fetch_all(_SQL["note_url_hints"], values)
        found += [(UrlPlace(bucket, qid, crawl, uid), visited_at, at) for qid, uid, visited_at, at in rows]
    return found


def crawl_rates(session: Session, crawl: int, buckets: int) -> list[tuple[float, float, str]]:
    """Changes a day, importance and host of every URL of a crawl that is visited again."""
    values = [{"bucket": bucket, "crawl": crawl} for bucket in range(buckets)]
    return [row for each in values for row in session.fetch_all(_SQL["crawl_rates"], each)]


def _places(places: Sequence[UrlPlace]) -> dict[str, list[int | None]]:
    return {
        "qid": Longs([place.qid for place in places]),
        "crawl": Ints([place.crawl for place in places]),
        "uid": Longs([place.uid for place in places]),
    }


def read_rates(session: Session) -> list[tuple[float, float, str]]:
    """Changes a day, importance and host of every resource under watch that has been seen."""
    return list(session.rows(_SQL["read_rates"].text))


def set_importances(session: Session, portals: dict[str, float], metrics: dict[str, float]) -> None:
    """Set the importance of resources: factors for portals that list them, and for measures from 0 to 1."""
    values = {
        "portal": Texts(portals),
        "portal_factor": Floats(portals.values()),
        "metric": Texts(metrics),
        "metric_factor": Floats(metrics.values()),
    }
    session.execute(_SQL["set_importances"], values)


def read_figure(session: Session, name: str) -> Any:
    """A figure by its name; None before it was set."""
    row = session.fetch_one(_SQL["read_figure"], {"name": name})
    return row[0] if row else None


def write_figure(session: Session, name: str, value: Any, now: int) -> None:
    """Sets a figure."""
    values = {"name": name, "value": msgspec.json.encode(value).decode(), "now": now}
    session.execute(_SQL["write_figure"], values)
