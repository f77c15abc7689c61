"""Harvester for DKAN: all items of its metastore in one answer, or its data.json."""

from functools import partial
from typing import Any, Final

import msgspec

from tamias.features.dcat.datasets.mapping import RecordMapping
from tamias.features.dcat.datasets.records import text
from tamias.features.portals.data_json import DataJsonHarvester
from tamias.features.portals.paging.listing import PortalListing, RecordPage, json_at
from tamias.features.portals.paging.ways import CatalogueFile, Portal, Ways, at_root
from tamias.features.portals.records import pod
from tamias.model.dataset import Dataset
from tamias.model.vocabulary import sound_iri


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


def _page(body: bytes) -> RecordPage:
    records = msgspec.json.decode(body, type=list[msgspec.Raw])
    return RecordPage(records, len(records))


MAPPING: Final = RecordMapping("dkan", dataset_of, pod.DROPPED)
LISTING: Final = PortalListing(
    name="DKAN",
    mapping=MAPPING,
    address=lambda place, _start, _size: (f"{place.root}api/1/metastore/schemas/dataset/items", 0),
    page=_page,
    key=json_at("identifier"),
    any_offset=False,
    ordered=False,
    is_file=True,
)
"""Every dataset of the metastore of version 2; it has no pages."""
WAYS: Final[Ways] = {"metastore": LISTING, "data.json": CatalogueFile("data.json", DataJsonHarvester)}
DkanHarvester = partial(Portal, "dkan", at_root("api", "dataset", "data.json"), WAYS)
