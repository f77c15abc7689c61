"""Harvester for Zenodo and any other InvenioRDM: its search, in slices of time where it ends after 10,000."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from tamias.features.dcat.datasets.dcat import catalogue_quads
from tamias.features.dcat.datasets.descriptions import is_web
from tamias.features.dcat.datasets.mapping import MappedRecord, RecordMapping, map_record
from tamias.features.dcat.datasets.records import (
    TITLES,
    checksum,
    count,
    failure,
    json_of,
    one_text,
    table,
    tables,
    text,
    texts,
)
from tamias.features.portals.fields import Fields, at, terms
from tamias.features.portals.paging.changes import DatedState, a_little_before
from tamias.features.portals.paging.ways import roots
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


Context = Mapping[str, str]


def _licence(metadata: dict[str, Any], _: Context) -> str | None:
    """Return the address of the licence, or its name."""
    for found in (*tables(metadata.get("license")), *tables(metadata.get("rights"))):
        props = text(table(found.get("props")).get("url"))
        name = text(found.get("id")) or one_text(found.get("title"))
        if address := props or text(found.get("link")) or text(found.get("url")) or _licence_address(name):
            return address
    return _licence_address(text(metadata.get("license")))


def _licence_address(name: str | None) -> str | None:
    """Return the address of a licence by its short name; an unknown name as it stands.

    >>> _licence_address("cc-by-4.0"), _licence_address("other-open")
    ('https://creativecommons.org/licenses/by/4.0/', 'other-open')
    """
    if found := _CREATIVE_COMMONS.fullmatch(name or ""):
        return f"https://creativecommons.org/licenses/{found[1].lower()}/{found[2]}/"
    is_zero = name is not None and name.lower() in ("cc0-1.0", "cc-zero", "cc0")
    return "https://creativecommons.org/publicdomain/zero/1.0/" if is_zero else name


def _orcid(person: dict[str, Any], _: Context) -> str | None:
    said = table(person.get("person_or_org")) or person
    found = [
        text(said.get("orcid")),
        *(
            text(each.get("identifier"))
            for each in tables(said.get("identifiers"))
            if each.get("scheme") == "orcid"
        ),
    ]
    return f"https://orcid.org/{found[-1]}" if found[-1] else None


def _is_contact(person: dict[str, Any]) -> bool:
    role = text(person.get("type")) or text(table(person.get("role")).get("id")) or ""
    return role.lower().replace(" ", "") == "contactperson"


def _more(metadata: dict[str, Any], _: Context) -> Iterator[DcatProperty]:
    """Titles and descriptions in more languages, and what the record is related to."""
    for field, value, name in (
        ("additional_titles", "title", "dct:alternative"),
        ("additional_descriptions", "description", "dct:description"),
    ):
        for each in tables(metadata.get(field)):
            language = text(table(each.get("lang")).get("id"))
            yield from (DcatProperty(name, one, language) for one in texts(each.get(value)))
    for each in tables(metadata.get("related_identifiers")):
        kind = text(each.get("relation")) or text(table(each.get("relation_type")).get("id")) or ""
        is_doi = (text(each.get("scheme")) or "").lower() == "doi"
        for one in texts(each.get("identifier")):
            target = f"https://doi.org/{one}" if is_doi and "://" not in one else one
            yield DcatProperty(_RELATIONS.get(kind.lower(), "dct:relation"), target)
    for each in tables(metadata.get("references")):
        yield from (DcatProperty("dct:references", one) for one in texts(each.get("reference")))


def _places(metadata: dict[str, Any], _: Context) -> Iterator[str]:
    found = tables(metadata.get("locations"))
    for place in [each for feature in found for each in tables(feature.get("features"))] or found:
        east, north = text(place.get("lon")), text(place.get("lat"))
        if east and north:
            yield f"POINT({east} {north})"
        yield from texts(place.get("place"))


def _side(number: int, name: str) -> Any:
    """Make a rule for one end of a period, which may be written as `START/END`."""
    return lambda said, _: (
        text(said.get(name)) or (text(said.get("date")) or "").partition("/")[number].strip() or None
    )


def _is_covered(said: dict[str, Any]) -> bool:
    kind = text(said.get("type")) or text(table(said.get("type")).get("id")) or ""
    return kind.lower() in ("collected", "valid")


def _files(record: dict[str, Any], context: Context) -> Iterator[Distribution]:
    files = record.get("files")
    entries = table(files).get("entries")
    found = list(table(entries).values()) if isinstance(entries, dict) else entries or files
    for each in tables(found):
        key = quote(text(each.get("key")) or text(each.get("filename")) or "", safe="")
        yield from _FILE.all(each, {**context, "file": key})


def _checked(said: dict[str, Any], _: Context) -> dict[str, Any]:
    """A checksum such as `md5:…`; without a word before it, it is an MD5."""
    name = text(said.get("key")) or text(said.get("filename"))
    algorithm, colon, value = (text(said.get("checksum")) or "").rpartition(":")
    form = {"format": name.rpartition(".")[2]} if name and "." in name else {}
    return checksum(algorithm.lower().replace("-", "") if colon else "md5", value) | form


_PERSON: Final[dict[str, Any]] = {"name": "person_or_org.name name", "iri": _orcid}
_FILE: Final = Fields(
    Distribution, also=_checked,
    url="links.content links.self {root}api/records/{number}/files/{file}/content", title="key filename",
    media_type="mimetype", byte_size="size filesize",
)  # fmt: skip
_RECORD: Final = Fields(
    Dataset,
    iri="{doi} {page}", record="id", title="metadata.title title", description="metadata.description",
    identifiers="{own_doi} id", keywords="metadata.keywords metadata.subjects.subject|metadata.subjects.term",
    landing_page="{page}", access_rights="metadata.access_right access.files",
    licence=lambda record, context: _licence(table(record.get("metadata")), context),
    publisher=Fields(Agent, name="metadata.publisher"),
    creator=Fields(Agent, "metadata.creators", **_PERSON),
    contact=Fields(Agent, "metadata.contributors", when=_is_contact, **_PERSON),
    issued="metadata.publication_date", modified="updated modified", record_issued="created",
    record_modified="updated modified", language="metadata.language metadata.languages.id",
    spatial=lambda record, context: _places(table(record.get("metadata")), context),
    version="metadata.version",
    temporal=Fields(Period, "metadata.dates", when=_is_covered, start=_side(0, "start"), end=_side(2, "end")),
    distributions=_files,
    agents=(
        Fields(
            AgentRole, "metadata.creators", after=1, property="=dct:creator", agent=Fields(Agent, **_PERSON)
        ),
        Fields(
            AgentRole, "metadata.contributors", when=lambda each: not _is_contact(each),
            property="=dct:contributor", agent=Fields(Agent, **_PERSON),
        ),
    ),
    more=(
        terms(TITLES, path="metadata"),
        lambda record, context: _more(table(record.get("metadata")), context),
        terms({}, {"references": "dct:references", "notes": "adms:versionNotes"}, "metadata"),
    ),
)  # fmt: skip


def dataset_of(record: Any, root: str) -> Dataset:
    """Read a record as a dataset. Raise `ValueError` for one without identifier or title."""
    number = quote(text(table(record).get("id")) or "", safe="")
    doi = next(filter(None, (text(each) for name in _DOIS for each in at(record, name))), None)
    links = table(table(record).get("links"))
    pages = (text(links.get(name)) for name in ("self_html", "html"))
    address = f"https://doi.org/{doi}" if doi and is_web(f"https://doi.org/{doi}") else ""
    return _RECORD.of(
        table(record), root, number=number, doi=address, own_doi=doi if address and doi else "",
        page=next(filter(is_web, pages), None) or f"{root}records/{number}",
    )  # fmt: skip


_DOIS: Final = (("doi",), ("metadata", "doi"), ("pids", "doi", "identifier"))


MAPPING: Final = RecordMapping(
    "zenodo",
    dataset_of,
    volatile={
        "stats": "views and downloads, counted by the repository",
        "revision": "counts changes, also those of the repository itself",
    },
)
