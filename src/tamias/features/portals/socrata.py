"""Harvester for Socrata: its discovery API for one domain, and the exports that each dataset has."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tamias.features.portals.paging.changes import ListedPortal, at_root, read_changes_or_all
from tamias.features.portals.paging.listing import ChangeOrder, PortalListing, json_at
from tamias.features.portals.paging.position import Position
from tamias.harvesters.mapping import RecordMapping
from tamias.harvesters.records import agent, one_text, properties, table, tables, text, texts
from tamias.model.dataset import Agent, Dataset, Distribution
from tamias.model.url import authority

PAGE_RECORDS = 1000
DEEPEST_OFFSET = 10_000

_EXPORTS: Final = {
    "csv": "text/csv",
    "json": "application/json",
    "rdf": "application/rdf+xml",
}


def _address(place: Position, start: int, size: int) -> tuple[str, int]:
    """Return a page in the order of identifiers: by offset, and behind its limit by `scroll_id`."""
    if place.window:
        return f"{_where(place)}&limit={place.size}&scroll_id={place.after}", 0
    return f"{_where(place)}&order=dataset_id&limit={size}&offset={start}", start


def _latest_first(place: Position, start: int, size: int) -> tuple[str, int]:
    return f"{_where(place)}&order={quote('updatedAt DESC')}&limit={size}&offset={start}", start


def _where(place: Position) -> str:
    domain = authority(place.root).partition("://")[2]
    return f"{place.root}api/catalog/v1?domains={domain}&search_context={domain}&only=dataset"


def dataset_of(record: dict[str, Any], root: str) -> Dataset:
    """Read a result of the catalogue as a dataset."""
    resource, classes = table(record.get("resource")), table(record.get("classification"))
    key = text(resource["id"]) or ""
    page = text(record.get("permalink")) or f"{root}d/{key}"
    said = _said(classes)
    return Dataset(
        iri=page,
        record=key,
        title=one_text(resource.get("name")) or key,
        description=one_text(resource.get("description")),
        identifiers=(key,),
        keywords=texts([*texts(classes.get("domain_tags")), *texts(classes.get("tags"))]),
        groups=texts([*texts(classes.get("domain_category")), *texts(classes.get("categories"))]),
        landing_page=text(record.get("link")) or page,
        licence=text(table(record.get("metadata")).get("license")),
        publisher=_publisher(record, root),
        contact=agent(None, text(resource.get("contact_email"))),
        issued=text(resource.get("publication_date")) or text(resource.get("createdAt")),
        modified=text(resource.get("data_updated_at")) or text(resource.get("updatedAt")),
        record_issued=text(resource.get("createdAt")),
        record_modified=text(resource.get("metadata_updated_at")) or text(resource.get("updatedAt")),
        frequency=_first(said, "update frequency", "frequency", "posting frequency"),
        spatial=texts(_first(said, "geographic coverage", "coverage")),
        provenance=text(resource.get("provenance")),
        distributions=tuple(_exports(key, root)),
        more=tuple(properties(resource, {"name": "dct:title", "description": "dct:description"})),
    )


def _said(classes: dict[str, Any]) -> dict[str, str]:
    """The portal's own fields, whose names begin with a group's: `Dataset-Information_Update-Frequency`."""
    pairs = (
        (text(each.get("key")), text(each.get("value"))) for each in tables(classes.get("domain_metadata"))
    )
    return {
        name.rpartition("_")[2].replace("-", " ").lower(): value for name, value in pairs if name and value
    }


def _first(said: dict[str, str], *names: str) -> str | None:
    return next((said[name] for name in names if name in said), None)


def _publisher(record: dict[str, Any], root: str) -> Agent | None:
    """Return the agent of the attribution, else the account that owns the data."""
    resource, owner = table(record.get("resource")), table(record.get("owner"))
    if name := text(resource.get("attribution")):
        return Agent(name=name, homepage=text(resource.get("attribution_link")))
    key = text(owner.get("id"))
    return agent(text(owner.get("display_name")), iri=f"{root}profile/{key}" if key else None)


def _exports(key: str, root: str) -> Iterator[Distribution]:
    for ending, kind in _EXPORTS.items():
        url = f"{root}api/views/{key}/rows.{ending}?accessType=DOWNLOAD"
        yield Distribution(url=url, title=ending.upper(), media_type=kind, format=ending.upper())


MAPPING: Final = RecordMapping(
    "socrata",
    dataset_of,
    volatile={
        "resource.page_views": "views, counted by the portal",
        "resource.download_count": "downloads, counted by the portal",
    },
)

LISTING: Final = PortalListing(
    name="Socrata",
    mapping=MAPPING,
    address=_address,
    records=json_at("results", list[msgspec.Raw]),
    total=json_at("resultSetSize", int, needed=False),
    key=json_at("resource.id"),
    order=ChangeOrder("updatedAt", _latest_first, json_at("resource.updatedAt", needed=False)),
    largest=PAGE_RECORDS,
    deepest=DEEPEST_OFFSET,
)
SocrataHarvester = partial(
    ListedPortal, "socrata", at_root(PAGE_RECORDS, is_top=True), partial(read_changes_or_all, LISTING)
)
