"""Harvester for CSW 2.0.2 (GeoNetwork, pycsw): pages of GetRecords in ISO 19139, else in Dublin Core.

A page that the server cannot make is asked for in smaller parts, down to the record that breaks it.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec
from lxml import etree

from tamias.features.dcat.datasets.dcat import catalogue_quads
from tamias.features.dcat.datasets.mapping import MappedRecord, map_element
from tamias.features.dcat.datasets.records import MOST_PAGE, CycleDetector, failure
from tamias.features.portals.paging.changes import DatedState, a_little_before
from tamias.features.portals.paging.position import DatedBookmark, read_bookmark
from tamias.features.portals.records.csw import (
    DUBLIN_CORE_MAPPING,
    ISO_MAPPING,
    dataset_of,
    identifier_of,
    stamp_of,
)
from tamias.features.portals.records.oai_xml import BARE, Element, content, inner, local
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.dataset import Agent
from tamias.model.finding import Finding, Harvest, HarvestEnd, HarvestStep, Problem, Quads
from tamias.protocols import PoliteClient

PAGE_RECORDS: Final = 100
MOST_PAGES: Final = 100_000
_SKIPS_IN_A_ROW: Final = 10
_GMD: Final = "http://www.isotc211.org/2005/gmd"
_CSW: Final = "http://www.opengis.net/cat/csw/2.0.2"
_ACCEPT: Final = "application/xml, text/xml;q=0.9"
_OWN: Final = frozenset({
    "service", "version", "request", "typenames", "elementsetname", "resulttype", "startposition",
    "maxrecords", "outputschema", "constraint", "constraintlanguage", "constraint_language_version",
    "acceptversions",
})  # fmt: skip
"""Parameters that the harvester sets itself, whatever the address says."""
_DAY: Final = timedelta(days=1)
_TAKEN_OVER: Final = ("schemas", "title", "publisher", "days_only")
"""What one harvest leaves to the next, so that it does not ask for the capabilities again."""


class _CswState(DatedState, kw_only=True):
    """The state of a harvest: the next request, and counts so far."""

    schemas: list[str] = msgspec.field(default_factory=list)
    """The forms of records still worth asking for, best first; none before they are known."""
    title: str = ""
    publisher: str = ""
    start: int = 1
    size: int = PAGE_RECORDS
    matched: int | None = None
    changed: bool = False
    """Whether the catalogue counted something else before."""
    pages: int = 0
    skips: int = 0
    """Records that were left out one after the other."""
    days_only: bool = False
    """Whether a record is dated by the day."""
    comparing: bool = False
    """Whether all changes were read, and the catalogue's count is to be compared."""
    turns: CycleDetector = msgspec.field(default_factory=CycleDetector)


class _CswBookmark(DatedBookmark, kw_only=True, frozen=True):
    """The bookmark of a CSW: the next harvest does not request the capabilities again."""

    schemas: list[str]
    title: str
    publisher: str
    days_only: bool


