"""Harvester for Socrata: its discovery API for one domain, and the exports that each dataset has."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from tamias.features.dcat.datasets.mapping import RecordMapping
from tamias.features.dcat.datasets.records import table, tables, text
from tamias.features.portals.fields import Fields, terms
from tamias.features.portals.paging.listing import ChangeOrder, PortalListing, json_at, json_page
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.ways import Portal, at_root
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


def _own(*names: str) -> Any:
    """Make a rule for the first of the portal's own fields; `Dataset-Information_Update-Frequency` is one."""

    def find(record: dict[str, Any], _: Mapping[str, str]) -> str | None:
        found = tables(table(record.get("classification")).get("domain_metadata"))
        pairs = [(text(each.get("key")), text(each.get("value"))) for each in found]
        said = {
            key.rpartition("_")[2].replace("-", " ").lower(): value for key, value in pairs if key and value
        }
        return next((said[name] for name in names if name in said), None)

    return find


_COVERAGE: Final = _own("geographic coverage", "coverage")


def _exports(_: dict[str, Any], context: Mapping[str, str]) -> Iterator[Distribution]:
    for ending, kind in _EXPORTS.items():
        url = f"{context['root']}api/views/{context['key']}/rows.{ending}?accessType=DOWNLOAD"
        yield Distribution(url=url, title=ending.upper(), media_type=kind, format=ending.upper())


_DATASET: Final = Fields(
    Dataset,
    iri="permalink {root}d/{key}", record="resource.id", title="resource.name resource.id",
    description="resource.description", identifiers="resource.id",
    keywords="classification.domain_tags classification.tags",
    groups="classification.domain_category classification.categories",
    landing_page="link permalink {root}d/{key}", licence="metadata.license",
    publisher=(
        Fields(Agent, "resource", name="attribution", homepage="attribution_link"),
        Fields(Agent, "owner", name="display_name", iri="{root}profile/{id}"),
    ),
    contact=Fields(Agent, "resource", name="contact_email", email="contact_email"),
    issued="resource.publication_date resource.createdAt",
    modified="resource.data_updated_at resource.updatedAt", record_issued="resource.createdAt",
    record_modified="resource.metadata_updated_at resource.updatedAt",
    frequency=_own("update frequency", "frequency", "posting frequency"),
    spatial=lambda record, context: filter(None, [_COVERAGE(record, context)]),
    provenance="resource.provenance",
    distributions=_exports,
    more=terms({"name": "dct:title", "description": "dct:description"}, path="resource"),
)  # fmt: skip


def dataset_of(record: dict[str, Any], root: str) -> Dataset:
    """Read a result of the catalogue as a dataset."""
    return _DATASET.of(record, root, key=text(table(record.get("resource"))["id"]) or "")


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
    page=json_page("results", "resultSetSize"),
    key=json_at("resource.id"),
    order=ChangeOrder("updatedAt", json_at("resource.updatedAt", needed=False), _latest_first),
    largest=PAGE_RECORDS,
    deepest=DEEPEST_OFFSET,
)
SocrataHarvester = partial(Portal, "socrata", at_root(is_top=True), {"": LISTING})
