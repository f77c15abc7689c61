"""Harvester for CKAN: its action API by pages, one by one where that fails, its catalogue files otherwise."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tamias.features.dcat.datasets.mapping import MappedRecord, map_record
from tamias.features.portals.data_json import DataJsonHarvester
from tamias.features.portals.dcat import CatalogueHarvester
from tamias.features.portals.paging.listing import (
    MOST_DATASETS,
    AddressOf,
    ChangeOrder,
    Detailed,
    PortalListing,
    RecordPage,
    ask_json,
    json_at,
)
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.ways import CatalogueFile, Portal, Ways, roots
from tamias.features.portals.records.ckan import MAPPING
from tamias.model.finding import Deleted, HarvestEnd, Present, Problem
from tamias.protocols import PoliteClient

PAGE_RECORDS = 1000
"""What CKAN gives at the most, unless its operator allows more."""
_INNER = ("api", "dataset", "organization", "group", "data.json", "catalog.ttl")


_SEARCH = "api/3/action/package_search"
_RECORDS: Final = json_at("result.results", list[msgspec.Raw])
_COUNT: Final = json_at("result.count", int)
_SUCCESS: Final = json_at("success", bool)
_STATUS: Final = json_at("result", dict[str, Any])
_NAMES_OF: Final = json_at("result", list[msgspec.Raw])
_PACKAGE: Final = json_at("result", msgspec.Raw)
_IDENTIFIER: Final = json_at("id")


def _page(body: bytes) -> RecordPage:
    if not _SUCCESS(body):
        raise ValueError("success is false")
    return RecordPage(_RECORDS(body), _COUNT(body))


def _sorted_by(order: str) -> AddressOf:
    def address(place: Position, start: int, size: int) -> tuple[str, int]:
        return f"{place.root}{_SEARCH}?rows={size}&start={start}&sort={quote(order)}", start

    return address


class _Activity(msgspec.Struct):
    activity_type: str
    object_id: str
    timestamp: str = ""


_ACTIVITY: Final = json_at("result", list[_Activity])
_ACTIVITIES = 100
"""What CKAN tells of at the most, unless its operator allows more."""


async def _deletions(place: Position, client: PoliteClient) -> AsyncGenerator[Present | Deleted]:
    """Yield what the stream of activities has as deleted; if that is not all of it, all identifiers."""
    url = f"{place.root}api/3/action/recently_changed_packages_activity_list?limit={_ACTIVITIES}"
    answer = await ask_json(place, client, url, _ACTIVITY, "CKAN")
    activities = [] if isinstance(answer, HarvestEnd) else answer
    deleted = [each.object_id for each in activities if each.activity_type == "deleted package"]
    if deleted:
        place.way = "deletions by the activity stream"
        yield Deleted(deleted)
    if ids := await _all_ids(place, client):
        place.way = "deletions by a list of all identifiers"
        yield Present(ids)


def _ids_and_count(body: bytes) -> tuple[dict[str, None], int]:
    return dict.fromkeys(map(_IDENTIFIER, _RECORDS(body))), _COUNT(body)


async def _all_ids(place: Position, client: PoliteClient) -> list[str] | None:
    """Return the identifiers of all datasets, in their order; None where the list is not whole."""
    ids: dict[str, None] = {}
    while True:
        query = f"fl=id&rows={PAGE_RECORDS}&start={max(0, len(ids) - 1)}&sort={quote('id asc')}"
        page = await ask_json(place, client, f"{place.root}{_SEARCH}?{query}", _ids_and_count, "CKAN")
        if isinstance(page, HarvestEnd):
            return None
        before = len(ids)
        ids |= page[0]
        if len(ids) == page[1]:
            return list(ids)
        if len(ids) == before or len(ids) > MOST_DATASETS:
            return None


MOST_FAULTS = 100
_NAMES = 1000


def _names_address(place: Position, start: int, _size: int) -> tuple[str, int]:
    return f"{place.root}api/3/action/package_list?limit={_NAMES}&offset={start}", start


def _names(body: bytes) -> RecordPage:
    """Read a list of names; a CKAN that knows no limit gives all of them at once."""
    names = _NAMES_OF(body)
    is_all = len(names) > _NAMES
    return RecordPage(names, len(names) if is_all else None, is_all=is_all)


async def _shown(place: Position, client: PoliteClient, raw: msgspec.Raw) -> Detailed:
    url = f"{place.root}api/3/action/package_show?id={quote(msgspec.json.decode(raw, type=str), safe='')}"
    shown: MappedRecord | HarvestEnd = await ask_json(
        place, client, url, lambda body: map_record(MAPPING, bytes(_PACKAGE(body)), place.root), "CKAN"
    )
    if isinstance(shown, MappedRecord) or shown.retry_after_ms or place.lost >= MOST_FAULTS:
        return shown
    return Problem(shown.reason)


LISTING: Final = PortalListing(
    name="CKAN",
    mapping=MAPPING,
    address=_sorted_by("id asc"),
    page=_page,
    key=_IDENTIFIER,
    order=ChangeOrder(
        "metadata_modified",
        json_at("metadata_modified", needed=False),
        _sorted_by("metadata_modified desc"),
        deletions=_deletions,
    ),
    largest=PAGE_RECORDS,
)
"""`package_search`, in the order of identifiers."""
NAMES: Final = PortalListing(
    name="CKAN",
    address=_names_address,
    page=_names,
    key=msgspec.json.Decoder(str).decode,
    details=_shown,
    step=20,
    any_offset=False,
)
"""`package_list`: each name costs a request, and so much is repeated at the most after a crash."""


async def _find(url: str, client: PoliteClient) -> Position:
    """Return the portal's root and title, as its status has them; without one, the likeliest root."""
    candidates = roots(url, *_INNER)
    place = Position(root=candidates[0])
    for root in candidates:
        status = await ask_json(place, client, f"{root}api/3/action/status_show", _STATUS, "CKAN")
        if not isinstance(status, HarvestEnd):
            place.root, place.title = root, status.get("site_title") or ""
            break
    return place


WAYS: Final[Ways] = {
    "search": LISTING,
    "names": NAMES,
    # Where robots.txt forbids the API, as CKAN's own does.
    "data.json": CatalogueFile("data.json", DataJsonHarvester),
    "catalog.ttl": CatalogueFile("catalog.ttl", CatalogueHarvester),
}
CkanHarvester = partial(Portal, "ckan", _find, WAYS)
