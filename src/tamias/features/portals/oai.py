"""Harvester for OAI-PMH repositories: formats, then records page by page, also where tokens expire."""

import re
from collections.abc import AsyncIterator
from datetime import datetime
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec
from lxml import etree

from tamias.archive.moments import shown
from tamias.features.dcat.datasets.dcat import catalogue_quads
from tamias.features.dcat.datasets.descriptions import Descriptions
from tamias.features.dcat.datasets.from_dcat import addresses_in, datasets_in
from tamias.features.dcat.datasets.mapping import MappedRecord, map_element, source_record
from tamias.features.dcat.datasets.records import MOST_PAGE, CycleDetector, described, failure, links
from tamias.features.portals.paging.position import LAG, DatedBookmark, read_bookmark
from tamias.features.portals.records.oai import MAPPING, RDF_MAPPING, OaiHeader, dataset_of, header_of, rdf_in
from tamias.features.portals.records.oai_xml import Element, content, elements, inner, local
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.dataset import Agent
from tamias.model.finding import (
    Datasets,
    Deleted,
    Finding,
    Harvest,
    HarvestEnd,
    HarvestStep,
    Problem,
    Quads,
    SourceRecords,
)
from tamias.protocols import PoliteClient

MOST_PAGES = 100_000
MOST_RESTARTS = 3
"""From the same place, one after the other."""
_MOST_EDGE = 1000
_RESPONSE_DATE = re.compile(rb"<(?:[\w.-]{1,50}:)?responseDate>\s*([0-9TZ:.-]{10,30})")
_ACCEPT = "text/xml, application/xml;q=0.9"
_PREFERRED = ("oai_dcat", "dcat", "dcat_ap", "oai_datacite", "datacite", "oai_datacite4", "oai_dc")


class _OaiState(msgspec.Struct, kw_only=True):
    """The state of a harvest: the position in the list, and counts so far."""

    formats: list[str] = msgspec.field(default_factory=list)
    """The formats still worth asking for, best first; none before they are known."""
    token: str | None = None
    since: str | None = None
    """The `from` of the requests since the last start."""
    last: str | None = None
    """The latest datestamp seen."""
    edge: list[str] = msgspec.field(default_factory=list)
    """The records of that date, which come once more after a start in the middle."""
    ordered: bool = True
    """Whether datestamps never went back: only then can a start in the middle leave nothing out."""
    days_only: bool = False
    restarts: int = 0
    stuck: int = 0
    pages: int = 0
    datasets: int = 0
    deleted: int = 0
    others: int = 0
    problems: int = 0
    size: int | None = None
    turns: CycleDetector = msgspec.field(default_factory=CycleDetector)
    name: str = ""
    email: str | None = None
    begun_at: str | None = None
    """When the harvest began, by the repository's clock."""
    tells_deletions: bool = False
    """Whether it lists records that were deleted: only then are changes enough."""
    changes: bool = False
    """Whether only what changed since the last harvest is asked for."""
    harvests: int = 0
    """Harvests of changes since the last one of everything."""
    why: str = ""


class _OaiBookmark(DatedBookmark, kw_only=True, frozen=True):
    """The bookmark of a repository, to ask for changes."""

    formats: list[str]
    since: str
    days_only: bool
    name: str
    email: str | None


