"""Harvester for Socrata: its discovery API for one domain, and the exports that each dataset has."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tamias.harvesters.kit.changes import read_changes_or_all
from tamias.harvesters.kit.mapping import RecordMapping
from tamias.harvesters.kit.paging import ChangeOrder, PortalListing, RecordPage, opening, place_of
from tamias.harvesters.kit.position import Position, place_after
from tamias.harvesters.kit.records import in_languages, one_text, table, tables, text, texts
from tamias.harvesters.kit.ways import roots
from tamias.model.dataset import Agent, Dataset, Distribution
from tamias.model.finding import Harvest, HarvestStep
from tamias.model.url import authority
from tamias.protocols import PoliteClient

PAGE_RECORDS = 1000
DEEPEST_OFFSET = 10_000

_EXPORTS: Final = {
    "csv": "text/csv",
    "json": "application/json",
    "rdf": "application/rdf+xml",
}


class _SocrataAnswer(msgspec.Struct):
    results: list[msgspec.Raw]
    resultSetSize: int | None = None  # noqa: N815 (their name)


class _Resource(msgspec.Struct):
    id: str


class _SocrataKey(msgspec.Struct):
    resource: _Resource


class SocrataListing(PortalListing):
    """`/api/catalog/v1` in the order of identifiers: by offset, and behind its limit by `scroll_id`."""

    name = "Socrata"
    largest = PAGE_RECORDS
    deepest = DEEPEST_OFFSET

    @property
    def mapping(self) -> RecordMapping:
        return MAPPING

    def address(self, place: Position, start: int, size: int) -> tuple[str, int]:
        where = _where(place)
        if place.window:
            return f"{where}&limit={place.size}&scroll_id={place.after}", 0
        return f"{where}&order=dataset_id&limit={size}&offset={start}", start

    def page(self, body: bytes) -> RecordPage:
        answer = msgspec.json.decode(body, type=_SocrataAnswer)
        return RecordPage(answer.results, answer.resultSetSize)

    def key(self, record: msgspec.Raw) -> str:
        return msgspec.json.decode(record, type=_SocrataKey).resource.id

    @property
    def order(self) -> ChangeOrder:
        return _ORDER


def _latest_first(place: Position, start: int, size: int) -> tuple[str, int]:
    return f"{_where(place)}&order={quote('updatedAt DESC')}&limit={size}&offset={start}", start


def _where(place: Position) -> str:
    domain = authority(place.root).partition("://")[2]
    return f"{place.root}api/catalog/v1?domains={domain}&search_context={domain}&only=dataset"


class _Updated(msgspec.Struct):
    updatedAt: str | None = None  # noqa: N815 (their name)


class _SocrataStamp(msgspec.Struct):
    resource: _Updated


_ORDER: Final = ChangeOrder(
    "updatedAt",
    _latest_first,
    lambda record: msgspec.json.decode(record, type=_SocrataStamp).resource.updatedAt,
)


class SocrataHarvester:
    """Harvests a Socrata portal."""

    kinds = frozenset({"socrata"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        place = place_of(harvest.state)
        if place is None:
            fresh = Position(root=roots(harvest.url)[-1], size=PAGE_RECORDS)
            place = place_after(harvest.bookmark) or fresh
            yield opening(place)
        async for step in read_changes_or_all(SocrataListing(), place, client):
            yield step


def dataset_of(record: dict[str, Any], root: str) -> Dataset:
    """One result of the catalogue as a dataset."""
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
        contact=_contact(text(resource.get("contact_email"))),
        issued=text(resource.get("publication_date")) or text(resource.get("createdAt")),
        modified=text(resource.get("data_updated_at")) or text(resource.get("updatedAt")),
        record_issued=text(resource.get("createdAt")),
        record_modified=text(resource.get("metadata_updated_at")) or text(resource.get("updatedAt")),
        frequency=_first(said, "update frequency", "frequency", "posting frequency"),
        spatial=texts(_first(said, "geographic coverage", "coverage")),
        provenance=text(resource.get("provenance")),
        distributions=tuple(_exports(key, root)),
        more=(
            *in_languages(resource, "name", "dct:title"),
            *in_languages(resource, "description", "dct:description"),
        ),
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
    """Whom the data are attributed to, else the account that owns them."""
    resource, owner = table(record.get("resource")), table(record.get("owner"))
    if name := text(resource.get("attribution")):
        return Agent(name=name, homepage=text(resource.get("attribution_link")))
    name, key = text(owner.get("display_name")), text(owner.get("id"))
    return Agent(name=name, iri=f"{root}profile/{key}" if key else None) if name else None


def _contact(email: str | None) -> Agent | None:
    return Agent(name=email, email=email) if email else None


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
