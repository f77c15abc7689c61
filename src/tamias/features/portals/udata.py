"""Harvester for udata, which data.gouv.fr and its kin run: `/api/1/datasets/`, page after page."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import msgspec

from tamias.features.portals.paging.changes import ListedPortal, read_changes_or_all
from tamias.features.portals.paging.listing import PortalListing, ask_json, json_at
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.ways import roots
from tamias.features.portals.records.ckan import service_kind
from tamias.harvesters.mapping import RecordMapping, plain
from tamias.harvesters.records import (
    TITLES,
    agent,
    checksum,
    count,
    one_text,
    properties,
    table,
    tables,
    text,
    texts,
    web,
)
from tamias.model.dataset import Agent, AgentRole, Dataset, Distribution, Period
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
    place = Position(root=roots(url)[-1], size=PAGE_RECORDS, ordered=False)
    read = json_at("title", needed=False)
    title = await ask_json(place, client, f"{place.root}api/1/site/", read, "udata")
    place.title = title if isinstance(title, str) else ""
    return place


def dataset_of(record: dict[str, Any], root: str) -> Dataset:
    """Read a dataset of the API."""
    key = text(record.get("id")) or ""
    page = web(record.get("page")) or f"{root}datasets/{key}/"
    harvest, inside = table(record.get("harvest")), table(record.get("internal"))
    coverage = table(record.get("temporal_coverage"))
    return Dataset(
        iri=f"{root}datasets/{key}/",
        record=key,
        title=one_text(record.get("title")) or key,
        description=one_text(record.get("description")),
        identifiers=texts([key, text(harvest.get("dct_identifier"))]),
        keywords=texts(record.get("tags")),
        landing_page=page,
        licence=text(record.get("license")),
        publisher=_publisher(record, root),
        issued=text(harvest.get("issued_at"))
        or text(harvest.get("created_at"))
        or text(record.get("created_at")),
        modified=text(record.get("last_update")) or text(record.get("last_modified")),
        record_issued=text(inside.get("created_at_internal")) or text(record.get("created_at")),
        record_modified=text(inside.get("last_modified_internal")) or text(record.get("last_modified")),
        frequency=text(record.get("frequency")),
        spatial=tuple(_places(table(record.get("spatial")))),
        temporal=(Period(text(coverage.get("start")), text(coverage.get("end"))),) if coverage else (),
        distributions=tuple(_distributions(record, key, root)),
        agents=tuple(_contacts(record)),
        more=tuple(properties(record, {**TITLES, "tags": "dcat:keyword"}, {"acronym": "dct:alternative"})),
    )


def _publisher(record: dict[str, Any], root: str) -> Agent | None:
    """The organisation; without one the person whose it is."""
    organisation, owner = table(record.get("organization")), table(record.get("owner"))
    if name := text(organisation.get("name")):
        iri = f"{root}organizations/{text(organisation.get('id'))}/" if text(organisation.get("id")) else None
        return Agent(name=name, iri=iri, homepage=web(organisation.get("page")))
    names = [text(owner.get("first_name")), text(owner.get("last_name"))]
    name = " ".join(each for each in names if each)
    key = text(owner.get("id"))
    return Agent(name=name, iri=f"{root}users/{key}/" if key else None) if name else None


def _contacts(record: dict[str, Any]) -> Iterator[AgentRole]:
    for each in tables(record.get("contact_points")):
        role = _ROLES.get(text(each.get("role")) or "", "dcat:contactPoint")
        page = web(each.get("contact_form"))
        if found := agent(text(each.get("name")), text(each.get("email")), homepage=page):
            yield AgentRole(property=role, agent=found)


def _places(spatial: dict[str, Any]) -> Iterator[str]:
    """A geometry as GeoJSON text; a zone by its code, which is a name only udata knows."""
    if geometry := table(spatial.get("geom")):
        yield msgspec.json.encode(plain(geometry)).decode()
    for zone in spatial.get("zones") or () if isinstance(spatial.get("zones"), list) else ():
        if word := text(zone) or text(table(zone).get("name")):
            yield word


def _distributions(record: dict[str, Any], key: str, root: str) -> Iterator[Distribution]:
    for resource in tables(record.get("resources")):
        url = text(resource.get("url"))
        if url is None:
            continue
        form, own = text(resource.get("format")), text(resource.get("id"))
        kind = service_kind(form, url)
        digest = table(resource.get("checksum"))
        yield Distribution(
            url=url,
            iri=f"{root}datasets/{key}/#/resources/{own}" if own else None,
            access_only=text(resource.get("type")) == "documentation",
            title=one_text(resource.get("title")),
            description=one_text(resource.get("description")),
            media_type=text(resource.get("mime")),
            format=form,
            byte_size=count(resource.get("filesize")),
            **checksum(text(digest.get("type")), text(digest.get("value"))),
            issued=text(resource.get("created_at")) or text(resource.get("published")),
            modified=text(resource.get("last_modified")),
            conforms_to=texts(table(resource.get("schema")).get("url")),
            service=url if kind else None,
            service_kind=kind,
            more=tuple(properties(resource, TITLES)),
        )


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
    records=json_at("data", list[msgspec.Raw]),
    total=json_at("total", int, needed=False),
    largest=PAGE_RECORDS,
    any_offset=False,
)
UdataHarvester = partial(ListedPortal, "udata", _find, partial(read_changes_or_all, LISTING))
