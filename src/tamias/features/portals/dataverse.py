"""Harvester for a Dataverse: its search for the list of datasets, an export of each for its files."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from tamias.features.dcat.datasets.location import box_polygon
from tamias.features.dcat.datasets.mapping import BAD, RecordMapping, map_record
from tamias.features.dcat.datasets.records import (
    MOST_PAGE,
    checksum,
    count,
    failure,
    table,
    tables,
    text,
    texts,
)
from tamias.features.dcat.datasets.terms import below
from tamias.features.portals.fields import Fields, at, terms
from tamias.features.portals.paging.listing import ChangeOrder, Detailed, PortalListing, RecordPage
from tamias.features.portals.paging.position import Position
from tamias.features.portals.paging.ways import Portal, roots
from tamias.model.capture import Outcome, Request
from tamias.model.dataset import Agent, AgentRole, Dataset, DcatProperty, Distribution, Period
from tamias.model.finding import Harvest, HarvestEnd, HarvestStep, Links
from tamias.protocols import PoliteClient

PAGE_RECORDS = 100
CHANGES_PAGE = 1000
"""The most that the search gives; a harvest of changes asks for little else."""
_FAILURES_IN_A_ROW = 5
_INNER = ("api", "dataset.xhtml", "dataverse", "dataverse.xhtml", "oai", "citation", "file.xhtml")
_COLLECTION = re.compile(r"/dataverse/([^/?#]+)")


async def _find(url: str, _client: PoliteClient) -> Position:
    """Return the installation, or the collection that the address names."""
    collection = _COLLECTION.search(url)
    return Position(root=roots(url, *_INNER)[0], query=collection[1] if collection else "")


def _address(place: Position, start: int, size: int) -> tuple[str, int]:
    query: dict[str, Any] = {"q": "*", "type": "dataset", "sort": "date", "order": "asc"}
    query |= {"start": start, "per_page": CHANGES_PAGE if place.since else size}
    if place.query:
        query["subtree"] = place.query
    return f"{place.root}api/search?{urlencode(query)}", start


def _page(body: bytes) -> RecordPage:
    found = table(table(msgspec.json.decode(body)).get("data"))
    if not isinstance(found.get("items"), list):
        raise ValueError("no `data.items`")
    return RecordPage(found["items"], count(found.get("total_count")) or 0)


async def _exported(place: Position, client: PoliteClient, item: Any) -> Detailed:
    """Return the dataset as its export describes it; as the search does, where there is no export."""
    short = map_record(SEARCH_MAPPING, msgspec.json.encode(item), place.root)
    name = short.dataset.record
    if not place.details:
        place.bare += 1
        return short
    query = urlencode({"exporter": "dataverse_json", "persistentId": name})
    place.requests += 1
    address = f"{place.root}api/datasets/export?{query}"
    capture = await client.ask(Request(url=address, accept="application/json"))
    end = failure(capture, "the export at")
    if end is None:
        place.failures = 0
        try:
            return map_record(export_mapping(name), client.body(capture, MOST_PAGE), place.root)
        except BAD:
            end = HarvestEnd(outcome=Outcome.FAILED, reason="no export")
    place.failures += end.retry
    if end.retry and (end.retry_after_ms or place.failures >= _FAILURES_IN_A_ROW):
        place.failures = 0
        return end
    place.details = end.outcome is not Outcome.REFUSED
    place.bare += 1
    return short


class DataverseHarvester(Portal):
    """Harvest a Dataverse; where robots.txt forbids its API, leave its OAI-PMH interface as a link."""

    def __init__(self) -> None:
        super().__init__("dataverse", _find, {"": LISTING})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        found = 0
        async for step in super().harvest(harvest, client):
            found += len(step.findings)
            if step.end is not None and step.end.outcome is Outcome.REFUSED and found <= 1:
                root = roots(harvest.url, *_INNER)[0]
                link = Links([f"{root}oai"], root, "oai-pmh")
                yield msgspec.structs.replace(step, findings=[*step.findings, link])
            else:
                yield step


_DROPPED: Final = {"status": "`OK`, of every answer"}
_CHECKSUMS = ("MD5", "SHA-1", "SHA-256", "SHA-512")
Context = Mapping[str, str]


def _version(major: str, minor: str) -> Any:
    """Make a rule for the number of a version."""

    def find(said: dict[str, Any], _: Context) -> str | None:
        numbers = (count(said.get(major)), count(said.get(minor)))
        return f"{numbers[0]}.{numbers[1] or 0}" if numbers[0] is not None else None

    return find


def _named_places(field: str) -> Any:
    """Make a rule for places by the names of their parts."""
    parts = ("city", "state", "country", "otherGeographicCoverage")

    def find(said: dict[str, Any], _: Context) -> Iterator[str]:
        for place in tables(said.get(field)):
            yield from filter(None, [", ".join(filter(None, (text(place.get(part)) for part in parts)))])

    return find


_LISTED: Final = Fields(
    Dataset,
    iri="url>web {own}", record="global_id", title="name global_id", description="description",
    identifiers="global_id", keywords="keywords", groups="subjects", landing_page="url>web",
    publisher=Fields(Agent, name="publisher name_of_dataverse"),
    creator=lambda said, _: next((Agent(name=name) for name in texts(said.get("authors"))), None),
    contact=Fields(Agent, "contacts", name="name"),
    issued="published_at", modified="updatedAt", record_issued="createdAt",
    record_modified="updatedAt published_at", spatial=_named_places("geographicCoverage"),
    version=_version("majorVersion", "minorVersion"),
)  # fmt: skip


def listed(item: Any, root: str) -> Dataset:
    """Read an item of the search. Raise `ValueError` for one without identifier."""
    item = table(item)
    return _LISTED.of(item, root, own=below(root, text(item.get("global_id")) or "", "dataset").value)


def _box(where: dict[str, Any], _: Context) -> Iterator[str]:
    for box in tables(where.get("geographicBoundingBox")):
        east, west = box.get("eastLongitude"), box.get("westLongitude")
        north = box.get("northLatitude") or box.get("northLongitude")
        south = box.get("southLatitude") or box.get("southLongitude")
        if found := box_polygon([text(each) or "" for each in (west, south, east, north)]):
            yield found


def _file(file: dict[str, Any], _: Context) -> dict[str, Any]:
    """Return the title of a file with its folder, its checksum, and whether all may have it."""
    data = table(file.get("dataFile"))
    folder, name = text(file.get("directoryLabel")), text(file.get("label")) or text(data.get("filename"))
    digest = table(data.get("checksum"))
    algorithm, value = text(digest.get("type")) or "MD5", text(digest.get("value")) or text(data.get("md5"))
    is_restricted = file.get("restricted") is True
    return {
        "title": f"{folder}/{name}" if folder and name else name,
        "format": name.rpartition(".")[2] if name and "." in name else None,
        "access_only": is_restricted,
        "rights": "restricted" if is_restricted else None,
        **(checksum(algorithm, value) if algorithm in _CHECKSUMS else {}),
    }


def _person(field: str, path: str = "") -> Fields[Agent]:
    return Fields(Agent, path, name=f"{field}Name {field}Email", email=f"{field}Email")


def _people(field: str, role: str, after: int = 0) -> Fields[AgentRole]:
    return Fields(AgentRole, f"citation.{field}", after=after, property=f"={role}", agent=_person(field))


def _description(said: dict[str, Any], _: Context) -> str | None:
    found = at(said, ("citation", "dsDescription", "dsDescriptionValue"))
    return "\n\n".join(dict.fromkeys(found)) or None


_EXPORTED: Final = Fields(
    Dataset,
    iri="export.persistentUrl>web {own}", record="{identifier}", title="citation.title {identifier}",
    description=_description,
    identifiers="{identifier} citation.otherId.otherIdValue", keywords="citation.keyword.keywordValue",
    groups="citation.subject", landing_page="export.persistentUrl>web",
    licence="version.license.uri version.license.name version.license", rights="version.termsOfUse",
    publisher=Fields(Agent, name="export.publisher"),
    creator=_person("author", "citation.author"), language="citation.language",
    contact=_person("datasetContact", "citation.datasetContact"),
    issued="export.publicationDate version.releaseTime", record_issued="version.createTime",
    modified="version.lastUpdateTime version.releaseTime",
    record_modified="version.lastUpdateTime version.releaseTime",
    spatial=(
        lambda said, context: _box(said["geospatial"], context),
        lambda said, context: _named_places("geographicCoverage")(said["geospatial"], context),
    ),
    temporal=Fields(
        Period, "citation.timePeriodCovered", start="timePeriodCoveredStart", end="timePeriodCoveredEnd"
    ),
    version=lambda said, context: _version("versionNumber", "versionMinorNumber")(said["version"], context),
    distributions=Fields(
        Distribution, "version.files", also=_file,
        when=lambda file: count(table(file.get("dataFile")).get("id")) is not None,
        url="{root}api/access/datafile/{dataFile.id}", description="description dataFile.description",
        media_type="dataFile.contentType", byte_size="dataFile.filesize",
        issued="dataFile.publicationDate dataFile.creationDate",
    ),
    agents=(
        _people("author", "dct:creator", 1), _people("datasetContact", "dcat:contactPoint", 1),
        _people("contributor", "dct:contributor"), _people("producer", "dct:contributor"),
    ),
    more=(
        terms({}, {"alternativeTitle": "dct:alternative", "notesText": "adms:versionNotes"}, "citation"),
        lambda said, _: (
            DcatProperty("dct:isReferencedBy", one)
            for each in tables(said["citation"].get("publication"))
            for one in texts([each.get("publicationURL") or each.get("publicationCitation")])
        ),
        terms({}, {"relatedMaterial": "dct:relation", "relatedDatasets": "dct:relation"}, "citation"),
    ),
)  # fmt: skip


def exported(export: Any, identifier: str, root: str) -> Dataset:
    """Read an export in Dataverse's own JSON. Raise `ValueError` for one without a version."""
    export = table(export)
    export = table(export.get("data")) or export
    version = table(export.get("datasetVersion"))
    if not version:
        raise ValueError("its export has no datasetVersion")
    blocks = table(version.get("metadataBlocks"))
    said = {name: _MetadataBlock(blocks.get(name)) for name in ("citation", "geospatial")}
    own = below(root, identifier, "dataset").value
    return _EXPORTED.of({**said, "export": export, "version": version}, root, identifier=identifier, own=own)


