"""Harvester for CKAN: its action API by pages, one by one where that fails, its catalogue files otherwise."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tamias.harvesters.kit.changes import read_changes
from tamias.harvesters.kit.mapping import MappedRecord, map_record
from tamias.harvesters.kit.paging import (
    BAD,
    MOST_DATASETS,
    AddressOf,
    ChangeOrder,
    PortalListing,
    found,
    json_at,
    opening,
    place_of,
    read_listing,
    state_of,
)
from tamias.harvesters.kit.position import Position, place_after, read_to_the_end
from tamias.harvesters.kit.records import MOST_PAGE, failure
from tamias.harvesters.kit.ways import in_turn, roots, through
from tamias.harvesters.portals.ckan_records import MAPPING
from tamias.harvesters.portals.data_json import DataJsonHarvester
from tamias.harvesters.portals.dcat import CatalogueHarvester
from tamias.model.capture import Outcome, Request
from tamias.model.finding import Deleted, Harvest, HarvestEnd, HarvestStep, Present, Problem
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


class CkanHarvester:
    """Harvests a CKAN portal.

    The action API is read by pages; if it has no search, by names. If robots.txt forbids the API, as CKAN's
    own does, the portal's data.json is read instead, then its catalog.ttl.
    """

    kinds = frozenset({"ckan"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        place = place_of(harvest.state)
        if place is None:
            place = place_after(harvest.bookmark) or await _found(harvest.url, client)
            yield opening(place)
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


async def _found(url: str, client: PoliteClient) -> Position:
    """The portal's root and title, as its status tells; without one, the likeliest root."""
    candidates = roots(url, *_INNER)
    for asked, root in enumerate(candidates, 1):
        capture = await client.ask(Request(url=f"{root}api/3/action/status_show", accept="application/json"))
        try:
            status = _STATUS(client.body(capture, MOST_PAGE))
        except BAD:
            continue
        return Position(root=root, size=PAGE_RECORDS, title=status.get("site_title") or "", requests=asked)
    return Position(root=candidates[0], size=PAGE_RECORDS, requests=len(candidates))


class _Activity(msgspec.Struct):
    activity_type: str
    object_id: str
    timestamp: str = ""


_ACTIVITY: Final = json_at("result", list[_Activity])
_ACTIVITIES = 100
"""What CKAN tells of at the most, unless its operator allows more."""


async def _deletions(place: Position, client: PoliteClient) -> AsyncGenerator[Present | Deleted]:
    """What the stream of activities says was deleted; if that is not all of it, all identifiers."""
    url = f"{place.root}api/3/action/recently_changed_packages_activity_list?limit={_ACTIVITIES}"
    place.requests += 1
    capture = await client.ask(Request(url=url, accept="application/json"))
    try:
        activities = _ACTIVITY(client.body(capture, MOST_PAGE))
    except BAD:
        activities = []
    deleted = [each.object_id for each in activities if each.activity_type == "deleted package"]
    if deleted:
        place.way = "deletions by the activity stream"
        yield Deleted(deleted)
    if ids := await _all_ids(place, client):
        place.way = "deletions by a list of all identifiers"
        yield Present(ids)


async def _all_ids(place: Position, client: PoliteClient) -> list[str] | None:
    """The identifiers of all datasets, in their order; None where the list is not whole."""
    ids: dict[str, None] = {}
    while True:
        query = f"fl=id&rows={PAGE_RECORDS}&start={max(0, len(ids) - 1)}&sort={quote('id asc')}"
        place.requests += 1
        capture = await client.ask(Request(url=f"{place.root}{_SEARCH}?{query}", accept="application/json"))
        before, body = len(ids), client.body(capture, MOST_PAGE)
        try:
            ids |= dict.fromkeys(map(_IDENTIFIER, _RECORDS(body)))
            count = _COUNT(body)
        except BAD:
            return None
        if len(ids) == count:
            return list(ids)
        if len(ids) == before or len(ids) > MOST_DATASETS:
            return None


MOST_FAULTS = 100
_NAMES = 1000
_STEP_RECORDS = 20
"""Each costs a request, and so much is repeated at the most after a crash."""


async def read_one_by_one(place: Position, client: PoliteClient) -> AsyncIterator[HarvestStep]:
    """Every dataset of the list of names; the place's offset counts names."""
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
    """The names from the offset on; a CKAN that knows no limit gives all of them at once."""
    url = f"{place.root}api/3/action/package_list?limit={_NAMES}&offset={place.offset}"
    place.requests += 1
    capture = await client.ask(Request(url=url, accept="application/json"))
    if end := failure(capture, "CKAN"):
        return end
    try:
        names: list[str] = _NAMES_OF(client.body(capture, MOST_PAGE))
    except BAD as error:
        reason = f"CKAN {url}: not the JSON of a list of names ({error})"[:1000]
        return HarvestEnd(outcome=Outcome.FAILED, reason=reason)
    return names if len(names) <= _NAMES else names[place.offset :]


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
    return HarvestStep(state=state_of(place), findings=[*found(records, place.root), *problems]), trouble


async def _shown(name: str, place: Position, client: PoliteClient) -> MappedRecord | HarvestEnd:
    url = f"{place.root}api/3/action/package_show?id={quote(name, safe='')}"
    place.requests += 1
    capture = await client.ask(Request(url=url, accept="application/json"))
    if end := failure(capture, "CKAN"):
        return end
    try:
        raw = _PACKAGE(client.body(capture, MOST_PAGE))
        return map_record(MAPPING, bytes(raw), place.root)
    except BAD as error:
        reason = f"CKAN {place.root}: record {name!r} left out: {error}"[:1000]
        return HarvestEnd(outcome=Outcome.FAILED, reason=reason)
