"""Rows of catalogues: datasets that they describe, and hints that a resource changed."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tamias.database.columns import storable
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.model.dataset import Dataset, Distribution
from tamias.model.finding import Deleted, Present

_SQL = statements("tamias.archive.sources", "catalogues.sql")
NAMED = "named"
"""The kind of a portal that a query names."""


def note_datasets(cursor: Cursor, portal: str, kind: str, harvest: int, datasets: Sequence[Dataset]) -> None:
    """Write the datasets that a harvest saw. It is safe to repeat."""
    unique = {dataset.record: dataset for dataset in datasets}
    if not unique:
        return
    values: dict[str, Any] = {"portal": put_portal(cursor, portal, kind, harvest), "harvest": harvest}
    names = ("record", "iri", "title")
    described = {name: [storable(getattr(each, name)) for each in unique.values()] for name in names}
    cursor.execute(_SQL["put_described"].text, values | described)
    cursor.execute(_SQL["put_offered"].text, values | _offered(unique.values()))
    cursor.execute(_SQL["note_dropped"].text, values | {"record": described["record"]})


def put_portal(cursor: Cursor, portal: str, kind: str, harvest: int) -> int:
    """Return the number of a catalogue, which is added if need be."""
    named = {"url": storable(portal), "kind": kind, "now": harvest}
    row = cursor.execute(_SQL["put_portal"].text, named).fetchone()
    assert row is not None
    return int(row[0])


def put_named_portal(cursor: Cursor, portal: str, query: str, harvest: int) -> bool:
    """Make a portal known that only a query names; return whether it is so."""
    values = {"url": storable(portal), "query": storable(query), "harvest": harvest}
    return cursor.execute(_SQL["put_named_portal"].text, values).fetchone() is not None


def watch_portals(cursor: Cursor, portals: Sequence[tuple[str, str]], now: int) -> list[tuple[str, str]]:
    """Let portals be harvested, each by its URL and kind; return those that were not, by what is known."""
    values = {"url": [storable(url) for url, _ in portals], "kind": [kind for _, kind in portals], "now": now}
    return cursor.execute(_SQL["watch_portals"].text, values).fetchall()


def watched_portals(session: Session) -> set[str]:
    """Return the URLs of portals and other sources that are harvested, or were until they were stopped."""
    return {url for (url,) in session.fetch_all(_SQL["watched_portals"])}


def note_listed(cursor: Cursor, portal: str, harvest: int, found: Present | Deleted) -> None:
    """Note records that a harvest found listed or deleted, without reading them."""
    name = "note_present" if isinstance(found, Present) else "note_deleted"
    records = [storable(each) for each in found.records]
    cursor.execute(_SQL[name].text, {"url": storable(portal), "harvest": harvest, "record": records})


def count_present(cursor: Cursor, portal: str) -> tuple[int, int | None]:
    """Return how many datasets a catalogue has, and the start of the harvest that saw the latest change."""
    row = cursor.execute(_SQL["count_present"].text, {"url": storable(portal)}).fetchone()
    assert row is not None
    return row[0], row[1]


def note_harvested(cursor: Cursor, portal: str, harvest: int) -> None:
    """Note that a harvest knows the state of the whole catalogue."""
    cursor.execute(_SQL["note_harvested"].text, {"url": storable(portal), "harvest": harvest})


def note_whole(cursor: Cursor, portal: str, harvest: int) -> int:
    """Note that a harvest saw the whole catalogue; return how many datasets have vanished from it."""
    note_harvested(cursor, portal, harvest)
    values = {"url": storable(portal), "harvest": harvest}
    return cursor.execute(_SQL["note_vanished"].text, values).rowcount


def _offered(datasets: Iterable[Dataset]) -> dict[str, list[Any]]:
    pairs = [(each.record, form) for each in datasets for form in each.distributions]
    forms = list({(record, form.url): (record, form) for record, form in pairs}.values())
    texts = ("url", "title", "format", "media_type", "sha256", "modified")
    return {
        "record": [storable(record) for record, _ in forms],
        "byte_size": [_size(form) for _, form in forms],
        **{name: [storable(getattr(form, name)) for _, form in forms] for name in texts},
    }


def _size(form: Distribution) -> int | None:
    return form.byte_size if form.byte_size is not None and 0 <= form.byte_size < 2**63 else None


class Said(msgspec.Struct, frozen=True):
    """A hint about one address."""

    url: str
    changed_at: int | None = None
    frequency: str | None = None


class ClaimedChange(msgspec.Struct, frozen=True):
    """A resource that is said to have changed at a time."""

    url: str
    host: str
    visited_at: int | None
    changed_at: int | None


def note_hints(session: Session, said: Sequence[Said]) -> list[ClaimedChange]:
    """Write new hints; return the resources that they are about."""
    values = {
        "url": [storable(each.url) for each in said],
        "changed_at": [each.changed_at for each in said],
        "frequency": [storable(each.frequency) for each in said],
    }
    return [ClaimedChange(*row) for row in session.fetch_all(_SQL["note_hints"], values)]


def read_trust(session: Session, hosts: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return how often the dates of hosts were right: (right, tests)."""
    rows = session.fetch_all(_SQL["read_trust"], {"host": list(hosts)})
    return {host: (correct, checked) for host, correct, checked in rows}


def write_trust(cursor: Cursor, host: str, correct: int, checked: int) -> None:
    """Write how often the dates of a host were right."""
    cursor.execute(_SQL["write_trust"].text, {"host": host, "correct": correct, "checked": checked})