class OaiHarvester:
    """Harvests all records of a repository, or of the set that the address names."""

    kinds = frozenset({"oai-pmh"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        reading = _OaiReading(harvest)
        end = None
        if reading.state.changes and not reading.state.pages:
            yield reading.step(reading.catalogue(), None)
        while end is None:
            if not reading.state.formats:
                findings, end = await reading.introduce(client)
                yield reading.step(findings, end)
                continue
            capture = await client.ask(reading.request())
            end = failure(capture, "the records of")
            findings = [] if end else reading.read(client.body(capture, MOST_PAGE))
            end = end or reading.turn()
            yield reading.step(findings, end)


class _OaiReading:
    """The conversation with one repository; all that outlives a step is in the state."""

    def __init__(self, harvest: Harvest) -> None:
        parts = urlsplit(harvest.url)
        self._base = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        arguments = dict(parse_qsl(parts.query))
        self._arguments = {
            name: arguments.pop(name, None) for name in ("set", "from", "until", "metadataPrefix")
        }
        self._own = [
            (name, value) for name, value in arguments.items() if name not in ("verb", "resumptionToken")
        ]
        self._fresh = _OaiState(since=self._arguments["from"])
        if harvest.state:
            self.state = msgspec.msgpack.decode(harvest.state, type=_OaiState)
        else:
            self.state = _changes_since(harvest.bookmark) or self._fresh
        self._page = _OaiPage()

    def request(self) -> Request:
        """Return the request for the next page. A token is sent alone: it contains all else."""
        if self.state.token:
            return self._request("ListRecords", resumptionToken=self.state.token)
        return self._request(
            "ListRecords",
            metadataPrefix=self.state.formats[0],
            set=self._arguments["set"],
            until=self._arguments["until"],
            **{"from": self.state.since},
        )

    async def introduce(self, client: PoliteClient) -> tuple[list[Finding], HarvestEnd | None]:
        """Ask the repository who it is and which formats it has."""
        said: dict[str, str] = {}
        capture = await client.ask(self._request("Identify"))
        if end := failure(capture, "the repository at"):
            return [], end
        for element in elements(client.body(capture, MOST_PAGE)):
            if isinstance(element, Problem):
                return [element], HarvestEnd(outcome=Outcome.FAILED, reason=f"{self._base}: {element.what}")
            said.setdefault(local(element), content(element) or "")
        self.state.days_only = said.get("granularity", "").upper() == "YYYY-MM-DD"
        self.state.name, self.state.email = said.get("repositoryName", ""), said.get("adminEmail")
        self.state.tells_deletions = said.get("deletedRecord") in ("persistent", "transient")
        formats = await client.ask(self._request("ListMetadataFormats"))
        if (end := failure(formats, "the formats of")) and end.retry:
            return [], end
        self.state.formats = self._choice(formats, client)
        return self.catalogue(), None

    def catalogue(self) -> list[Finding]:
        """Describe the repository."""
        name = self.state.name
        publisher = Agent(name=name, email=self.state.email) if name else None
        return [Quads(catalogue_quads(self._base, name, publisher, None))]

    def read(self, raw: bytes) -> list[Finding]:
        """Return the findings of a page; how to go on from it is left to `turn`."""
        self._page, state = _OaiPage(), self.state
        if state.begun_at is None and (date := _RESPONSE_DATE.search(raw[:4000])):
            state.begun_at = date[1].decode()
        found: list[MappedRecord] = []
        rest: list[Finding] = []
        for element in elements(raw):
            if isinstance(element, Problem):
                self._page.damaged = True
                rest.append(element)
            elif local(element) == "record":
                try:
                    mapped = self._record(element, rest)
                except ValueError as error:
                    name = content(inner(element, "identifier")) or "?"
                    rest.append(Problem(f"record {name} of {self._base}: {error}"))
                    continue
                found += [mapped] if mapped else []
            else:
                self._page.take(element)
        state.problems += sum(isinstance(finding, Problem) for finding in rest)
        state.pages += 1
        findings = [*described(found, self._base), *rest]
        if state.changes:
            deleted = [Deleted(self._page.deleted)] if self._page.deleted else []
            return [*(each for each in findings if not isinstance(each, Quads)), *deleted]
        return findings

    def turn(self) -> HarvestEnd | None:
        """Go on to the next page; return an end where there is none."""
        state, page = self.state, self._page
        state.size = page.size if page.size is not None else state.size
        code = page.error[0] if page.error else None
        if code == "noRecordsMatch":
            return self._ended(None)
        if code == "cannotDisseminateFormat" and len(state.formats) > 1:
            state.formats = state.formats[1:]
            return None
        if code == "badResumptionToken" and state.token:
            return self._restart("the repository no longer knew its token")
        if page.error:
            if not state.changes:
                reason = f"{self._base} answers {code}: {page.error[1]}"
                return HarvestEnd(outcome=Outcome.FAILED, reason=reason)
            why = f"everything was read: asked for changes, the repository answers {code}"
            self.state = msgspec.structs.replace(self._fresh, why=why)
            return None
        if page.token is None:
            return self._restart("a page was damaged") if page.damaged else self._ended(None)
        if state.turns.again([page.token, *page.identifiers] if page.identifiers else []):
            return self._ended("the repository gives the same page again")
        if state.pages >= MOST_PAGES:
            return self._ended(f"{MOST_PAGES} pages are the most that are asked for")
        state.token = page.token
        return None

    def step(self, findings: list[Finding], end: HarvestEnd | None) -> HarvestStep:
        return HarvestStep(state=msgspec.msgpack.encode(self.state), findings=findings, end=end)

    def _request(self, verb: str, **arguments: str | None) -> Request:
        given = [(name, value) for name, value in arguments.items() if value]
        return Request(url=f"{self._base}?{urlencode([('verb', verb), *given, *self._own])}", accept=_ACCEPT)

    def _choice(self, capture: Capture, client: PoliteClient) -> list[str]:
        """Return the formats, best first; Dublin Core, which every repository must have, is last."""
        if self._arguments["metadataPrefix"]:
            return [self._arguments["metadataPrefix"]]
        names = {"oai_dc"}
        for element in elements(client.body(capture, MOST_PAGE)):
            if not isinstance(element, Problem):
                names.add(content(inner(element, "metadataPrefix")) or "oai_dc")
        wanted = [each for each in names if each.lower() in _PREFERRED or "dcat" in each.lower()]
        return sorted(wanted, key=_preference)

    def _record(self, element: Element, rest: list[Finding]) -> MappedRecord | None:
        header, state = header_of(element), self.state
        self._page.identifiers.append(header.identifier)
        if self._was_there(header):
            return None
        if header.deleted:
            state.deleted += 1
            self._page.deleted.append(header.identifier)
            return None
        graph = inner(element, "RDF")
        if graph is not None:
            rest.extend(self._as_it_stands(graph, header.identifier))
            body = etree.tostring(element, with_tail=False)
            source = source_record(RDF_MAPPING, header.identifier, body, self._base, "application/xml")
            rest.append(SourceRecords([source]))
            return None
        dataset = dataset_of(element, header, self._base)
        state.datasets += dataset is not None
        state.others += dataset is None
        if dataset is None:
            self._page.deleted.append(header.identifier)
        return map_element(MAPPING, element, dataset, self._base) if dataset else None

    def _was_there(self, header: OaiHeader) -> bool:
        """Follow the dates; return whether the record was read before a start in the middle."""
        state, day = self.state, header.datestamp or ""
        state.ordered = state.ordered and day >= (state.last or "")
        if day == state.last and header.identifier in state.edge:
            return True
        if day > (state.last or ""):
            state.last, state.edge = day, []
        if day == state.last and len(state.edge) < _MOST_EDGE:
            state.edge.append(header.identifier)
        return False

    def _as_it_stands(self, graph: Element, identifier: str) -> list[Finding]:
        """Read a record that is DCAT itself. Raises `ValueError` for one that is no RDF, or no dataset."""
        quads = rdf_in(graph, self._base, identifier)
        said = Descriptions(quads)
        datasets = datasets_in(said, self._base)
        # The record is known by the repository's identifier, as any other.
        datasets[0] = msgspec.structs.replace(datasets[0], record=identifier)
        self.state.datasets += len(datasets)
        return [Quads(quads), Datasets(datasets), *links(addresses_in(said), self._base)]

    def _restart(self, why: str) -> HarvestEnd | None:
        """Ask again from the last datestamp; if dates are not in order, for all of it."""
        state = self.state
        since = state.last[:10] if state.last and state.days_only else state.last
        since = since if state.ordered or state.changes else self._arguments["from"]
        state.stuck = state.stuck + 1 if since == state.since else 0
        if state.stuck > (0 if self._page.damaged else MOST_RESTARTS):
            said = f"{why}, and asking again from {since or 'the beginning'} is of no use"
            return HarvestEnd(
                outcome=Outcome.FAILED, reason=f"{self._summary()}; {said}", retry=not self._page.damaged
            )
        state.restarts += 1
        state.token, state.since = None, since
        state.turns = CycleDetector()
        if not state.ordered and not state.changes:
            state.datasets = state.deleted = state.others = 0
            state.last, state.edge = None, []
        return None

    def _ended(self, why: str | None) -> HarvestEnd:
        state, doubts = self.state, [why] if why else []
        seen = state.datasets + state.deleted + state.others
        if state.problems:
            doubts.append(f"{state.problems} problems in reading them")
        if state.size is not None and seen < state.size and not state.changes:
            doubts.append(f"the repository counts {state.size}")
        return HarvestEnd(
            outcome=Outcome.OK if seen or not state.problems else Outcome.FAILED,
            reason="; ".join(filter(None, [self._summary(), state.why, *doubts])),
            complete=not doubts and not state.changes,
            changes_only=state.changes,
            bookmark=None if doubts else self._bookmark(),
        )

    def _bookmark(self) -> bytes | None:
        """Return the bookmark; None where the repository does not list deletions."""
        state = self.state
        since = _before(state.begun_at, days_only=state.days_only)
        if not (state.tells_deletions or state.changes) or since is None or self._arguments["until"]:
            return None
        return msgspec.msgpack.encode(shown(_OaiBookmark, state, since=since, latest=since))

    def _summary(self) -> str:
        state = self.state
        text = f"{state.datasets} datasets in {state.pages} pages of {state.formats[0]}"
        text += f" that changed since {state.since}, by from=" if state.changes else ""
        text += f", {state.deleted} deleted records" if state.deleted else ""
        text += f", {state.others} records about something else" if state.others else ""
        return text + (f", {state.restarts} times begun again in the middle" if state.restarts else "")


def _changes_since(bookmark: bytes | None) -> _OaiState | None:
    """Return the beginning of a harvest of changes; None where everything is to be read."""
    known = read_bookmark(bookmark, _OaiBookmark)
    return shown(_OaiState, known, harvests=known.harvests + 1, changes=True) if known else None


def _before(moment: str | None, *, days_only: bool) -> str | None:
    """Return a time a little before, as `from` wants it: records may be listed later than they are dated."""
    try:
        since = datetime.fromisoformat(moment or "") - LAG
    except ValueError:
        return None
    return since.strftime("%Y-%m-%d" if days_only else "%Y-%m-%dT%H:%M:%SZ")


class _OaiPage:
    """The token, size and error of a page, and identifiers on it."""

    def __init__(self) -> None:
        self.identifiers: list[str] = []
        self.token: str | None = None
        self.size: int | None = None
        self.error: tuple[str, str] | None = None
        self.damaged = False
        self.deleted: list[str] = []

    def take(self, element: Element) -> None:
        if local(element) == "resumptionToken":
            self.token = content(element)
            size = element.get("completeListSize", "")
            self.size = int(size[:18]) if size.isascii() and size.isdigit() else None
        elif local(element) == "error":
            self.error = element.get("code", "?"), content(element) or "without a word"


def _preference(prefix: str) -> tuple[int, str]:
    """Return the order of `_PREFERRED`; a profile of DCAT stands with DCAT."""
    name = prefix.lower()
    return (_PREFERRED.index(name) if name in _PREFERRED else 2), prefix
