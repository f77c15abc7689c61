"""Harvester for DKAN: all items of its metastore in one answer, or its data.json."""

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from tamias.harvesters.kit import pod
from tamias.harvesters.kit.mapping import RecordMapping
from tamias.harvesters.kit.paging import PortalListing, json_at, opening, place_of
from tamias.harvesters.kit.position import Position
from tamias.harvesters.kit.records import text
from tamias.harvesters.kit.terms import sound_iri
from tamias.harvesters.kit.validators import read_file_listing
from tamias.harvesters.kit.ways import in_turn, roots, through
from tamias.harvesters.portals.data_json import DataJsonHarvester
from tamias.model.dataset import Dataset
from tamias.model.finding import Harvest, HarvestStep
from tamias.protocols import PoliteClient


class DkanHarvester:
    """Harvests a DKAN portal: version 2 by its metastore, any other by its data.json."""

    kinds = frozenset({"dkan"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        place = place_of(harvest.state)
        if place is None:
            place = Position(root=roots(harvest.url, "api", "dataset", "data.json")[0], size=1, ordered=False)
            yield opening(place)
        file, known = f"{place.root}data.json", None if harvest.state else harvest.bookmark
        ways = {
            "metastore": lambda: read_file_listing(LISTING, place, client, known),
            "data.json": lambda: through(DataJsonHarvester(), file, "data-json", place, client, known),
        }
        async for step in in_turn(place, ways):
            yield step


def dataset_of(record: dict[str, Any], root: str) -> Dataset:
    """A Project Open Data record; its page is the portal's own where it names no other."""
    found = pod.dataset_of(record, root)
    page = f"{root}dataset/{found.record}"
    return msgspec.structs.replace(
        found,
        iri=found.record if sound_iri(found.record, web=True) else page,
        landing_page=found.landing_page or page,
        record_modified=text(record.get("%modified")),
    )


MAPPING: Final = RecordMapping("dkan", dataset_of, pod.DROPPED)
LISTING: Final = PortalListing(
    name="DKAN",
    mapping=MAPPING,
    address=lambda place, _start, _size: (f"{place.root}api/1/metastore/schemas/dataset/items", 0),
    records=msgspec.json.Decoder(list[msgspec.Raw]).decode,
    key=json_at("identifier"),
    any_offset=False,
)
"""Every dataset of the metastore; it has no pages."""
