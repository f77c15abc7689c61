"""Harvester for OpenDataSoft: the catalogue of its Explore API, and the exports that each dataset has."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final
from urllib.parse import quote

import msgspec

from tamias.harvesters.kit.changes import read_changes_or_all
from tamias.harvesters.kit.mapping import RecordMapping
from tamias.harvesters.kit.paging import ChangeOrder, PortalListing, RecordPage, opening, place_of
from tamias.harvesters.kit.position import Position, place_after
from tamias.harvesters.kit.records import in_languages, one_text, table, tables, text, texts
from tamias.harvesters.kit.terms import sound_iri
from tamias.harvesters.kit.ways import roots
from tamias.model.dataset import Agent, Dataset, DcatProperty, Distribution, Period
from tamias.model.finding import Harvest, HarvestStep
from tamias.protocols import PoliteClient

PAGE_RECORDS = 100
_TEXTS: Final = {"title": "dct:title", "description": "dct:description", "keyword": "dcat:keyword"}
DEEPEST_OFFSET = 10_000
_API: Final = "api/explore/v2.1/catalog/datasets"
_NO_DATE: Final = "~"
"""Sorts behind every date, as datasets without one do."""

_EXPORTS: Final = {
    "csv": ("text/csv", "CSV"),
    "json": ("application/json", "JSON"),
    "turtle": ("text/turtle", "RDF_TURTLE"),
}
_GEO_EXPORTS: Final = {"geojson": ("application/geo+json", "GEOJSON")}


class _ExploreAnswer(msgspec.Struct):
    results: list[msgspec.Raw]
    total_count: int | None = None


class _Default(msgspec.Struct):
    modified: str | None = None


class _Metas(msgspec.Struct):
    default: _Default = msgspec.field(default_factory=_Default)


class _ExploreKey(msgspec.Struct):
    dataset_id: str
    metas: _Metas = msgspec.field(default_factory=_Metas)


class OpenDataSoftListing(PortalListing):
    """The catalogue in the order of changes, so that a dataset that changes meanwhile comes once more.

    An offset may not pass 10,000: from there on it is counted anew from the last date. Datasets without a
    date stand behind all others, and cannot be reached then; the count at the end tells.
    """

    name = "OpenDataSoft"
    largest = PAGE_RECORDS - 1
    deepest = DEEPEST_OFFSET

    @property
    def mapping(self) -> RecordMapping:
        return MAPPING

    def address(self, place: Position, start: int, size: int) -> tuple[str, int]:
        order = quote("modified asc, dataset_id asc")
        size = min(size, PAGE_RECORDS)
        since = ""
        date = place.window.partition(" ")[0]
        if date and date != _NO_DATE:
            since = "&where=" + quote(f"modified >= date'{date}'")
        return f"{place.root}{_API}?order_by={order}&limit={size}&offset={start}{since}", start

    def page(self, body: bytes) -> RecordPage:
        answer = msgspec.json.decode(body, type=_ExploreAnswer)
        return RecordPage(answer.results, answer.total_count)

    def key(self, record: msgspec.Raw) -> str:
        found = msgspec.json.decode(record, type=_ExploreKey)
        return f"{found.metas.default.modified or _NO_DATE} {found.dataset_id}"

    @property
    def order(self) -> ChangeOrder:
        return _ORDER


def _latest_first(place: Position, start: int, size: int) -> tuple[str, int]:
    order = quote("metadata_processed desc")
    return f"{place.root}{_API}?order_by={order}&limit={min(size, PAGE_RECORDS)}&offset={start}", start


class _Processed(msgspec.Struct):
    metadata_processed: str | None = None


class _ProcessedMetas(msgspec.Struct):
    default: _Processed


class _ExploreStamp(msgspec.Struct):
    metas: _ProcessedMetas


_ORDER: Final = ChangeOrder(
    "metadata_processed",
    _latest_first,
    lambda record: msgspec.json.decode(record, type=_ExploreStamp).metas.default.metadata_processed,
)


class OpenDataSoftHarvester:
    """Harvests an OpenDataSoft portal."""

    kinds = frozenset({"opendatasoft"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        place = place_of(harvest.state)
        if place is None:
            root = roots(harvest.url, "api", "explore", "pages")[0]
            fresh = Position(root=root, size=OpenDataSoftListing.largest)
            place = place_after(harvest.bookmark) or fresh
            yield opening(place)
        async for step in read_changes_or_all(OpenDataSoftListing(), place, client):
            yield step


def dataset_of(record: dict[str, Any], root: str) -> Dataset:
    """One entry of the catalogue as a dataset."""
    key = text(record.get("dataset_id")) or ""
    metas = table(record.get("metas"))
    default, dcat = table(metas.get("default")), table(metas.get("dcat"))
    page = f"{root}explore/dataset/{quote(key, safe='')}/"
    return Dataset(
        iri=page,
        record=key,
        title=one_text(default.get("title")) or key,
        title_language=text(default.get("language")),
        description=one_text(default.get("description")),
        identifiers=texts([key, text(record.get("dataset_uid"))]),
        keywords=texts(default.get("keyword")),
        groups=texts(default.get("theme")),
        landing_page=page,
        licence=_address(default.get("license_url")) or text(default.get("license")),
        publisher=_agent(one_text(default.get("publisher"))),
        creator=_agent(text(dcat.get("creator"))),
        contact=_agent(text(dcat.get("contact_name")), text(dcat.get("contact_email"))),
        issued=text(dcat.get("issued")) or text(dcat.get("created")),
        modified=text(default.get("modified")),
        record_modified=text(default.get("metadata_processed")),
        frequency=text(dcat.get("accrualperiodicity")),
        language=texts(default.get("language")),
        spatial=texts([*texts(default.get("territory")), *texts(dcat.get("spatial"))]),
        temporal=tuple(_periods(dcat)),
        conforms_to=texts(dcat.get("conforms_to")),
        provenance=text(dcat.get("dataquality")),
        distributions=tuple(_distributions(record, key, root)),
        more=tuple(_properties(default)),
    )


def _properties(default: dict[str, Any]) -> Iterator[DcatProperty]:
    for field, name in _TEXTS.items():
        yield from in_languages(default, field, name)
    yield from (DcatProperty("dct:relation", each) for each in texts(default.get("references")))
    yield from (DcatProperty("dct:rights", each) for each in texts(default.get("attributions")))


def _address(value: Any) -> str | None:
    found = text(value)
    return found if sound_iri(found, web=True) else None


def _agent(name: str | None, email: str | None = None) -> Agent | None:
    return Agent(name=name or email or "", email=email) if name or email else None


def _periods(dcat: dict[str, Any]) -> Iterator[Period]:
    start = text(dcat.get("temporal_coverage_start")) or text(dcat.get("temporal"))
    end = text(dcat.get("temporal_coverage_end"))
    if start or end:
        yield Period(start, end)


def _distributions(record: dict[str, Any], key: str, root: str) -> Iterator[Distribution]:
    if record.get("has_records") is not False:
        exports = _EXPORTS | (_GEO_EXPORTS if "geo" in texts(record.get("features")) else {})
        for ending, (kind, form) in exports.items():
            url = f"{root}{_API}/{quote(key, safe='')}/exports/{ending}"
            yield Distribution(url=url, title=ending, media_type=kind, format=form)
    for each in [*tables(record.get("attachments")), *tables(record.get("alternative_exports"))]:
        if address := _address(each.get("url")):
            yield Distribution(
                url=address,
                title=text(each.get("title")),
                description=text(each.get("description")),
                media_type=text(each.get("mimetype")),
            )


MAPPING: Final = RecordMapping(
    "opendatasoft",
    dataset_of,
    volatile={
        "metas.explore": "downloads, calls and popularity, counted by the portal",
        "metas.default.metadata_processed": "when the portal last processed the record",
        "metas.default.data_processed": "when the portal last processed the data",
    },
)
