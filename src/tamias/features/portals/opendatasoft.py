"""Harvester for OpenDataSoft: the catalogue of its Explore API, and the exports that each dataset has."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tamias.features.portals.paging.changes import ListedPortal, at_root, read_changes_or_all
from tamias.features.portals.paging.listing import ChangeOrder, PortalListing, json_at
from tamias.features.portals.paging.position import Position
from tamias.harvesters.mapping import RecordMapping
from tamias.harvesters.records import TITLES, agent, one_text, properties, table, tables, text, texts, web
from tamias.model.dataset import Dataset, Distribution, Period

PAGE_RECORDS = 100
_LISTS: Final = {"references": "dct:relation", "attributions": "dct:rights"}
DEEPEST_OFFSET = 10_000
_API: Final = "api/explore/v2.1/catalog/datasets"
_NO_DATE: Final = "~"
"""Sorts behind every date, as datasets without one do."""

_EXPORTS: Final = {
    "csv": ("text/csv", "CSV"),
    "json": ("application/json", "JSON"),
    "turtle": ("text/turtle", "RDF_TURTLE"),
}
_GEO_EXPORTS: Final = {"geojson": ("application/geo+json", "GEOJSON")}


_IDENTIFIER: Final = json_at("dataset_id")
_MODIFIED: Final = json_at("metas.default.modified", needed=False)


def _address(place: Position, start: int, size: int) -> tuple[str, int]:
    """Return a page in the order of changes, so that a dataset that changes meanwhile is listed again.

    An offset may not pass 10,000: from there on it is counted anew from the last date. Datasets without a
    date stand behind all others, and cannot be reached then; the count at the end tells.
    """
    date = place.window.partition(" ")[0]
    since = "&where=" + quote(f"modified >= date'{date}'") if date and date != _NO_DATE else ""
    return _ordered(place, "modified asc, dataset_id asc", start, size) + since, start


def _latest_first(place: Position, start: int, size: int) -> tuple[str, int]:
    return _ordered(place, "metadata_processed desc", start, size), start


def _ordered(place: Position, order: str, start: int, size: int) -> str:
    return f"{place.root}{_API}?order_by={quote(order)}&limit={min(size, PAGE_RECORDS)}&offset={start}"


def dataset_of(record: dict[str, Any], root: str) -> Dataset:
    """Read an entry of the catalogue as a dataset."""
    key = text(record.get("dataset_id")) or ""
    metas = table(record.get("metas"))
    default, dcat = table(metas.get("default")), table(metas.get("dcat"))
    page = f"{root}explore/dataset/{quote(key, safe='')}/"
    return Dataset(
        iri=page,
        record=key,
        title=one_text(default.get("title")) or key,
        title_language=text(default.get("language")),
        description=one_text(default.get("description")),
        identifiers=texts([key, text(record.get("dataset_uid"))]),
        keywords=texts(default.get("keyword")),
        groups=texts(default.get("theme")),
        landing_page=page,
        licence=web(default.get("license_url")) or text(default.get("license")),
        publisher=agent(one_text(default.get("publisher"))),
        creator=agent(text(dcat.get("creator"))),
        contact=agent(text(dcat.get("contact_name")), text(dcat.get("contact_email"))),
        issued=text(dcat.get("issued")) or text(dcat.get("created")),
        modified=text(default.get("modified")),
        record_modified=text(default.get("metadata_processed")),
        frequency=text(dcat.get("accrualperiodicity")),
        language=texts(default.get("language")),
        spatial=texts([*texts(default.get("territory")), *texts(dcat.get("spatial"))]),
        temporal=tuple(_periods(dcat)),
        conforms_to=texts(dcat.get("conforms_to")),
        provenance=text(dcat.get("dataquality")),
        distributions=tuple(_distributions(record, key, root)),
        more=tuple(properties(default, {**TITLES, "keyword": "dcat:keyword"}, _LISTS)),
    )


def _periods(dcat: dict[str, Any]) -> Iterator[Period]:
    start = text(dcat.get("temporal_coverage_start")) or text(dcat.get("temporal"))
    end = text(dcat.get("temporal_coverage_end"))
    if start or end:
        yield Period(start, end)


def _distributions(record: dict[str, Any], key: str, root: str) -> Iterator[Distribution]:
    if record.get("has_records") is not False:
        exports = _EXPORTS | (_GEO_EXPORTS if "geo" in texts(record.get("features")) else {})
        for ending, (kind, form) in exports.items():
            url = f"{root}{_API}/{quote(key, safe='')}/exports/{ending}"
            yield Distribution(url=url, title=ending, media_type=kind, format=form)
    for each in [*tables(record.get("attachments")), *tables(record.get("alternative_exports"))]:
        if address := web(each.get("url")):
            yield Distribution(
                url=address,
                title=text(each.get("title")),
                description=text(each.get("description")),
                media_type=text(each.get("mimetype")),
            )


MAPPING: Final = RecordMapping(
    "opendatasoft",
    dataset_of,
    volatile={
        "metas.explore": "downloads, calls and popularity, counted by the portal",
        "metas.default.metadata_processed": "when the portal last processed the record",
        "metas.default.data_processed": "when the portal last processed the data",
    },
)

LISTING: Final = PortalListing(
    name="OpenDataSoft",
    mapping=MAPPING,
    address=_address,
    records=json_at("results", list[msgspec.Raw]),
    total=json_at("total_count", int, needed=False),
    key=lambda record: f"{_MODIFIED(record) or _NO_DATE} {_IDENTIFIER(record)}",
    order=ChangeOrder(
        "metadata_processed", _latest_first, json_at("metas.default.metadata_processed", needed=False)
    ),
    largest=PAGE_RECORDS - 1,
    deepest=DEEPEST_OFFSET,
)
OpenDataSoftHarvester = partial(
    ListedPortal,
    "opendatasoft",
    at_root(LISTING.largest, "api", "explore", "pages"),
    partial(read_changes_or_all, LISTING),
)
