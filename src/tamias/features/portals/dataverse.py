"""Harvester for a Dataverse: its search for the list of datasets, an export of each for its files."""

import re
from collections.abc import AsyncIterator, Iterator
from itertools import takewhile
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from tamias.features.portals.paging.dated import DatedState
from tamias.features.portals.paging.listing import as_stamp
from tamias.features.portals.paging.ways import roots
from tamias.harvesters.dcat import catalogue_quads
from tamias.harvesters.descriptions import is_web
from tamias.harvesters.mapping import BAD, MappedRecord, RecordMapping, map_record
from tamias.harvesters.records import (
    MOST_PAGE,
    CycleDetector,
    agent,
    checksum,
    count,
    failure,
    json_of,
    table,
    tables,
    text,
    texts,
)
from tamias.harvesters.terms import below
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


_AGENTS: Final = (
    ("author", "authorName", None, "dct:creator"),
    ("datasetContact", "datasetContactName", "datasetContactEmail", "dcat:contactPoint"),
    ("contributor", "contributorName", None, "dct:contributor"),
    ("producer", "producerName", None, "dct:contributor"),
)
_DROPPED: Final = {"status": "`OK`, of every answer"}
_CHECKSUMS = ("MD5", "SHA-1", "SHA-256", "SHA-512")


def listed(item: Any, root: str) -> Dataset:
    """Read an item of the search. Raises `ValueError` for one without identifier."""
    item = table(item)
    identifier, address = text(item.get("global_id")), text(item.get("url"))
    if identifier is None:
        raise ValueError("it has no global_id")
    contact = next((name for each in tables(item.get("contacts")) if (name := text(each.get("name")))), None)
    return Dataset(
        iri=_name(address, identifier, root),
        record=identifier,
        title=text(item.get("name")) or identifier,
        description=text(item.get("description")),
        identifiers=(identifier,),
        keywords=texts(item.get("keywords")),
        groups=texts(item.get("subjects")),
        landing_page=address if is_web(address) else None,
        publisher=agent(text(item.get("publisher")) or text(item.get("name_of_dataverse"))),
        creator=agent(next(iter(texts(item.get("authors"))), None)),
        contact=agent(contact),
        issued=text(item.get("published_at")),
        modified=text(item.get("updatedAt")),
        record_issued=text(item.get("createdAt")),
        record_modified=text(item.get("updatedAt")) or text(item.get("published_at")),
        spatial=tuple(_named_places(tables(item.get("geographicCoverage")))),
        version=_version(item.get("majorVersion"), item.get("minorVersion")),
    )


def exported(export: Any, identifier: str, root: str) -> Dataset:
    """Read an export in Dataverse's own JSON. Raises `ValueError` for one without a version."""
    export = table(export)
    export = table(export.get("data")) or export
    version = table(export.get("datasetVersion"))
    if not version:
        raise ValueError("its export has no datasetVersion")
    address, blocks = text(export.get("persistentUrl")), table(version.get("metadataBlocks"))
    said, where = _fields(blocks.get("citation")), _fields(blocks.get("geospatial"))
    licence = table(version.get("license"))
    author, contact = _parts(said, "author"), _parts(said, "datasetContact")
    return Dataset(
        iri=_name(address, identifier, root),
        record=identifier,
        title=_text(said.get("title")) or identifier,
        description="\n\n".join(_all(said, "dsDescription", "dsDescriptionValue")) or None,
        identifiers=texts([identifier, *_all(said, "otherId", "otherIdValue")]),
        keywords=tuple(_all(said, "keyword", "keywordValue")),
        groups=texts(said.get("subject")),
        landing_page=address if is_web(address) else None,
        licence=text(licence.get("uri")) or text(licence.get("name")) or text(version.get("license")),
        rights=text(version.get("termsOfUse")),
        publisher=agent(text(export.get("publisher"))),
        creator=_agent(author, "authorName", None),
        contact=_agent(contact, "datasetContactName", "datasetContactEmail"),
        issued=text(export.get("publicationDate")) or text(version.get("releaseTime")),
        modified=text(version.get("lastUpdateTime")) or text(version.get("releaseTime")),
        record_issued=text(version.get("createTime")),
        record_modified=text(version.get("lastUpdateTime")) or text(version.get("releaseTime")),
        language=texts(said.get("language")),
        spatial=(*_boxes(where), *_named_places(_compounds(where, "geographicCoverage"))),
        temporal=tuple(_periods(said)),
        version=_version(version.get("versionNumber"), version.get("versionMinorNumber")),
        distributions=tuple(_files(version.get("files"), root)),
        agents=tuple(_agents(said)),
        more=tuple(_properties(said)),
    )


