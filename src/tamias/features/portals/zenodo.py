"""Harvester for Zenodo and any other InvenioRDM: its search, in slices of time where it ends after 10,000."""

import re
from collections.abc import AsyncIterator, Iterator
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from tamias.features.portals.paging.dated import DatedState, a_little_before
from tamias.features.portals.paging.ways import roots
from tamias.harvesters.dcat import catalogue_quads
from tamias.harvesters.descriptions import is_web
from tamias.harvesters.mapping import MappedRecord, RecordMapping, map_record
from tamias.harvesters.records import (
    agent,
    checksum,
    count,
    failure,
    in_languages,
    json_of,
    one_text,
    table,
    tables,
    text,
    texts,
)
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.dataset import Agent, AgentRole, Dataset, DcatProperty, Distribution, Period
from tamias.model.finding import Deleted, Finding, Harvest, HarvestEnd, HarvestStep, Problem, Quads
from tamias.protocols import PoliteClient

WINDOW = 10_000
"""Records that one search gives away, however many it finds."""
PAGE_RECORDS = 25
"""What Zenodo gives to those who are not signed in; others give more, but this too."""
_LOST_PAGES = 3
_INNER = ("api", "records", "record", "search", "communities", "oai2d")
_FIRST_DAY = "1990-01-01"


class _ZenodoState(DatedState, kw_only=True):
    """The slice of time that is being read, and the page in it."""

    root: str
    start: str | None = None
    """The first day of the slice; None while all is one slice."""
    days: int = 0
    """How many days it has; 0 is one without end."""
    newest: str | None = None
    page: int = 1
    page_records: int = PAGE_RECORDS
    """What a page holds: some installations give fewer than they are asked for."""
    slice_total: int = 0
    total: int | None = None
    others: int = 0
    lost_in_a_row: int = 0
    begun: bool = False
    left_out: int = 0
    """Records that the search counts and that are no datasets here, of the last whole harvest."""
    comparing: bool = False
    """Whether all changes were read, and the repository's count is to be compared."""


