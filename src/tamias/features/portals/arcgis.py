"""Harvester for ArcGIS Hub: its feed in the words of DCAT-US, or its search page by page."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from tamias.features.dcat.datasets.mapping import RecordMapping
from tamias.features.dcat.datasets.records import TITLES, table, text, texts, web
from tamias.features.portals.fields import Fields, terms
from tamias.features.portals.paging.listing import ChangeOrder, PortalListing, json_at, json_page
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.ways import Portal, at_root
from tamias.features.portals.records import pod
from tamias.model.dataset import Agent, Dataset, Distribution

PAGE_RECORDS = 100


def _items(place: Position, start: int, size: int) -> tuple[str, int]:
    where = f"{place.root}api/search/v1/collections/dataset/items"
    return f"{where}?limit={size}&startindex={start + 1}", start


def _latest_first(place: Position, start: int, size: int) -> tuple[str, int]:
    return f"{_items(place, start, size)[0]}&sortBy=-properties.modified", start


_MODIFIED: Final = json_at("properties.modified", int | str, needed=False)


def _moment(value: Any) -> str | None:
    """A time that is given in milliseconds, or as it stands.

    >>> _moment(1577836800000), _moment("2020-01-01")
    ('2020-01-01T00:00:00Z', '2020-01-01')
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 4e12:
        return datetime.fromtimestamp(value // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return text(value)


def _at(name: str) -> Any:
    """Make a rule for a time."""
    return lambda record, _: _moment(table(record.get("properties")).get(name))


def _distributions(record: dict[str, Any], context: Mapping[str, str]) -> Iterator[Distribution]:
    """The service as it stands, and the files that the hub makes of a layer."""
    said = table(record.get("properties"))
    service, form = web(said.get("url")), text(said.get("type"))
    if service is not None:
        is_service = "/rest/services/" in service.lower()
        own = service if is_service else None
        yield Distribution(url=service, title=form, format=form, access_only=is_service, service=own)
    if "/featureserver" in (text(said.get("url")) or "").lower():
        for ending, kind in (("csv", "text/csv"), ("geojson", "application/geo+json")):
            url = f"{context['root']}api/download/v1/items/{text(record.get('id'))}/{ending}?layers=0"
            yield Distribution(url=url, title=ending.upper(), media_type=kind, format=ending.upper())


_ITEM: Final = Fields(
    Dataset,
    iri="{root}datasets/{id}", record="id", title="properties.title properties.name id",
    description="properties.description properties.snippet", identifiers="id", keywords="properties.tags",
    groups=lambda record, _: texts(
        [each.rpartition("/")[2] for each in texts(table(record.get("properties")).get("categories"))]
    ),
    landing_page="{root}datasets/{id}", licence="properties.license properties.licenseInfo",
    rights="properties.accessInformation", access_rights="properties.access",
    publisher=Fields(Agent, "properties", name="source orgName owner"),
    issued=_at("created"),
    modified=_at("modified"),
    record_issued=_at("created"),
    record_modified=_at("modified"),
    language="properties.culture", spatial="geometry>shape",
    distributions=_distributions,
    more=terms(TITLES, {"type": "dct:type", "typeKeywords": "dcat:keyword"}, "properties"),
)  # fmt: skip


MAPPING: Final = RecordMapping(
    "arcgis",
    _ITEM.of,
    dropped={
        "type": "`Feature`, of every record",
        "properties.boundary.geometry.type": "the kind of a geometry that is kept",
    },
    volatile={
        "properties.numViews": "views, counted by the portal",
        "properties.avgRating": "ratings, counted by the portal",
        "properties.numRatings": "ratings, counted by the portal",
        "properties.numComments": "comments, counted by the portal",
    },
)

FEED: Final = PortalListing(
    name="ArcGIS Hub",
    mapping=pod.MAPPING,
    address=lambda place, _start, _size: (f"{place.root}api/feed/dcat-us/1.1.json", 0),
    page=json_page("dataset"),
    key=json_at("identifier"),
    any_offset=False,
    ordered=False,
    is_file=True,
)
"""The feed; it has no pages."""
SEARCH: Final = PortalListing(
    name="ArcGIS Hub",
    mapping=MAPPING,
    address=_items,
    page=json_page("features", "numberMatched"),
    order=ChangeOrder("modified", lambda record: _moment(_MODIFIED(record)), _latest_first),
    largest=PAGE_RECORDS,
    ordered=False,
)
"""The search of all datasets, whose order is the hub's own."""
ArcGisHarvester = partial(Portal, "arcgis", at_root(is_top=True), {"feed": FEED, "search": SEARCH})