class CswHarvester:
    """Harvests all records of a catalogue service."""

    kinds = frozenset({"csw"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        reading = _CswReading(harvest, client)
        end: HarvestEnd | None = None
        if not harvest.state and reading.state.schemas:
            yield reading.state.step(reading.catalogue())
        while end is None:
            step = await reading.next_step()
            end = step.end
            yield step


class _CswReading:
    """The conversation with one service; all that outlives a step is in the state."""

    def __init__(self, harvest: Harvest, client: PoliteClient) -> None:
        parts = urlsplit(harvest.url)
        self._base = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        self._own = [each for each in parse_qsl(parts.query) if each[0].lower() not in _OWN]
        self._client = client
        if harvest.state:
            self.state = msgspec.msgpack.decode(harvest.state, type=_CswState)
        else:
            self.state = _changes_since(harvest.bookmark) or _CswState()

    async def next_step(self) -> HarvestStep:
        """Read the capabilities or a page, or compare counts."""
        if not self.state.schemas:
            return await self._introduce()
        return await (self._compare() if self.state.comparing else self._page())

    def catalogue(self) -> list[Finding]:
        """Describe the catalogue itself."""
        name = self.state.publisher
        agent = Agent(name=name) if name else None
        return [Quads(catalogue_quads(self._base, self.state.title, agent, self._base))]

    async def _introduce(self) -> HarvestStep:
        """Read the capabilities: title, provider, and the forms of records."""
        capture = await self._ask({"request": "GetCapabilities"})
        if end := failure(capture, "the capabilities of"):
            return self.state.step([], end)
        root = _root(self._client.body(capture, MOST_PAGE))
        if root is None or local(root) != "Capabilities":
            return self.state.step(
                [], HarvestEnd(outcome=Outcome.FAILED, reason=f"{capture.url}: {_why(root)}")
            )
        schemas = {content(value) for value in root.iter("{*}Value")}
        self.state.schemas = [each for each in (_GMD, _CSW) if each in schemas] or [_GMD, _CSW]
        self.state.title = content(inner(root, "Title")) or ""
        self.state.publisher = content(inner(root, "ProviderName")) or ""
        return self.state.step(self.catalogue())

    async def _page(self) -> HarvestStep:
        state = self.state
        capture = await self._ask(self._records(state.start, state.size))
        end = failure(capture, "the records of")
        if end is not None and (end.retry or end.outcome is Outcome.REFUSED):
            return self.state.step([], end)
        root = _root(self._client.body(capture, MOST_PAGE)) if end is None else None
        results = inner(root, "SearchResults") if root is not None else None
        if results is None:
            return self._refused(capture, end.reason if end else _why(root))
        state.pages += 1
        state.skips = 0
        matched = _number(results, "numberOfRecordsMatched")
        state.changed = state.changed or state.matched not in (None, matched)
        state.matched = matched
        records = [each for each in results.iterchildren("{*}*") if isinstance(each.tag, str)]
        return self._take(records, _number(results, "nextRecord"))

    def _take(self, records: Sequence[Element], following: int | None) -> HarvestStep:
        for record in records:
            said = stamp_of(record)
            self.state.days_only = self.state.days_only or len(said or "") <= len("2024-01-31")
            self.state.note_update(said)
        return self.state.step(
            self.state.findings(records, self._base, self._map, identifier_of), self._turn(records, following)
        )

    def _map(self, record: Element) -> MappedRecord:
        mapping = ISO_MAPPING if local(record) == "MD_Metadata" else DUBLIN_CORE_MAPPING
        return map_element(mapping, record, dataset_of(record, self._base), self._base)

    def _turn(self, records: Sequence[Element], following: int | None) -> HarvestEnd | None:
        """Go on to the next page: as the server says, unless that leads nowhere."""
        state = self.state
        reached = state.start + len(records)
        if records and state.turns.again(identifier_of(each) or "?" for each in records):
            return self._ended(f"the page from record {state.start} on has been there")
        if state.pages >= MOST_PAGES:
            return self._ended(f"{MOST_PAGES} pages are the most that are asked for")
        if not records or reached > (state.matched or 0):
            return self._ended(None)
        state.start = following if following and state.start < following <= reached else reached
        state.size = min(PAGE_RECORDS, state.size * 2)
        return None

    def _refused(self, capture: Capture, why: str) -> HarvestStep:
        """Try a smaller page, another form of records, or the record after it."""
        state, reason = self.state, f"{capture.url}: {why}"[:1000]
        if state.since is not None:
            return self._read_everything(f"{reason} does not list changes")
        if state.pages and state.size > 1:
            state.size = max(1, state.size // 3)
            return self.state.step()
        if not state.pages and len(state.schemas) > 1:
            state.schemas = state.schemas[1:]
            return self.state.step()
        if state.pages and state.start <= (state.matched or 0) and state.skips < _SKIPS_IN_A_ROW:
            problem = Problem(f"record {state.start} left out: {reason}")
            state.start, state.skips, state.problems = state.start + 1, state.skips + 1, state.problems + 1
            return self.state.step(
                [problem], self._ended(None) if state.start > (state.matched or 0) else None
            )
        return self.state.step([], HarvestEnd(outcome=Outcome.FAILED, reason=reason, retry=bool(state.pages)))

    async def _compare(self) -> HarvestStep:
        """End a harvest of changes, if the catalogue counts as many records as are held."""
        state = self.state
        capture = await self._ask(self._records(1, 1, since=None) | {"resultType": "hits"})
        if end := failure(capture, "the records of"):
            return self.state.step([], end)
        root = _root(self._client.body(capture, MOST_PAGE))
        results = inner(root, "SearchResults") if root is not None else None
        total = _number(results, "numberOfRecordsMatched") if results is not None else None
        held = await self._client.records_held()
        if total != held:
            return self._read_everything(f"{held:,} records are known, and the catalogue counts {total}")
        said = f"{state.datasets} of {total} records read, those changed since {state.since}"
        end = HarvestEnd(
            outcome=Outcome.OK,
            reason=f"{said} by dct:modified; the catalogue counts as many as are known",
            bookmark=self._bookmark(),
        )
        return self.state.step([], end)

    def _ended(self, why: str | None) -> HarvestEnd | None:
        state, doubts = self.state, [why] if why else []
        if state.since is not None and not doubts:
            state.comparing = True
            return None
        if state.problems:
            doubts.append(f"{state.problems} records could not be read")
        if state.matched is not None and state.datasets + state.problems < state.matched:
            doubts.append(f"the catalogue counts {state.matched}")
        if state.changed:
            doubts.append("the catalogue changed while it was read")
        form = "ISO 19139" if state.schemas[0] == _GMD else "Dublin Core"
        said = [f"{state.datasets} records on {state.pages} pages, in {form}", *filter(None, [state.why])]
        return HarvestEnd(
            outcome=Outcome.OK if state.datasets or not doubts else Outcome.FAILED,
            reason="; ".join(said + doubts),
            complete=not doubts,
            bookmark=None if doubts else self._bookmark(),
        )

    def _bookmark(self) -> bytes | None:
        return self.state.bookmark(_CswBookmark, **{name: getattr(self.state, name) for name in _TAKEN_OVER})

    def _read_everything(self, why: str) -> HarvestStep:
        old = self.state
        fresh = _CswState(schemas=old.schemas, title=old.title, publisher=old.publisher)
        self.state.read_everything(fresh, why)
        return self.state.step()

    def _records(self, start: int, size: int, since: str | None = "") -> dict[str, str]:
        since = self.state.since if since == "" else since
        changes = {
            "constraintLanguage": "CQL_TEXT",
            "constraint_language_version": "1.1.0",
            "constraint": f"dct:modified >= '{since}'",
        }
        return {
            "request": "GetRecords",
            "typeNames": "csw:Record",
            "elementSetName": "full",
            "resultType": "results",
            "outputSchema": self.state.schemas[0],
            "startPosition": str(start),
            "maxRecords": str(size),
            **(changes if since is not None else {}),
        }

    async def _ask(self, words: dict[str, str]) -> Capture:
        query = urlencode([("service", "CSW"), ("version", "2.0.2"), *words.items(), *self._own])
        return await self._client.ask(Request(url=f"{self._base}?{query}", accept=_ACCEPT))


def _changes_since(bookmark: bytes | None) -> _CswState | None:
    """Return the beginning of a harvest of changes; None where everything is to be read."""
    known = read_bookmark(bookmark, _CswBookmark)
    if known is None:
        return None
    if known.days_only:
        since = (datetime.fromisoformat(known.latest) - _DAY).date().isoformat()
    else:
        since = a_little_before(known.latest)[: len("2024-01-31T12:00:00")]
    taken = {name: getattr(known, name) for name in (*_TAKEN_OVER, "latest")}
    return _CswState(**taken, since=since, harvests=known.harvests + 1)


def _root(raw: bytes) -> Element | None:
    """Parse a document; None for what is no XML, or declares a document type."""
    try:
        root = etree.fromstring(raw, etree.XMLParser(**BARE))
    except etree.XMLSyntaxError:
        return None
    return root if root.getroottree().docinfo.internalDTD is None else None


def _why(root: Element | None) -> str:
    """Describe an answer that is not the expected one."""
    if root is None:
        return "no XML"
    text = content(inner(root, "ExceptionText")) if local(root) == "ExceptionReport" else None
    return text or f"<{local(root)[:50]}> is not the answer of a CSW"


def _number(element: Element, name: str) -> int | None:
    text = (element.get(name) or "").strip()
    return int(text[:18]) if text.isascii() and text.isdigit() else None
