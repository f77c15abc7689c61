"""Harvester for DKAN: all items of its metastore in one answer, or its data.json."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import msgspec

from tamias.features.dcat.datasets.mapping import RecordMapping
from tamias.features.dcat.datasets.records import text
from tamias.features.portals.data_json import DataJsonHarvester
from tamias.features.portals.paging.changes import ListedPortal, at_root
from tamias.features.portals.paging.listing import PortalListing, json_at
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.validators import read_file_listing
from tamias.features.portals.paging.ways import in_turn, through
from tamias.features.portals.records import pod
from tamias.model.dataset import Dataset
from tamias.model.finding import HarvestStep
from tamias.model.vocabulary import sound_iri
from tamias.protocols import PoliteClient


def _read(place: Position, client: PoliteClient, bookmark: bytes | None) -> AsyncIterator[HarvestStep]:
    """Read version 2 by its metastore, any other by its data.json."""
    file = f"{place.root}data.json"
    return in_turn(
        place,
        {
            "metastore": lambda: read_file_listing(LISTING, place, client, bookmark),
            "data.json": lambda: through(DataJsonHarvester(), file, "data-json", place, client, bookmark),
        },
    )


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
DkanHarvester = partial(ListedPortal, "dkan", at_root(1, "api", "dataset", "data.json", ordered=False), _read)