def export_mapping(identifier: str) -> RecordMapping:
    """Return the mapping of the export of a dataset, which does not always name the dataset."""
    return RecordMapping("dataverse", lambda export, root: exported(export, identifier, root), _DROPPED)


class _MetadataBlock(dict[str, Any]):
    """The fields of a metadata block by the names of their types; compound ones as texts of their parts."""

    def __init__(self, block: Any) -> None:
        fields = tables(table(block).get("fields"))
        super().__init__({name: each for each in fields if (name := text(each.get("typeName")))})

    def get(self, name: str, default: Any = None) -> Any:
        field = super().get(name)
        value = field.get("value") if field else None
        if isinstance(value, dict | list):
            found = [{part: one for part in each if (one := _text(each[part]))} for each in tables(value)]
            return found or value
        return value


def _text(value: Any) -> str | None:
    """Return the text of a field, whether it stands there or in a field of its own."""
    return text(table(value).get("value")) or text(value)


SEARCH_MAPPING: Final = RecordMapping("dataverse-search", listed)
LISTING: Final = PortalListing(
    name="Dataverse",
    address=_address,
    page=_page,
    details=_exported,
    key=lambda item: text(item.get("global_id")) or text(item.get("name")) or "?",
    order=ChangeOrder("updatedAt", lambda item: text(item.get("updatedAt")), is_listed=True),
    largest=PAGE_RECORDS,
    ordered=False,
    step=10,
    pages=True,
)