def _agents(said: dict[str, Any]) -> Iterator[AgentRole]:
    """Yield all authors and contacts but the first, and all contributors and producers."""
    for field, name, email, role in _AGENTS:
        first = 1 if field in ("author", "datasetContact") else 0
        for each in _compounds(said, field)[first:]:
            if found := _agent(each, name, email):
                yield AgentRole(property=role, agent=found)


def _properties(said: dict[str, Any]) -> Iterator[DcatProperty]:
    for field, name in (("alternativeTitle", "dct:alternative"), ("notesText", "adms:versionNotes")):
        yield from (DcatProperty(name, each) for each in texts(said.get(field)))
    for each in _compounds(said, "publication"):
        for one in texts([each.get("publicationURL") or each.get("publicationCitation")]):
            yield DcatProperty("dct:isReferencedBy", one)
    for field, name in (("relatedMaterial", "dct:relation"), ("relatedDatasets", "dct:relation")):
        yield from (DcatProperty(name, each) for each in texts(said.get(field)))


def export_mapping(identifier: str) -> RecordMapping:
    """Return the mapping of the export of a dataset, which does not always name the dataset."""
    return RecordMapping("dataverse", lambda export, root: exported(export, identifier, root), _DROPPED)


def _name(address: str | None, identifier: str, root: str) -> str:
    return address if address and is_web(address) else below(root, identifier, "dataset").value


def _version(major: Any, minor: Any) -> str | None:
    numbers = (count(major), count(minor))
    return f"{numbers[0]}.{numbers[1] or 0}" if numbers[0] is not None else None


def _fields(block: Any) -> dict[str, Any]:
    """Return the values of a metadata block by the names of their types."""
    fields = tables(table(block).get("fields"))
    return {name: each.get("value") for each in fields if (name := text(each.get("typeName")))}


def _text(value: Any) -> str | None:
    """Return the text of a field, whether it stands there or in a field of its own."""
    return text(table(value).get("value")) or text(value)


def _compounds(said: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return each value of a compound field as plain texts by the names of its parts."""
    found = tables(said.get(name))
    return [{part: value for part in each if (value := _text(each[part]))} for each in found]


def _parts(said: dict[str, Any], name: str) -> dict[str, Any]:
    return next(iter(_compounds(said, name)), {})


def _all(said: dict[str, Any], name: str, part: str) -> Iterator[str]:
    yield from dict.fromkeys(each[part] for each in _compounds(said, name) if part in each)


def _agent(parts: dict[str, Any], name: str, email: str | None) -> Agent | None:
    return agent(parts.get(name), parts.get(email) if email else None)


def _named_places(places: list[dict[str, Any]]) -> Iterator[str]:
    for place in places:
        words = (text(place.get(part)) for part in ("city", "state", "country", "otherGeographicCoverage"))
        yield from filter(None, [", ".join(word for word in words if word)])


def _boxes(where: dict[str, Any]) -> Iterator[str]:
    for box in _compounds(where, "geographicBoundingBox"):
        east = box.get("eastLongitude")
        north = box.get("northLatitude") or box.get("northLongitude")
        west = box.get("westLongitude")
        south = box.get("southLatitude") or box.get("southLongitude")
        if east and north and west and south:
            yield f"POLYGON(({west} {south}, {east} {south}, {east} {north}, {west} {north}, {west} {south}))"


def _periods(said: dict[str, Any]) -> Iterator[Period]:
    for each in _compounds(said, "timePeriodCovered"):
        yield Period(each.get("timePeriodCoveredStart"), each.get("timePeriodCoveredEnd"))


def _files(files: Any, root: str) -> Iterator[Distribution]:
    for each in tables(files):
        file = table(each.get("dataFile"))
        number = count(file.get("id"))
        if number is None:
            continue
        folder, name = text(each.get("directoryLabel")), text(each.get("label")) or text(file.get("filename"))
        yield Distribution(
            url=f"{root}api/access/datafile/{number}",
            access_only=each.get("restricted") is True,
            title=f"{folder}/{name}" if folder and name else name,
            description=text(each.get("description")) or text(file.get("description")),
            media_type=text(file.get("contentType")),
            format=name.rpartition(".")[2] if name and "." in name else None,
            rights="restricted" if each.get("restricted") is True else None,
            byte_size=count(file.get("filesize")),
            **_checksum(file),
            issued=text(file.get("publicationDate")) or text(file.get("creationDate")),
        )


def _checksum(file: dict[str, Any]) -> dict[str, Any]:
    checksum_of = table(file.get("checksum"))
    algorithm, value = (
        text(checksum_of.get("type")) or "MD5",
        text(checksum_of.get("value")) or text(file.get("md5")),
    )
    return checksum(algorithm, value) if algorithm in _CHECKSUMS else {}


SEARCH_MAPPING: Final = RecordMapping("dataverse-search", listed)
