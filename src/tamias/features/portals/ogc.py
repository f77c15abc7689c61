"""Harvester for OGC API Records and STAC APIs: collections, then the items of each, page by page.

Both are the same protocol: a list of collections, and pages of GeoJSON features that name the next one.
"""

from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from tamias.features.dcat.datasets.mapping import RecordMapping
from tamias.features.dcat.datasets.records import MOST_PAGE, count, failure, table, tables, text
from tamias.features.portals.paging.listing import ChangeOrder, PortalListing, RecordPage
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.ways import Portal
from tamias.features.portals.records.ogc import RECORDS_MAPPING, STAC_MAPPING, record_name
from tamias.model.capture import Request
from tamias.model.finding import HarvestEnd
from tamias.protocols import PoliteClient

PAGE_RECORDS = 100
_ACCEPT = "application/geo+json, application/json;q=0.9"


async def _find(url: str, client: PoliteClient) -> Position | HarvestEnd:
    """Read the landing page: the catalogue's title."""
    parts = urlsplit(url)
    path = parts.path.partition("/collections")[0].rstrip("/") + "/"
    place = Position(root=urlunsplit((parts.scheme, parts.netloc, path, "", "")), requests=1)
    capture = await client.ask(Request(url=f"{place.root}?f=json", accept="application/json"))
    if (end := failure(capture, "the catalogue at")) and end.retry:
        return end
    try:
        landing = msgspec.json.decode(client.body(capture, MOST_PAGE), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        landing = {}
    place.title = text(landing.get("title")) or ""
    return place


def _address(of_items: str, sorting: str, place: Position, _start: int, _size: int) -> tuple[str, int]:
    if place.next:
        return place.next, place.first
    if not place.collection:
        return f"{place.root}collections?f=json&limit={PAGE_RECORDS}", place.first
    name, form = quote(place.collection, safe=""), of_items + (f"&sortby={sorting}" if place.since else "")
    return f"{place.root}collections/{name}/items?limit={PAGE_RECORDS}{form}", place.first


def _page(is_stac: bool, body: bytes) -> RecordPage:
    page = table(msgspec.json.decode(body))
    if "collections" not in page:
        found = tables(page.get("features"))
        return RecordPage(found, count(page.get("numberMatched")), _following(page) if found else "")
    found = tables(page["collections"])
    lists = [each for each in found if is_stac or text(each.get("itemType")) in ("record", "catalog")]
    names = list(filter(None, (text(each.get("id")) for each in lists)))
    # Collections of features that are data are themselves records, and so are all of STAC.
    records = found if is_stac else [each for each in found if each not in lists]
    return RecordPage(records, len(records), _following(page) if found else "", names)


def _following(page: dict[str, Any]) -> str:
    """Return the address of the next page, by GET."""
    for link in tables(page.get("links")):
        if text(link.get("rel")) == "next" and (text(link.get("method")) or "GET") == "GET":
            return text(link.get("href")) or ""
    return ""


def _key(record: dict[str, Any]) -> str:
    if text(record.get("id")) is None:
        raise ValueError("it has no identifier")
    return record_name(record)


def _stamp(record: dict[str, Any]) -> str | None:
    return text(table(record.get("properties")).get("updated"))


def _listing(name: str, mapping: RecordMapping, of_items: str, sorting: str) -> PortalListing:
    address = partial(_address, of_items, sorting)
    return PortalListing(
        name=name,
        mapping=mapping,
        address=address,
        page=partial(_page, mapping is STAC_MAPPING),
        key=_key,
        accept=_ACCEPT,
        order=ChangeOrder("updated", _stamp, address),
        ordered=False,
        is_linked=True,
        pages=True,
    )


# Servers of STAC refuse parameters that they do not know; those of pygeoapi answer HTML without `f`.
STAC = _listing("STAC", STAC_MAPPING, "", "-properties.updated")
RECORDS = _listing("OGC API Records", RECORDS_MAPPING, "&f=json", "-updated")
OgcRecordsHarvester = partial(Portal, "ogc-records", _find, {"": RECORDS})
StacHarvester = partial(Portal, "stac", _find, {"": STAC})
