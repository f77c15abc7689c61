"""Harvester for a Dataverse: its search for the list of datasets, an export of each for its files."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import takewhile
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from tamias.features.dcat.datasets.dcat import catalogue_quads
from tamias.features.dcat.datasets.mapping import BAD, MappedRecord, RecordMapping, map_record
from tamias.features.dcat.datasets.records import (
    MOST_PAGE,
    CycleDetector,
    checksum,
    count,
    failure,
    json_of,
    table,
    tables,
    text,
    texts,
)
from tamias.features.dcat.datasets.terms import below
from tamias.features.portals.fields import Fields, at, terms
from tamias.features.portals.paging.changes import DatedState
from tamias.features.portals.paging.listing import as_stamp
from tamias.features.portals.paging.ways import roots
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.dataset import Agent, AgentRole, Dataset, DcatProperty, Distribution, Period
from tamias.model.finding import Finding, Harvest, HarvestEnd, HarvestStep, Links, Present, Problem, Quads
from tamias.protocols import PoliteClient

PAGE_RECORDS = 100
CHANGES_PAGE = 1000
"""The most that the search gives; a harvest of changes asks for little else."""
_EXPORTS_A_STEP = 10
_FAILURES_IN_A_ROW = 5
_INNER = ("api", "dataset.xhtml", "dataverse", "dataverse.xhtml", "oai", "citation", "file.xhtml")
_COLLECTION = re.compile(r"/dataverse/([^/?#]+)")


class _DataverseState(DatedState, kw_only=True):
    """The state of a harvest: the position in the list, and counts so far."""

    root: str
    collection: str | None = None
    start: int = 0
    within: int = 0
    """Of the page that begins there, how many are done."""
    total: int = 0
    bare: int = 0
    """Datasets whose files could not be asked for."""
    failures: int = 0
    exports: bool = True
    present: int = 0
    """Datasets that were not updated since the last harvest, and are not asked for again."""
    turns: CycleDetector = msgspec.field(default_factory=CycleDetector)


class DataverseHarvester:
    """Reads the datasets of an installation, or of the collection that the address names.

    Where robots.txt forbids the API, the OAI-PMH interface is left as a link to try instead.
    """

    kinds = frozenset({"dataverse"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        collection = _COLLECTION.search(harvest.url)
        fresh = _DataverseState(
            root=roots(harvest.url, *_INNER)[0], collection=collection[1] if collection else None
        )
        fresh.ask_for_changes(harvest.bookmark)
        state = msgspec.msgpack.decode(harvest.state, type=_DataverseState) if harvest.state else fresh
        listing = _Listing(state, client)
        async for step in listing.steps():
            yield step


class _Listing:
    """The conversation with one installation; all that outlives a step is in the state."""

    def __init__(self, state: _DataverseState, client: PoliteClient) -> None:
        self._state = state
        self._client = client

    async def steps(self) -> AsyncIterator[HarvestStep]:
        state = self._state
        if not state.start and not state.within:
            yield state.step([Quads(catalogue_quads(state.root, "", None, state.root))])
        while True:
            capture = await self._client.ask(self._search())
            if end := failure(capture, "the search of"):
                yield state.step(self._instead(end), end)
                return
            items = self._items(capture)
            if isinstance(items, HarvestEnd):
                yield state.step([], items)
                return
            while state.within < len(items):
                rest = items[state.within :]
                if unchanged := list(takewhile(self._is_unchanged, rest)):
                    state.within += len(unchanged)
                    state.present += len(unchanged)
                    yield state.step([Present([str(each["global_id"]) for each in unchanged])])
                    continue
                changed = takewhile(lambda item: not self._is_unchanged(item), rest[:_EXPORTS_A_STEP])
                findings, end = await self._part(list(changed))
                yield state.step(findings, end)
                if end:
                    return
            if end := self._turn(items):
                yield state.step([], end)
                return

    def _search(self) -> Request:
        query: dict[str, Any] = {"q": "*", "type": "dataset", "sort": "date", "order": "asc"}
        size = PAGE_RECORDS if self._state.since is None else CHANGES_PAGE
        query |= {"start": self._state.start, "per_page": size}
        if self._state.collection:
            query["subtree"] = self._state.collection
        return Request(url=f"{self._state.root}api/search?{urlencode(query)}", accept="application/json")

    def _instead(self, end: HarvestEnd) -> list[Finding]:
        refused = end.outcome is Outcome.REFUSED and not self._state.datasets
        return [Links([f"{self._state.root}oai"], self._state.root, "oai-pmh")] if refused else []

    def _items(self, capture: Capture) -> list[Any] | HarvestEnd:
        try:
            found = table(table(json_of(self._client, capture)).get("data"))
        except msgspec.DecodeError as error:
            return self._no_list(capture, str(error))
        items = found.get("items")
        if not isinstance(items, list):
            return self._no_list(capture, "no `data.items`")
        self._state.total = count(found.get("total_count")) or 0
        return items

    def _no_list(self, capture: Capture, why: str) -> HarvestEnd:
        reason = f"{self._summary()}; {capture.url} is not a list of datasets: {why}"
        return HarvestEnd(outcome=Outcome.FAILED, reason=reason, retry=bool(self._state.start))

    def _is_unchanged(self, item: Any) -> bool:
        """Return whether a dataset was not updated since the last harvest."""
        since, stamp = self._state.since, as_stamp(text(table(item).get("updatedAt")))
        return since is not None and stamp is not None and stamp < since and "global_id" in item

    async def _part(self, items: list[Any]) -> tuple[list[Finding], HarvestEnd | None]:
        """Read a few datasets with their files. Where it asks for a pause, those before it count."""
        records: list[MappedRecord] = []
        problems: list[Finding] = []
        end: HarvestEnd | None = None
        for item in items:
            self._state.note_update(text(table(item).get("updatedAt")))
            try:
                short = map_record(SEARCH_MAPPING, msgspec.json.encode(item), self._state.root)
                found = await self._whole(short)
            except BAD as error:
                name = text(table(item).get("global_id")) or text(table(item).get("name")) or "?"
                problems.append(Problem(f"dataset {name} of {self._state.root}: {error}"))
                found = None
            if isinstance(found, HarvestEnd):
                end = found
                break
            self._state.within += 1
            records += [found] if found else []
        self._state.datasets += len(records)
        self._state.problems += len(problems)
        return [*self._state.brought(records, self._state.root), *problems], end

    async def _whole(self, short: MappedRecord) -> MappedRecord | HarvestEnd:
        """Return the dataset as its export describes it; as the search does, where there is no export."""
        if not self._state.exports:
            self._state.bare += 1
            return short
        query = urlencode({"exporter": "dataverse_json", "persistentId": short.dataset.record})
        address = f"{self._state.root}api/datasets/export?{query}"
        capture = await self._client.ask(Request(url=address, accept="application/json"))
        end = failure(capture, "the export at")
        if end is None:
            self._state.failures = 0
            try:
                body = self._client.body(capture, MOST_PAGE)
                return map_record(export_mapping(short.dataset.record), body, self._state.root)
            except BAD:
                end = HarvestEnd(outcome=Outcome.FAILED, reason="no export")
        self._state.failures += end.retry
        if end.retry and (end.retry_after_ms or self._state.failures >= _FAILURES_IN_A_ROW):
            self._state.failures = 0
            return end
        self._state.exports = end.outcome is not Outcome.REFUSED
        self._state.bare += 1
        return short

    def _turn(self, items: list[Any]) -> HarvestEnd | None:
        """Go on to the next page; return an end where there is none."""
        state = self._state
        if state.turns.again(text(table(item).get("global_id")) or "?" for item in items):
            return self._ended("the search gives the same page again")
        state.start, state.within = state.start + len(items), 0
        return self._ended(None) if not items or state.start >= state.total else None

    def _ended(self, why: str | None) -> HarvestEnd:
        state, doubts = self._state, [why] if why else []
        if state.problems:
            doubts.append(f"{state.problems} problems in reading them")
        if state.start < state.total:
            doubts.append(f"the search counts {state.total}")
        outcome = Outcome.OK if state.datasets or state.present or not doubts else Outcome.FAILED
        return HarvestEnd(
            outcome=outcome,
            reason="; ".join([self._summary(), *doubts]),
            complete=not doubts,
            bookmark=None if doubts or state.bare else state.bookmark(),
        )

    def _summary(self) -> str:
        state, summary = self._state, f"{self._state.datasets} datasets"
        if state.since is not None:
            summary += (
                f" read, those updated since {state.since}; {state.present} others are listed as before"
            )
        summary += f", {state.bare} of them without their files" if state.bare else ""
        return summary + ("" if state.exports else " (robots.txt forbids their export)")


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
        if east and north and west and south:
            yield f"POLYGON(({west} {south}, {east} {south}, {east} {north}, {west} {north}, {west} {south}))"


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
