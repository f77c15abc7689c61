"""Harvester for udata, which data.gouv.fr and its kin run: `/api/1/datasets/`, page after page."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from tamias.features.dcat.datasets.mapping import RecordMapping
from tamias.features.dcat.datasets.records import TITLES, checksum, table, tables, text
from tamias.features.portals.fields import Fields, each_of, terms
from tamias.features.portals.paging.listing import PortalListing, ask_json, json_at, json_page
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.ways import Portal, roots
from tamias.features.portals.records.ckan import service_kind
from tamias.model.dataset import Agent, AgentRole, Dataset, DcatProperty, Distribution, Period
from tamias.protocols import PoliteClient

PAGE_RECORDS = 100
_ROLES: Final = {
    "creator": "dct:creator",
    "contributor": "dct:contributor",
    "publisher": "dct:contributor",
    "contact": "dcat:contactPoint",
}


def _address(place: Position, start: int, size: int) -> tuple[str, int]:
    """The oldest first, so that new datasets come at the end. A page begins at multiples of its size."""
    number = start // size
    return f"{place.root}api/1/datasets/?sort=created&page={number + 1}&page_size={size}", number * size


async def _find(url: str, client: PoliteClient) -> Position:
    """Return the beginning of the listing, with the portal's title if it has one."""
    place = Position(root=roots(url)[-1])
    read = json_at("title", needed=False)
    title = await ask_json(place, client, f"{place.root}api/1/site/", read, "udata")
    place.title = title if isinstance(title, str) else ""
    return place


def _name(person: dict[str, Any], _: Mapping[str, str]) -> str | None:
    return " ".join(filter(None, (text(person.get("first_name")), text(person.get("last_name"))))) or None


def _file(resource: dict[str, Any], _: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a service and of a checksum."""
    url, digest = text(resource.get("url")) or "", table(resource.get("checksum"))
    kind = service_kind(text(resource.get("format")), url)
    service = {"service": url, "service_kind": kind} if kind else {}
    return checksum(text(digest.get("type")), text(digest.get("value"))) | service


def _hvd(record: dict[str, Any], _: Mapping[str, str]) -> list[DcatProperty]:
    """Return the regulation of high-value datasets for one that has their badge."""
    kinds = [text(each.get("kind")) for each in tables(record.get("badges"))]
    return [DcatProperty("dcatap:applicableLegislation", _HVD)] if "hvd" in kinds else []


_HVD: Final = "http://data.europa.eu/eli/reg_impl/2023/138/oj"
_DATASET: Final = Fields(
    Dataset,
    iri="{root}datasets/{id}/", record="id", title="title id", description="description",
    identifiers="id harvest.dct_identifier", keywords="tags", landing_page="page>web {root}datasets/{id}/",
    licence="license",
    publisher=(
        Fields(Agent, "organization", name="name", iri="{root}organizations/{id}/", homepage="page"),
        Fields(Agent, "owner", name=_name, iri="{root}users/{id}/"),
    ),
    issued="harvest.issued_at harvest.created_at created_at", modified="last_update last_modified",
    record_issued="internal.created_at_internal created_at",
    record_modified="internal.last_modified_internal last_modified", frequency="frequency",
    # A zone by its code, which is a name only udata knows.
    spatial=("spatial.geom>shape", each_of("spatial.zones", ">text name")),
    temporal=Fields(Period, "temporal_coverage", start="start", end="end"),
    agents=Fields(
        AgentRole,
        "contact_points",
        property=lambda said, _: _ROLES.get(text(said.get("role")) or "", "dcat:contactPoint"),
        agent=Fields(Agent, name="name email", email="email", homepage="contact_form"),
    ),
    distributions=Fields(
        Distribution,
        "resources",
        also=_file,
        url="url",
        iri="{root}datasets/{key}/#/resources/{id}",
        access_only=lambda said, _: text(said.get("type")) == "documentation",
        title="title",
        description="description",
        media_type="mime",
        format="format",
        byte_size="filesize",
        issued="created_at published",
        modified="last_modified",
        conforms_to="schema.url",
        more=terms(TITLES),
    ),
    more=(terms({**TITLES, "tags": "dcat:keyword"}, {"acronym": "dct:alternative"}), _hvd),
)  # fmt: skip


def dataset_of(record: dict[str, Any], root: str) -> Dataset:
    """Read a dataset of the API. Raise `ValueError` for one without identifier."""
    return _DATASET.of(record, root, key=text(record.get("id")) or "")


MAPPING: Final = RecordMapping(
    "udata",
    dataset_of,
    dropped={
        "uri": "the address in the API, which the record's identifier gives",
        "resources.latest": "a redirect of the portal to the address that is kept",
        "community_resources.latest": "a redirect of the portal to the address that is kept",
        "resources.preview_url": "a page of the portal that the address that is kept leads to",
    },
    volatile={
        "metrics": "views, followers and reuses, counted by the portal",
        "resources.metrics": "views, counted by the portal",
        "community_resources.metrics": "views, counted by the portal",
        "organization.metrics": "views, counted by the portal",
        "resources.extras.check:date": "when the portal last checked the file",
        "harvest.last_update": "when the portal last harvested the record",
    },
)

LISTING: Final = PortalListing(
    name="udata",
    mapping=MAPPING,
    address=_address,
    page=json_page("data", "total"),
    largest=PAGE_RECORDS,
    any_offset=False,
    ordered=False,
)
UdataHarvester = partial(Portal, "udata", _find, {"": LISTING})