class ZenodoHarvester:
    """Reads all datasets of a repository, oldest first."""

    kinds = frozenset({"zenodo"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        fresh = _ZenodoState(root=roots(harvest.url, *_INNER)[0])
        if known := fresh.ask_for_changes(harvest.bookmark):
            fresh.since, fresh.left_out = _utc(a_little_before(known.latest)), known.left_out
        search = _Search(
            msgspec.msgpack.decode(harvest.state, type=_ZenodoState) if harvest.state else fresh, client
        )
        end: HarvestEnd | None = None
        while end is None:
            step = await search.step()
            end = step.end
            yield step


class _Search:
    """The conversation with one repository; all that outlives a step is in the state."""

    def __init__(self, state: _ZenodoState, client: PoliteClient) -> None:
        self._state = state
        self._client = client

    async def step(self) -> HarvestStep:
        """Read a page, or make the slice smaller where there are too many."""
        state = self._state
        if state.comparing:
            return await self._compare()
        findings: list[Finding] = []
        if not state.begun:
            findings.append(Quads(catalogue_quads(state.root, "", None, state.root)))
        capture = await self._client.ask(self._request(state.page))
        end = failure(capture, "the records at")
        if end is not None and (end.retry or state.since is None):
            return state.step([], end)
        hits = self._hits(capture, findings) if end is None else None
        if hits is None:
            if state.since is not None:
                return self._read_everything(f"{capture.url} does not list changes")
            return state.step(findings, self._lose())
        state.begun, state.lost_in_a_row = True, 0
        state.slice_total = _total(hits)
        state.total = state.slice_total if state.total is None else state.total
        if state.slice_total > WINDOW:
            if state.since is not None:
                return self._read_everything("more changed than one search gives")
            if state.page == 1 and not self._is_smallest():
                return state.step(findings, await self._narrow())
        found = hits.get("hits")
        return await self._take(found if isinstance(found, list) else [], findings)

    async def _take(self, records: list[Any], findings: list[Finding]) -> HarvestStep:
        """Read the datasets among the records of a page, and go on."""
        state = self._state
        for record in records:
            said = table(record)
            state.note_update(text(said.get("updated")) or text(said.get("modified")))
        wanted = [record for record in records if is_dataset(record)]
        state.others += len(records) - len(wanted)
        findings += state.findings(
            wanted, state.root, self._map, lambda record: text(table(record).get("id"))
        )
        if state.since is None:
            return state.step(findings, self._turn(len(records)))
        older, trouble = await self._older_versions(records)
        findings += older
        if trouble is None and self._turn(len(records)) is not None:
            state.comparing = True
        return state.step(findings, trouble)

    async def _older_versions(self, records: list[Any]) -> tuple[list[Finding], HarvestEnd | None]:
        """Find versions that new ones replaced: the search lists the latest of each record only."""
        found: list[Finding] = []
        for record in records:
            address = _versions_address(record, self._state.root)
            if address is None or not is_dataset(record):
                continue
            capture = await self._client.ask(Request(url=address, accept="application/json"))
            if end := failure(capture, "the versions at"):
                return found, end
            hits = (self._hits(capture, []) or {}).get("hits")
            names = [text(each.get("id")) for each in tables(hits)]
            own = text(table(record).get("id"))
            found.append(Deleted([name for name in names if name and name != own]))
        return found, None

    async def _compare(self) -> HarvestStep:
        """End a harvest of changes, if the repository counts as many records as are held."""
        state = self._state
        request = Request(url=f"{state.root}api/records?type=dataset&size=1", accept="application/json")
        capture = await self._client.ask(request)
        if end := failure(capture, "the records at"):
            return state.step([], end)
        total, held = _total(self._hits(capture, []) or {}), await self._client.records_held()
        if held + state.left_out != total:
            return self._read_everything(f"{held:,} records are known, and the repository counts {total:,}")
        reason = f"{state.datasets:,} of {total:,} datasets read, those updated since {state.since}"
        end = HarvestEnd(
            outcome=Outcome.OK,
            reason=f"{reason}; it counts as many as are known",
            bookmark=state.bookmark(left_out=state.left_out),
        )
        return state.step([], end)

    def _read_everything(self, why: str) -> HarvestStep:
        self._state.read_everything(_ZenodoState(root=self._state.root), why)
        return self._state.step()

    def _request(self, page: int, size: int = PAGE_RECORDS, sort: str = "oldest") -> Request:
        query = {"type": "dataset", "size": size, "page": page, "sort": sort}
        if self._state.since is not None:
            query["q"] = f'updated:["{self._state.since}" TO *]'
        if self._state.start is not None:
            # A day that is not in the slice ends it: half-open, so that none is read twice or left out.
            end = "*" if not self._state.days else _after(self._state.start, self._state.days)
            query["q"] = f"created:[{self._state.start} TO {end}{'}' if self._state.days else ']'}"
        return Request(url=f"{self._state.root}api/records?{urlencode(query)}", accept="application/json")

    def _hits(self, capture: Capture, findings: list[Finding]) -> dict[str, Any] | None:
        try:
            hits = table(json_of(self._client, capture)).get("hits")
        except msgspec.DecodeError as error:
            hits = str(error)
        if isinstance(hits, dict):
            return hits
        findings.append(Problem(f"{capture.url}: no list of records: {hits}"[:500]))
        return None

    def _map(self, record: Any) -> MappedRecord:
        return map_record(MAPPING, msgspec.json.encode(record), self._state.root)

    def _lose(self) -> HarvestEnd | None:
        """Leave out a page that cannot be read; several in a row, or the first, are the end."""
        state = self._state
        state.problems += 1
        state.lost_in_a_row += 1
        if not state.begun or state.lost_in_a_row >= _LOST_PAGES:
            return HarvestEnd(
                outcome=Outcome.FAILED, reason=f"{self._summary()}; pages that are not JSON", retry=True
            )
        return self._turn(state.page_records)

    async def _narrow(self) -> HarvestEnd | None:
        """Make the slice smaller, by half or to where its records are likely to fit."""
        state = self._state
        if state.start is not None:
            state.days = max(1, (state.days or self._days_left()) * WINDOW // (2 * state.slice_total))
            return None
        ends = [await self._created("oldest"), await self._created("newest")]
        if failed := next((each for each in ends if isinstance(each, HarvestEnd)), None):
            return failed
        state.start, state.newest = _FIRST_DAY, str(ends[1])
        state.days = (_day(str(ends[0])) - _day(_FIRST_DAY)).days + 1
        return None

    async def _created(self, sort: str) -> str | HarvestEnd:
        """Return the day on which the first record in this order was made."""
        capture = await self._client.ask(self._request(1, 1, sort))
        if end := failure(capture, "the records at"):
            return end
        hits = (self._hits(capture, []) or {}).get("hits")
        created = text(table(hits[0]).get("created")) if isinstance(hits, list) and hits else None
        try:
            return _day(created or "").isoformat()
        except ValueError:
            return HarvestEnd(
                outcome=Outcome.FAILED, reason=f"{capture.url}: no record with a day in `created`"
            )

    def _is_smallest(self) -> bool:
        return self._state.start is not None and self._state.days == 1

    def _days_left(self) -> int:
        state = self._state
        return max(2, (_day(state.newest or "") - _day(state.start or "")).days + 1)

    def _turn(self, records: int) -> HarvestEnd | None:
        """Go on to the next page, or to the next slice."""
        state = self._state
        within = min(state.slice_total, WINDOW)
        if state.page == 1 and 0 < records < min(within, PAGE_RECORDS):
            state.page_records = records
        if records and state.page * state.page_records < within:
            state.page += 1
            return None
        if state.start is None or not state.days:
            return self._ended()
        state.start, state.page = _after(state.start, state.days), 1
        wanted = state.days * 2 if not state.slice_total else state.days * WINDOW // (2 * state.slice_total)
        state.days = max(1, min(wanted, state.days * 16))
        if _after(state.start, state.days) > (state.newest or ""):
            state.days = 0
        return None

    def _ended(self) -> HarvestEnd:
        state, doubts = self._state, list[str]()
        if state.problems:
            doubts.append(f"{state.problems} problems in reading them")
        if state.datasets + state.others + state.problems < (state.total or 0):
            doubts.append(f"the repository counts {state.total}")
        outcome = Outcome.OK if state.datasets or not doubts else Outcome.FAILED
        said = [self._summary(), *doubts, *filter(None, [state.why])]
        left_out = (state.total or 0) - state.datasets
        bookmark = None if doubts else state.bookmark(left_out=left_out)
        return HarvestEnd(outcome=outcome, reason="; ".join(said), complete=not doubts, bookmark=bookmark)

    def _summary(self) -> str:
        others = f", {self._state.others} records of other kinds left out" if self._state.others else ""
        return f"{self._state.datasets} datasets{others}"


def _total(hits: dict[str, Any]) -> int:
    return count(hits.get("total")) or count(table(hits.get("total")).get("value")) or 0


def _versions_address(record: Any, root: str) -> str | None:
    """Return the address of the other versions of a record, if it is not the first one."""
    said, name = table(record), text(table(record).get("id"))
    relations = tables(table(table(said.get("metadata")).get("relations")).get("version"))
    numbers = [count(each.get("index")) for each in (table(said.get("versions")), *relations)]
    # InvenioRDM counts versions from 1, Zenodo's own form of records from 0.
    is_later = (numbers[0] or 0) > 1 or any((number or 0) > 0 for number in numbers[1:])
    return f"{root}api/records/{quote(name, safe='')}/versions?size=25" if name and is_later else None


def _utc(stamp: str) -> str:
    """Return a time as a query of the search takes it."""
    return stamp[:19] + "Z"


def _day(text: str) -> date:
    return date.fromisoformat(text[:10])


def _after(day: str, days: int) -> str:
    """Return the day so many days later.

    >>> _after("2020-02-28", 2)
    '2020-03-01'
    """
    try:
        return (_day(day) + timedelta(days=days)).isoformat()
    except OverflowError:
        return "9999-12-31"


_RELATIONS: Final = {
    "iscitedby": "dct:isReferencedBy",
    "isreferencedby": "dct:isReferencedBy",
    "cites": "dct:references",
    "references": "dct:references",
    "isversionof": "dct:isVersionOf",
    "hasversion": "dcat:hasVersion",
    "isnewversionof": "dcat:previousVersion",
    "ispartof": "dct:isPartOf",
    "isderivedfrom": "prov:wasDerivedFrom",
    "isdocumentedby": "foaf:page",
    "obsoletes": "dct:replaces",
    "isobsoletedby": "dct:isReplacedBy",
}
_CREATIVE_COMMONS = re.compile(r"(?i)cc-(by(?:-nc)?(?:-nd|-sa)?)-([1-4]\.\d)")


def is_dataset(record: Any) -> bool:
    """Return whether the kind of a record is dataset, or none."""
    metadata = table(table(record).get("metadata"))
    kind = table(metadata.get("resource_type"))
    said = text(kind.get("type")) or text(kind.get("id")) or text(metadata.get("resource_type"))
    return said is None or said.partition("-")[0].lower() == "dataset"


def dataset_of(record: Any, root: str) -> Dataset:
    """Read a record as a dataset. Raises `ValueError` for one without identifier or title."""
    record = table(record)
    metadata, number = table(record.get("metadata")), text(record.get("id"))
    title = one_text(metadata.get("title")) or text(record.get("title"))
    if number is None or title is None:
        raise ValueError("it has no identifier" if number is None else "it has no title")
    doi, page = _doi(record, metadata), _page(record, number, root)
    files = tuple(_files(record, number, root))
    return Dataset(
        iri=f"https://doi.org/{doi}" if doi else page,
        record=number,
        title=title,
        description=one_text(metadata.get("description")),
        identifiers=texts([doi, number]),
        keywords=tuple(_keywords(metadata)),
        landing_page=page,
        licence=_licence(metadata),
        access_rights=text(metadata.get("access_right")) or text(table(record.get("access")).get("files")),
        publisher=agent(text(metadata.get("publisher"))),
        creator=_person(metadata.get("creators")),
        contact=_contact(metadata),
        issued=text(metadata.get("publication_date")),
        modified=text(record.get("updated")) or text(record.get("modified")),
        record_issued=text(record.get("created")),
        record_modified=text(record.get("updated")) or text(record.get("modified")),
        language=_languages(metadata),
        spatial=tuple(_places(metadata)),
        temporal=tuple(_periods(metadata)),
        version=text(metadata.get("version")),
        distributions=files,
        agents=tuple(_agents(metadata)),
        more=tuple(_properties(metadata)),
    )


def _agents(metadata: dict[str, Any]) -> Iterator[AgentRole]:
    """Yield all creators but the first, and all contributors but contacts."""
    for each in tables(metadata.get("creators"))[1:]:
        if person := _person(each):
            yield AgentRole(property="dct:creator", agent=person)
    for each in tables(metadata.get("contributors")):
        if (person := _person(each)) and not _is_contact(each):
            yield AgentRole(property="dct:contributor", agent=person)


def _properties(metadata: dict[str, Any]) -> Iterator[DcatProperty]:
    """Titles and descriptions in more languages, and what the record is related to."""
    yield from in_languages(metadata, "title", "dct:title")
    yield from in_languages(metadata, "description", "dct:description")
    for field, value, name in (
        ("additional_titles", "title", "dct:alternative"),
        ("additional_descriptions", "description", "dct:description"),
    ):
        for each in tables(metadata.get(field)):
            language = text(table(each.get("lang")).get("id"))
            yield from (DcatProperty(name, one, language) for one in texts(each.get(value)))
    for each in tables(metadata.get("related_identifiers")):
        kind = text(each.get("relation")) or text(table(each.get("relation_type")).get("id")) or ""
        name = _RELATIONS.get(kind.lower(), "dct:relation")
        scheme = (text(each.get("scheme")) or "").lower()
        for one in texts(each.get("identifier")):
            yield DcatProperty(
                name, f"https://doi.org/{one}" if scheme == "doi" and "://" not in one else one
            )
    yield from (DcatProperty("dct:references", one) for one in texts(metadata.get("references")))
    for each in tables(metadata.get("references")):
        yield from (DcatProperty("dct:references", one) for one in texts(each.get("reference")))
    yield from (DcatProperty("adms:versionNotes", one) for one in texts(metadata.get("notes")))


def _doi(record: dict[str, Any], metadata: dict[str, Any]) -> str | None:
    pid = table(table(record.get("pids")).get("doi")).get("identifier")
    doi = text(record.get("doi")) or text(metadata.get("doi")) or text(pid)
    return doi if doi and is_web(f"https://doi.org/{doi}") else None


def _page(record: dict[str, Any], number: str, root: str) -> str:
    links = table(record.get("links"))
    found = (text(links.get(name)) for name in ("self_html", "html"))
    return next(filter(is_web, found), None) or f"{root}records/{quote(number, safe='')}"


def _keywords(metadata: dict[str, Any]) -> Iterator[str]:
    yield from texts(metadata.get("keywords"))
    for subject in tables(metadata.get("subjects")):
        yield from texts(subject.get("subject") or subject.get("term"))


def _licence(metadata: dict[str, Any]) -> str | None:
    """Return the address of the licence, or its name."""
    for licence in (*tables(metadata.get("license")), *tables(metadata.get("rights"))):
        address = (
            text(table(licence.get("props")).get("url"))
            or text(licence.get("link"))
            or text(licence.get("url"))
        )
        name = text(licence.get("id")) or one_text(licence.get("title"))
        if address or name:
            return address or _licence_address(name or "")
    name = text(metadata.get("license"))
    return _licence_address(name) if name else None


def _licence_address(name: str) -> str:
    """Return the address of a licence by its short name; an unknown name as it stands.

    >>> _licence_address("cc-by-4.0"), _licence_address("other-open")
    ('https://creativecommons.org/licenses/by/4.0/', 'other-open')
    """
    if found := _CREATIVE_COMMONS.fullmatch(name):
        return f"https://creativecommons.org/licenses/{found[1].lower()}/{found[2]}/"
    is_zero = name.lower() in ("cc0-1.0", "cc-zero", "cc0")
    return "https://creativecommons.org/publicdomain/zero/1.0/" if is_zero else name


def _person(value: Any) -> Agent | None:
    for creator in tables(value):
        person = table(creator.get("person_or_org")) or creator
        name, orcid = text(person.get("name")), text(person.get("orcid"))
        for each in tables(person.get("identifiers")):
            orcid = text(each.get("identifier")) if each.get("scheme") == "orcid" else orcid
        if name:
            return Agent(name=name, iri=f"https://orcid.org/{orcid}" if orcid else None)
    return None


def _contact(metadata: dict[str, Any]) -> Agent | None:
    for person in tables(metadata.get("contributors")):
        if _is_contact(person):
            return _person(person)
    return None


def _is_contact(person: dict[str, Any]) -> bool:
    role = text(person.get("type")) or text(table(person.get("role")).get("id")) or ""
    return role.lower().replace(" ", "") == "contactperson"


def _languages(metadata: dict[str, Any]) -> tuple[str, ...]:
    return texts([metadata.get("language"), *(each.get("id") for each in tables(metadata.get("languages")))])


def _places(metadata: dict[str, Any]) -> Iterator[str]:
    native = [
        each for feature in tables(metadata.get("locations")) for each in tables(feature.get("features"))
    ]
    for location in native or tables(metadata.get("locations")):
        east, north = text(location.get("lon")), text(location.get("lat"))
        if east and north:
            yield f"POINT({east} {north})"
        yield from texts(location.get("place"))


def _periods(metadata: dict[str, Any]) -> Iterator[Period]:
    for each in tables(metadata.get("dates")):
        kind = text(each.get("type")) or text(table(each.get("type")).get("id")) or ""
        if kind.lower() in ("collected", "valid"):
            whole = (text(each.get("date")) or "").partition("/")
            start = text(each.get("start")) or whole[0].strip() or None
            end = text(each.get("end")) or whole[2].strip() or None
            if start or end:
                yield Period(start, end)


def _files(record: dict[str, Any], number: str, root: str) -> Iterator[Distribution]:
    files = record.get("files")
    entries = table(files).get("entries")
    found = list(table(entries).values()) if isinstance(entries, dict) else entries or files
    for each in tables(found):
        name = text(each.get("key")) or text(each.get("filename"))
        links = table(each.get("links"))
        own = f"{root}api/records/{quote(number, safe='')}/files/{quote(name or '', safe='')}/content"
        url = text(links.get("content")) or text(links.get("self")) or (own if name else None)
        if url is None or not (name or is_web(url)):
            continue
        yield Distribution(
            url=url,
            title=name,
            media_type=text(each.get("mimetype")),
            format=name.rpartition(".")[2] if name and "." in name else None,
            byte_size=count(each.get("size"))
            if each.get("size") is not None
            else count(each.get("filesize")),
            **_checksums(text(each.get("checksum"))),
        )


def _checksums(said: str | None) -> dict[str, Any]:
    """A checksum such as `md5:…`; without a word before it, it is an MD5."""
    algorithm, colon, value = (said or "").rpartition(":")
    return checksum(algorithm.lower().replace("-", "") if colon else "md5", value)


MAPPING: Final = RecordMapping(
    "zenodo",
    dataset_of,
    volatile={
        "stats": "views and downloads, counted by the repository",
        "revision": "counts changes, also those of the repository itself",
    },
)
