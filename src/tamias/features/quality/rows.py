"""Quality in the database: what was claimed is noted, what was got is read, what is measured is stored.

Subjects of measures are resources by their ids, descriptions by `record_id`, and catalogues by their URLs.
"""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from tamias.archive.blobs import BlobReader
from tamias.database.columns import storable
from tamias.database.connect import Cursor, Session
from tamias.database.sql import statements
from tamias.features.dcat.measures import record_id
from tamias.features.quality.metrics import (
    NOTHING,
    ClaimedDescription,
    ClaimedForm,
    Got,
    claims_of,
    dataset_metrics,
    delivery_metrics,
    points,
)
from tamias.model.dataset import Dataset
from tamias.model.errors import UrlError
from tamias.model.resource import resource_id
from tamias.model.url import url_key
from tamias.settings import Settings

_SQL = statements("tamias.features.quality", "quality.sql")
PAGE = 500

Values = dict[str, float]


def note_claims(cursor: Cursor, portal: str, datasets: Sequence[Dataset]) -> None:
    """Store what was claimed of datasets that `note_datasets` has noted, in the same transaction."""
    claimed = {storable(each.record): msgspec.json.encode(claims_of(each)).decode() for each in datasets}
    if claimed:
        named = {"portal": storable(portal), "record": list(claimed), "told": list(claimed.values())}
        cursor.execute(_SQL["note_claims"].text, named)


def measure(session: Session, _blobs: BlobReader, _settings: Settings) -> None:
    """Measure deliveries, then descriptions."""
    measure_resources(session)
    measure_portals(session)


def measure_portals(session: Session) -> int:
    """Measure all that catalogues describe, and catalogues by the mean; return how many descriptions."""
    measured = 0
    for portal, url in session.fetch_all(_SQL["portals"]):
        measured += _measure_portal(session, portal, url)
    return measured


def measure_resources(session: Session) -> int:
    """Measure how the resources that a portal lists were delivered; return how many."""
    measured, after = 0, ""
    while page := session.fetch_all(_SQL["page_resources"], {"after": after, "limit": PAGE}):
        measured += _measure_some(session, [name for (name,) in page])
        after = page[-1][0]
    return measured


def _measure_some(session: Session, names: list[str]) -> int:
    got = _read_got(session, names)
    promises = session.fetch_all(_SQL["read_promises"], {"resource": names})
    values = {
        name: delivery_metrics([ClaimedForm(url=url, byte_size=size)], [expected], [got[name]])
        for name, url, expected, size in promises
    }
    _store(session, values)
    return len(values)


def _measure_portal(session: Session, portal: int, url: str) -> int:
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    measured, after = 0, ""
    while page := session.fetch_all(_SQL["page_told"], {"portal": portal, "after": after, "limit": PAGE}):
        claimed = {
            record: msgspec.convert(text, ClaimedDescription) for record, text in page if text is not None
        }
        got = _got_of_forms(session, claimed)
        values = {
            record: {**dataset_metrics(claimed[record], got[record]), **points(claimed[record], got[record])}
            if record in claimed
            else {"reme": 0.0}
            for record, _ in page
        }
        _store(session, {record_id(url, record): each for record, each in values.items()})
        for each in values.values():
            for metric, value in each.items():
                sums[metric][0] += value
                sums[metric][1] += 1
        measured += len(page)
        after = page[-1][0]
    _store(session, {url: {metric: total / count for metric, (total, count) in sums.items()}})
    return measured


def _got_of_forms(session: Session, claimed: dict[str, ClaimedDescription]) -> dict[str, list[Got]]:
    """Return what the archive got of each form of each description."""
    named = {record: [_resource(form.url) for form in each.forms] for record, each in claimed.items()}
    got = _read_got(session, [each for listed in named.values() for each in listed if each is not None])
    return {record: [got[each] if each else NOTHING for each in listed] for record, listed in named.items()}


def _resource(url: str) -> str | None:
    try:
        return resource_id(url_key(url))
    except UrlError:
        return None


def _read_got(session: Session, resources: Sequence[str]) -> dict[str, Got]:
    found: dict[str, Got] = defaultdict(lambda: NOTHING)
    for resource, tried, retrieved, media_type, size in session.fetch_all(
        _SQL["read_got"], {"resource": list(resources)}
    ):
        found[resource] = Got(tried=tried, retrieved=retrieved, media_type=media_type, byte_size=size)
    return found


def _store(session: Session, values: dict[str, Values]) -> None:
    names = {
        "subject": [subject for subject, each in values.items() for _ in each],
        "metric": [metric for each in values.values() for metric in each],
    }
    measured = [value for each in values.values() for value in each.values()]
    now = session.now()

    def store(cursor: Cursor) -> None:
        cursor.execute(_SQL["drop_measures"].text, {"subjects": list(values), **names})
        cursor.execute(_SQL["put_measures"].text, {"now": now, "value": measured, **names})

    session.transact(store)
