"""Harvester for CKAN: its action API by pages, one by one where that fails, its catalogue files otherwise."""

from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tamias.features.dcat.datasets.mapping import MappedRecord, map_record
from tamias.features.dcat.datasets.records import described
from tamias.features.portals.data_json import DataJsonHarvester
from tamias.features.portals.dcat import CatalogueHarvester
from tamias.features.portals.paging.changes import ListedPortal, read_changes
from tamias.features.portals.paging.listing import (
    MOST_DATASETS,
    AddressOf,
    ChangeOrder,
    PortalListing,
    ask_json,
    json_at,
    read_listing,
    state_of,
)
from tamias.features.portals.paging.position import Position, read_to_the_end
from tamias.features.portals.paging.ways import in_turn, roots, through
from tamias.features.portals.records.ckan import MAPPING
from tamias.model.finding import Deleted, HarvestEnd, HarvestStep, Present, Problem
from tamias.protocols import PoliteClient

PAGE_RECORDS = 1000
"""What CKAN gives at the most, unless its operator allows more."""
_INNER = ("api", "dataset", "organization", "group", "data.json", "catalog.ttl")


_SEARCH = "api/3/action/package_search"
_RECORDS: Final = json_at("result.results", list[msgspec.Raw])
_COUNT: Final = json_at("result.count", int)
_SUCCESS: Final = json_at("success", bool)
_STATUS: Final = json_at("result", dict[str, Any])
_NAMES_OF: Final = json_at("result", list[str])
_PACKAGE: Final = json_at("result", msgspec.Raw)
_IDENTIFIER: Final = json_at("id")


def _records(body: bytes) -> list[msgspec.Raw]:
    if not _SUCCESS(body):
        raise ValueError("success is false")
    records: list[msgspec.Raw] = _RECORDS(body)
    return records


def _sorted_by(order: str) -> AddressOf:
    def address(place: Position, start: int, size: int) -> tuple[str, int]:
        return f"{place.root}{_SEARCH}?rows={size}&start={start}&sort={quote(order)}", start

    return address


LISTING: Final = PortalListing(
    name="CKAN",
    mapping=MAPPING,
    address=_sorted_by("id asc"),
    records=_records,
    total=_COUNT,
    key=_IDENTIFIER,
    order=ChangeOrder(
        "metadata_modified", _sorted_by("metadata_modified desc"), json_at("metadata_modified", needed=False)
    ),
    largest=PAGE_RECORDS,
)
"""`package_search`, in the order of identifiers."""


async def _read(place: Position, client: PoliteClient, _bookmark: bytes | None) -> AsyncIterator[HarvestStep]:
    """Read the changes if they are enough; else the search, one by one if there is no search.

    If robots.txt forbids the API, as CKAN's own does, read the data.json instead, or the catalog.ttl.
    """
    if place.changes:
        async for step in read_changes(LISTING, place, client, _deletions):
            yield step
    if place.changes:
        return
    root = place.root
    ways = {
        "search": lambda: read_listing(LISTING, place, client),
        "names": lambda: read_one_by_one(place, client),
        "data.json": lambda: through(DataJsonHarvester(), f"{root}data.json", "data-json", place, client),
        "catalog.ttl": lambda: through(CatalogueHarvester(), f"{root}catalog.ttl", "dcat", place, client),
    }
    async for step in in_turn(place, ways):
        yield step


async def _find(url: str, client: PoliteClient) -> Position:
    """Return the portal's root and title, as its status has them; without one, the likeliest root."""
    candidates = roots(url, *_INNER)
    place = Position(root=candidates[0], size=PAGE_RECORDS)
    for root in candidates:
        status = await ask_json(place, client, f"{root}api/3/action/status_show", _STATUS, "CKAN")
        if not isinstance(status, HarvestEnd):
            place.root, place.title = root, status.get("site_title") or ""
            break
    return place


CkanHarvester = partial(ListedPortal, "ckan", _find, _read)


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
_STEP_RECORDS = 20
"""Each costs a request, and so much is repeated at the most after a crash."""


async def read_one_by_one(place: Position, client: PoliteClient) -> AsyncIterator[HarvestStep]:
    """Read each dataset of the list of names; the place's offset counts names."""
    names = await _names(place, client)
    while not isinstance(names, HarvestEnd) and names:
        trouble: HarvestEnd | None = None
        for first in range(0, len(names), _STEP_RECORDS):
            step, trouble = await _part(names[first : first + _STEP_RECORDS], place, client)
            yield step
            if trouble:
                break
        names = trouble or await _names(place, client)
    if isinstance(names, HarvestEnd):
        yield HarvestStep(state=state_of(place), end=names)
    else:
        place.total = place.offset
        yield HarvestStep(state=state_of(place), end=read_to_the_end(place))


async def _names(place: Position, client: PoliteClient) -> list[str] | HarvestEnd:
    """Return the names from the offset on; a CKAN that knows no limit gives all of them at once."""
    url = f"{place.root}api/3/action/package_list?limit={_NAMES}&offset={place.offset}"
    names: list[str] | HarvestEnd = await ask_json(place, client, url, _NAMES_OF, "CKAN")
    return names if isinstance(names, HarvestEnd) or len(names) <= _NAMES else names[place.offset :]


async def _part(
    names: list[str], place: Position, client: PoliteClient
) -> tuple[HarvestStep, HarvestEnd | None]:
    records: list[MappedRecord] = []
    problems: list[Problem] = []
    trouble: HarvestEnd | None = None
    for name in names:
        shown = await _shown(name, place, client)
        if isinstance(shown, HarvestEnd) and (shown.retry_after_ms or place.lost >= MOST_FAULTS):
            trouble = shown
            break
        place.offset += 1
        if isinstance(shown, MappedRecord):
            records.append(shown)
            place.taken += 1
        else:
            place.lost += 1
            problems.append(Problem(shown.reason))
    return HarvestStep(
        state=state_of(place), findings=[*described(records, place.root, pages=False), *problems]
    ), trouble


async def _shown(name: str, place: Position, client: PoliteClient) -> MappedRecord | HarvestEnd:
    url = f"{place.root}api/3/action/package_show?id={quote(name, safe='')}"
    shown: MappedRecord | HarvestEnd = await ask_json(
        place, client, url, lambda body: map_record(MAPPING, bytes(_PACKAGE(body)), place.root), "CKAN"
    )
    return shown
