"""Harvester for OpenDataSoft: the catalogue of its Explore API, and the exports that each dataset has."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from tamias.features.dcat.datasets.mapping import RecordMapping
from tamias.features.dcat.datasets.records import TITLES, text, texts
from tamias.features.portals.fields import Fields, terms
from tamias.features.portals.paging.listing import ChangeOrder, PortalListing, json_at, json_page
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.ways import Portal, at_root
from tamias.model.dataset import Agent, Dataset, Distribution, Period

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


def _exports(record: dict[str, Any], context: Mapping[str, str]) -> Iterator[Distribution]:
    if record.get("has_records") is not False:
        for ending, (kind, form) in (
            _EXPORTS | (_GEO_EXPORTS if "geo" in texts(record.get("features")) else {})
        ).items():
            url = f"{context['root']}{_API}/{context['key']}/exports/{ending}"
            yield Distribution(url=url, title=ending, media_type=kind, format=form)


_FILE: Final[dict[str, Any]] = {
    "url": "url>web",
    "title": "title",
    "description": "description",
    "media_type": "mimetype",
}
_DATASET: Final = Fields(
    Dataset,
    iri="{page}", record="dataset_id =", title="metas.default.title dataset_id =",
    title_language="metas.default.language", description="metas.default.description",
    identifiers="dataset_id dataset_uid", keywords="metas.default.keyword", groups="metas.default.theme",
    landing_page="{page}", licence="metas.default.license_url>web metas.default.license",
    publisher=Fields(Agent, name="metas.default.publisher"),
    creator=Fields(Agent, name="metas.dcat.creator"),
    contact=Fields(Agent, "metas.dcat", name="contact_name contact_email", email="contact_email"),
    issued="metas.dcat.issued metas.dcat.created", modified="metas.default.modified",
    record_modified="metas.default.metadata_processed", frequency="metas.dcat.accrualperiodicity",
    language="metas.default.language", spatial="metas.default.territory metas.dcat.spatial",
    temporal=Fields(
        Period, "metas.dcat", start="temporal_coverage_start temporal", end="temporal_coverage_end"
    ),
    conforms_to="metas.dcat.conforms_to", provenance="metas.dcat.dataquality",
    distributions=(
        _exports,
        Fields(Distribution, "attachments", **_FILE),
        Fields(Distribution, "alternative_exports", **_FILE),
    ),
    more=terms({**TITLES, "keyword": "dcat:keyword"}, _LISTS, "metas.default"),
)  # fmt: skip


def dataset_of(record: dict[str, Any], root: str) -> Dataset:
    """Read an entry of the catalogue as a dataset."""
    key = quote(text(record.get("dataset_id")) or "", safe="")
    return _DATASET.of(record, root, key=key, page=f"{root}explore/dataset/{key}/")


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
    page=json_page("results", "total_count"),
    key=lambda record: f"{_MODIFIED(record) or _NO_DATE} {_IDENTIFIER(record)}",
    order=ChangeOrder(
        "metadata_processed", json_at("metas.default.metadata_processed", needed=False), _latest_first
    ),
    largest=PAGE_RECORDS - 1,
    deepest=DEEPEST_OFFSET,
)
OpenDataSoftHarvester = partial(Portal, "opendatasoft", at_root("api", "explore", "pages"), {"": LISTING})
