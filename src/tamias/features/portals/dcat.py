"""Harvester for a DCAT catalogue in any RDF syntax, page after page in either form of Hydra's paging.

The catalogue's own statements stay as they are; only the labels of its blank nodes change.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from itertools import islice
from urllib.parse import urlencode

import msgspec
from pyoxigraph import NamedNode, Quad

from tamias.content.blank_labels import Labels
from tamias.features.dcat.datasets.descriptions import MOST_STATEMENTS, Descriptions, is_web
from tamias.features.dcat.datasets.from_dcat import datasets_in
from tamias.features.dcat.datasets.records import DATASETS_A_FINDING, catalogue_findings, failure
from tamias.features.portals.paging.listing import as_stamp
from tamias.features.portals.paging.position import LAG, DatedBookmark, read_bookmark
from tamias.features.portals.paging.validators import file_bookmark, request_if_changed, unchanged_end
from tamias.features.portals.records.dcat import catalogue_records
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.finding import (
    Finding,
    Harvest,
    HarvestEnd,
    HarvestStep,
    Problem,
    Quads,
    SourceRecords,
)
from tamias.model.vocabulary import RDF_TYPE, sound_iri
from tamias.protocols import PoliteClient

MOST_PAGES = 10_000
MOST_BYTES = 1 << 30
"""Of one page; it is read as a stream."""

_HYDRA = "http://www.w3.org/ns/hydra/core#"
_NEXT = (_HYDRA + "next", _HYDRA + "nextPage")
_TOTAL = _HYDRA + "totalItems"
_SEEN_BYTES = 8
_QUADS_A_STEP = 20_000


class _CatalogueState(msgspec.Struct, kw_only=True):
    """The state of a harvest: the next page, and marks of those before."""

    page: str
    datasets: int = 0
    problems: int = 0
    since: str | None = None
    """Only datasets that changed since are asked for; None reads everything."""
    harvests: int = 0
    """Harvests of changes since the last one of everything."""
    why: str = ""
    """Why everything is read, where changes were not enough."""
    seen: bytes = b""
    """Of each page the beginning of the digests of its address and of its content."""
    pages: int = 0
    total: int | None = None
    sha256: str = ""
    saved: int = msgspec.field(default=0, name="kept")
    """Findings of the page that are saved, where it is too large for one step."""
    records: int = 0
    """Datasets that are kept as documents."""
    apart: bool = True
    """Whether each record can be said without the others."""
    begun_at: str | None = None
    """When the harvest began, by the catalogue's clock."""
    counted: int | None = None
    """What the catalogue counts, where only changes are read."""
    first: bytes = b""
    """The mark of what is on the first page, where only changes are read."""

    def read_everything(self, url: str, why: str) -> None:
        """Begin again, without asking for changes."""
        fresh = _CatalogueState(page=url, why=f"everything was read: {why}"[:1000])
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))

    def step(self, findings: Sequence[Finding] = (), end: HarvestEnd | None = None) -> HarvestStep:
        """Return the state with what it brought."""
        if end is not None and self.since is not None:
            end = msgspec.structs.replace(end, changes_only=True)
        return HarvestStep(state=msgspec.msgpack.encode(self), findings=findings, end=end)


