"""Harvester for ArcGIS Hub: its feed in the words of DCAT-US, or its search page by page."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import msgspec

from tamias.features.portals.paging.changes import ListedPortal, at_root, read_changes_or_all
from tamias.features.portals.paging.listing import ChangeOrder, PortalListing, json_at
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.validators import read_file_listing
from tamias.features.portals.paging.ways import in_turn
from tamias.features.portals.records import pod
from tamias.harvesters.mapping import RecordMapping, plain
from tamias.harvesters.records import TITLES, agent, one_text, properties, table, text, texts
from tamias.harvesters.terms import sound_iri
from tamias.model.dataset import Dataset, Distribution
from tamias.model.finding import HarvestStep
from tamias.protocols import PoliteClient

PAGE_RECORDS = 100


def _items(place: Position, start: int, size: int) -> tuple[str, int]:
    where = f"{place.root}api/search/v1/collections/dataset/items"
    return f"{where}?limit={size}&startindex={start + 1}", start


def _latest_first(place: Position, start: int, size: int) -> tuple[str, int]:
    return f"{_items(place, start, size)[0]}&sortBy=-properties.modified", start


_MODIFIED: Final = json_at("properties.modified", int | str, needed=False)


def _read(place: Position, client: PoliteClient, bookmark: bytes | None) -> AsyncIterator[HarvestStep]:
    """Read the feed, or the search; changes only of the search."""
    if place.changes:
        place.stage = "search"
    return in_turn(
        place,
        {
            "feed": lambda: read_file_listing(FEED, place, client, bookmark),
            "search": lambda: _search(place, client),
        },
    )


def _search(place: Position, client: PoliteClient) -> AsyncIterator[HarvestStep]:
    if not place.taken:
        place.size, place.ordered = PAGE_RECORDS, False
    return read_changes_or_all(SEARCH, place, client)


def item_dataset(record: dict[str, Any], root: str) -> Dataset:
    """Read an item of the search as a dataset."""
    said = table(record.get("properties"))
    key = text(record.get("id")) or ""
    page = f"{root}datasets/{key}"
    return Dataset(
        iri=page,
        record=key,
        title=one_text(said.get("title")) or text(said.get("name")) or key,
        description=one_text(said.get("description")) or text(said.get("snippet")),
        identifiers=(key,),
        keywords=texts(said.get("tags")),
        groups=texts([each.rpartition("/")[2] for each in texts(said.get("categories"))]),
        landing_page=page,
        licence=text(said.get("license")) or text(said.get("licenseInfo")),
        rights=text(said.get("accessInformation")),
        access_rights=text(said.get("access")),
        publisher=agent(text(said.get("source")) or text(said.get("orgName")) or text(said.get("owner"))),
        issued=_moment(said.get("created")),
        modified=_moment(said.get("modified")),
        record_issued=_moment(said.get("created")),
        record_modified=_moment(said.get("modified")),
        language=texts(said.get("culture")),
        spatial=tuple(_places(record)),
        distributions=tuple(_distributions(said, key, root)),
        more=tuple(properties(said, TITLES, {"type": "dct:type", "typeKeywords": "dcat:keyword"})),
    )


def _moment(value: Any) -> str | None:
    """A time that is given in milliseconds, or as it stands.

    >>> _moment(1577836800000), _moment("2020-01-01")
    ('2020-01-01T00:00:00Z', '2020-01-01')
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 4e12:
        return datetime.fromtimestamp(value // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return text(value)


def _places(record: dict[str, Any]) -> Iterator[str]:
    if geometry := table(record.get("geometry")):
        yield msgspec.json.encode(plain(geometry)).decode()


def _distributions(said: dict[str, Any], key: str, root: str) -> Iterator[Distribution]:
    """The service as it stands, and the files that the hub makes of a layer."""
    service = text(said.get("url"))
    if service and sound_iri(service, web=True):
        form = text(said.get("type"))
        is_service = "/rest/services/" in service.lower()
        yield Distribution(
            url=service,
            title=form,
            format=form,
            access_only=is_service,
            service=service if is_service else None,
        )
    if service and "/featureserver" in service.lower():
        for ending, kind, form in (
            ("csv", "text/csv", "CSV"),
            ("geojson", "application/geo+json", "GEOJSON"),
        ):
            url = f"{root}api/download/v1/items/{key}/{ending}?layers=0"
            yield Distribution(url=url, title=form, media_type=kind, format=form)


MAPPING: Final = RecordMapping(
    "arcgis",
    item_dataset,
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
    records=json_at("dataset", list[msgspec.Raw]),
    key=json_at("identifier"),
    any_offset=False,
)
"""The feed; it has no pages."""
SEARCH: Final = PortalListing(
    name="ArcGIS Hub",
    mapping=MAPPING,
    address=_items,
    records=json_at("features", list[msgspec.Raw]),
    total=json_at("numberMatched", int, needed=False),
    order=ChangeOrder("modified", _latest_first, lambda record: _moment(_MODIFIED(record))),
    largest=PAGE_RECORDS,
)
"""The search of all datasets, whose order is the hub's own."""
ArcGisHarvester = partial(ListedPortal, "arcgis", at_root(1, is_top=True, ordered=False), _read)
