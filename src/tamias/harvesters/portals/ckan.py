"""Harvester for CKAN: its action API by pages, one by one where that fails, its catalogue files otherwise."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import msgspec

from tamias.harvesters.kit.paging import BAD, MOST_PAGE, RecordPage, opening, place_of, read_listing
from tamias.harvesters.kit.position import Position
from tamias.harvesters.kit.ways import in_turn, roots, through
from tamias.harvesters.portals.ckan_names import read_one_by_one
from tamias.harvesters.portals.ckan_record import dataset_of
from tamias.harvesters.portals.data_json import DataJsonHarvester
from tamias.harvesters.portals.dcat import CatalogueHarvester
from tamias.model.capture import Request
from tamias.model.dataset import Dataset
from tamias.model.harvest import Harvest, HarvestStep
from tamias.protocols import PoliteClient

PAGE_RECORDS = 1000
"""What CKAN gives at the most, unless its operator allows more."""
_INNER = ("api", "dataset", "organization", "group", "data.json", "catalog.ttl")


class _Result(msgspec.Struct):
    count: int
    results: list[msgspec.Raw]


class _CkanAnswer(msgspec.Struct):
    success: bool
    result: _Result


class _CkanSite(msgspec.Struct):
    site_title: str | None = None


class _Status(msgspec.Struct):
    result: _CkanSite


class _CkanKey(msgspec.Struct):
    id: str


class CkanListing:
    """`package_search`, in the order of identifiers."""

    name = "CKAN"
    largest = PAGE_RECORDS
    any_offset = True
    deepest: int | None = None

    def address(self, place: Position, start: int, size: int) -> tuple[str, int]:
        query = f"rows={size}&start={start}&sort={quote('id asc')}"
        return f"{place.root}api/3/action/package_search?{query}", start

    def page(self, body: bytes) -> RecordPage:
        answer = msgspec.json.decode(body, type=_CkanAnswer)
        if not answer.success:
            raise ValueError("success is false")
        return RecordPage(answer.result.results, answer.result.count)

    def key(self, record: msgspec.Raw) -> str:
        return msgspec.json.decode(record, type=_CkanKey).id

    def dataset(self, record: dict[str, Any], root: str) -> Dataset:
        return dataset_of(record, root)


class CkanHarvester:
    """Harvests a CKAN portal.

    The action API is read by pages; if it has no search, by names. If robots.txt forbids the API, as CKAN's
    own does, the portal's data.json is read instead, then its catalog.ttl.
    """

    kinds = frozenset({"ckan"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        place = place_of(harvest.state)
        if place is None:
            place = await _found(harvest.url, client)
            yield opening(place)
        root = place.root
        ways = {
            "search": lambda: read_listing(CkanListing(), place, client),
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
            status = msgspec.json.decode(client.body(capture, MOST_PAGE), type=_Status).result
        except BAD:
            continue
        return Position(root=root, size=PAGE_RECORDS, title=status.site_title or "", requests=asked)
    return Position(root=candidates[0], size=PAGE_RECORDS, requests=len(candidates))