class CatalogueHarvester:
    """Reads the pages of a catalogue, each as an ordinary document is read."""

    kinds = frozenset({"dcat"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        state = _CatalogueState(page=harvest.url)
        if harvest.state:
            state = msgspec.msgpack.decode(harvest.state, type=_CatalogueState)
        elif mark := read_bookmark(harvest.bookmark, DatedBookmark):
            # CKAN takes no time with a zone.
            since = (datetime.fromisoformat(mark.latest) - LAG).replace(tzinfo=None)
            state.since, state.harvests = since.isoformat(timespec="seconds"), mark.harvests + 1
        if state.since is not None:
            async for step in _changes(state, harvest.url, client):
                yield step
            if state.since is not None:
                return
        end: HarvestEnd | None = None
        while end is None:
            known = None if harvest.state or state.pages else harvest.bookmark
            capture = await client.ask(request_if_changed(state.page, known))
            end = unchanged_end(capture, known) or failure(
                capture, f"page {state.pages + 1} of the catalogue,", MOST_BYTES
            )
            if end is not None:
                yield state.step(end=end)
                return
            if not state.pages:
                state.begun_at = _date_of(capture)
            page, held = _CataloguePage(state, capture, harvest.url), list[Finding]()
            for findings in page.parts(client):
                if held:
                    yield state.step(held)
                held = findings
                state.saved += len(held)
            end = page.turn()
            yield state.step(held, end)


class _CataloguePage:
    """A page of the catalogue; how to go on from it is written into the state."""

    def __init__(self, state: _CatalogueState, capture: Capture, catalogue: str) -> None:
        self._state = state
        self._catalogue = catalogue
        self._url = capture.final_url
        self._capture = capture
        self._said = Descriptions()
        self._labels = Labels(f"p{state.pages + 1}")
        self._names: list[str] = []
        self.rest: list[Quad] = []
        """What the page says of no dataset."""

    def parts(self, client: PoliteClient) -> Iterator[list[Finding]]:
        """Yield statements as they stand, then their datasets; without what was stored before.

        An ordinary page is one part.
        """
        state, digest = self._state, self._capture.body.sha256 if self._capture.body else ""
        if state.sha256 != digest:
            state.sha256, state.saved = digest, 0
        part, quads = list[Finding](), 0
        for finding in islice(self._findings(client), state.saved, None):
            part.append(finding)
            quads += len(finding.quads) if isinstance(finding, Quads) else 0
            state.problems += isinstance(finding, Problem)
            if quads >= _QUADS_A_STEP:
                yield part
                part, quads = [], 0
        yield part

    def turn(self) -> HarvestEnd | None:
        """Turn to the next page; return an end where there is none, or no use in it."""
        state = self._state
        content = self.mark or _mark("")
        if self._names and content in _marks(state.seen):
            return _ended(state, f"page {state.page} says what a page before it said")
        state.seen += _mark(state.page) + content
        state.pages += 1
        state.datasets += len(self._names)
        state.total = self.total() or state.total
        following = self._following()
        if following is None:
            end = _ended(state, None)
            bookmark = file_bookmark(self._capture) if state.pages == 1 else _bookmark(state)
            return msgspec.structs.replace(end, bookmark=bookmark) if end.complete else end
        if _mark(following) in _marks(state.seen):
            return _ended(state, f"page {state.page} leads back to {following}")
        if state.pages >= MOST_PAGES:
            return _ended(state, f"{MOST_PAGES} pages are the most that are asked for")
        state.page, state.sha256, state.saved = following, "", 0
        return None

    def _findings(self, client: PoliteClient) -> Iterator[Finding]:
        for finding in client.read(self._capture):
            if isinstance(finding, Quads):
                quads = [self._labels.quad(quad) for quad in finding.quads]
                self._said.add(quads)
                yield Quads(quads)
            elif isinstance(finding, Problem):
                yield finding
        if self._said.full:
            yield Problem(
                f"{self._url}: of more than {MOST_STATEMENTS} statements on one page the rest "
                "is kept, but no datasets are read from it"
            )
        if self._said.full:
            datasets = datasets_in(self._said, self._url)
        else:
            found = catalogue_records(self._said, self._url, self._catalogue)
            datasets = [dataset for dataset, _ in found.records]
            self._state.records += len(datasets)
            self._state.apart = self._state.apart and not found.shared
            self.rest = [Quad(each.subject, each.predicate, each.object) for each in found.rest]
            for start in range(0, len(datasets), DATASETS_A_FINDING):
                part = found.records[start : start + DATASETS_A_FINDING]
                yield SourceRecords([record for _, record in part])
        self._names = [dataset.iri for dataset in datasets]
        yield from catalogue_findings(self._said, datasets, self._url)

    def changes(self, client: PoliteClient) -> list[Finding]:
        """Read a page of changes; the document is written again from what is stored."""
        return [each for each in self._findings(client) if not isinstance(each, Quads)]

    @property
    def mark(self) -> bytes:
        """Return a digest of the datasets on the page; empty without any."""
        return _mark("\n".join(sorted(self._names))) if self._names else b""

    def _following(self) -> str | None:
        """Return the next page, by this page's own view, or the only view there is."""
        own = [NamedNode(url) for url in (self._url, self._state.page) if sound_iri(url)]
        views = [view for predicate in _NEXT for view in self._said.saying(predicate)]
        if any(self._said.values(view, RDF_TYPE.value) for view in own):
            views = [view for view in views if view in own]
        found = (url for view in views for url in self._said.words(view, *_NEXT))
        return next(filter(is_web, found), None)

    def total(self) -> int | None:
        """Return how many datasets the catalogue counts."""
        texts = (text for node in self._said.saying(_TOTAL) for text in self._said.texts(node, _TOTAL))
        return max((int(text) for text in texts if text.isascii() and text.isdigit()), default=None)


async def _changes(state: _CatalogueState, url: str, client: PoliteClient) -> AsyncIterator[HarvestStep]:
    """Read changes, by `modified_since` as CKAN has it.

    Without an end, everything is to be read: the state begins again, and says why.
    """
    if state.counted is None:
        capture = await client.ask(Request(url=url))
        if end := _trouble(capture):
            yield state.step(end=end)
            return
        page = _CataloguePage(state, capture, url)
        page.changes(client)
        state.counted, state.first, state.begun_at = page.total() or 0, page.mark, _date_of(capture)
        state.page = f"{url}{'&' if '?' in url else '?'}{urlencode({'modified_since': state.since})}"
        yield state.step([Quads(page.rest)])
    end = None
    while end is None:
        capture = await client.ask(Request(url=state.page))
        if end := _trouble(capture):
            yield state.step(end=end)
            return
        page = _CataloguePage(state, capture, url)
        findings = page.changes(client) if capture.outcome is Outcome.OK else []
        if capture.outcome is not Outcome.OK or (page.mark and page.mark == state.first):
            state.read_everything(url, "the catalogue does not take modified_since")
            return
        end = page.turn()
        yield state.step(findings)
    held = await client.records_held()
    if held != state.counted or not state.apart:
        why = f"{held:,} datasets are known, and the catalogue counts {state.counted:,}"
        state.read_everything(url, why)
        return
    reason = f"{state.datasets} of {held} datasets read, those changed since {state.since} by modified_since"
    end = HarvestEnd(
        outcome=Outcome.OK,
        reason=f"{reason}; the catalogue counts as many as are known",
        bookmark=_bookmark(state),
    )
    yield state.step(end=end)


def _trouble(capture: Capture) -> HarvestEnd | None:
    """Return the end where another try can help; any other failure shows that changes are not supported."""
    end = failure(capture, "the changes of the catalogue,", MOST_BYTES)
    return end if end is not None and end.retry else None


def _bookmark(state: _CatalogueState) -> bytes | None:
    """Return the bookmark; None where the next harvest has to read everything."""
    total = state.counted if state.since is not None else state.total
    read = state.records if state.since is None else total
    if not state.apart or not state.begun_at or total is None or read != total:
        return None
    return msgspec.msgpack.encode(DatedBookmark(latest=state.begun_at, harvests=state.harvests))


def _date_of(capture: Capture) -> str | None:
    """Return when a page was sent, by the server's clock."""
    said = capture.hops[-1].header("date") if capture.hops else None
    try:
        return as_stamp(parsedate_to_datetime(said or "").isoformat())
    except ValueError:
        return None


def _mark(text: str) -> bytes:
    return sha256(text.encode()).digest()[:_SEEN_BYTES]


def _marks(seen: bytes) -> set[bytes]:
    return {seen[start : start + _SEEN_BYTES] for start in range(0, len(seen), _SEEN_BYTES)}


def _ended(state: _CatalogueState, why: str | None) -> HarvestEnd:
    summary = f"{state.datasets} datasets on {state.pages} pages"
    if state.total is not None:
        summary += f", of {state.total} that the catalogue counts"
    summary += f"; {state.why}" if state.why else ""
    doubts = [why] if why else []
    if state.problems:
        doubts.append(f"{state.problems} problems in reading them")
    if state.total is not None and state.datasets < state.total:
        doubts.append("the catalogue counts more, or has changed meanwhile")
    if not state.datasets:
        doubts.append("nothing there is a dcat:Dataset")
    outcome = Outcome.OK if state.datasets else Outcome.FAILED
    return HarvestEnd(outcome=outcome, reason="; ".join([summary, *doubts]), complete=not doubts)
