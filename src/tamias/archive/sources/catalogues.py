"""What catalogues describe, as rows: datasets, the forms they come in, and which have vanished."""

from collections.abc import Sequence
from typing import Any

from tamias.database.columns import storable
from tamias.database.connect import Cursor
from tamias.database.sql import statements
from tamias.model.dataset import Dataset, Distribution

_SQL = statements("tamias.archive.sources", "catalogues.sql")


def note_datasets(cursor: Cursor, portal: str, kind: str, harvest: int, datasets: Sequence[Dataset]) -> None:
    """A harvest that began at `harvest` saw these. The same news twice is harmless."""
    unique = {dataset.record: dataset for dataset in datasets}
    if not unique:
        return
    told = {"portal": put_portal(cursor, portal, kind, harvest), "harvest": harvest}
    cursor.execute(_SQL["put_described"].text, told | _described(list(unique.values())))
    cursor.execute(_SQL["put_offered"].text, told | _offered(list(unique.values())))


def put_portal(cursor: Cursor, portal: str, kind: str, harvest: int) -> int:
    """The number of a catalogue, which is made known if need be."""
    named = {"url": storable(portal), "kind": kind, "now": harvest}
    row = cursor.execute(_SQL["put_portal"].text, named).fetchone()
    assert row is not None
    return int(row[0])


def note_whole(cursor: Cursor, portal: str, harvest: int) -> int:
    """A harvest saw the whole catalogue; returns how many datasets have vanished from it."""
    told = {"url": storable(portal), "harvest": harvest}
    cursor.execute(_SQL["note_harvested"].text, told)
    return cursor.execute(_SQL["note_vanished"].text, told).rowcount


def _described(datasets: list[Dataset]) -> dict[str, list[Any]]:
    return {
        "record": [storable(each.record) for each in datasets],
        "iri": [storable(each.iri) for each in datasets],
        "title": [storable(each.title) for each in datasets],
    }


def _offered(datasets: list[Dataset]) -> dict[str, list[Any]]:
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
