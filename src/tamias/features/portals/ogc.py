"""Harvester for OGC API Records and STAC APIs: collections, then the items of each, page by page.

Both are the same protocol: a list of collections, and pages of GeoJSON features that name the next one.
"""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

import msgspec

from tamias.features.dcat.datasets.dcat import catalogue_quads
from tamias.features.dcat.datasets.mapping import map_record
from tamias.features.dcat.datasets.records import (
    CycleDetector,
    count,
    failure,
    json_of,
    table,
    tables,
    text,
)
from tamias.features.portals.paging.changes import DatedState
from tamias.features.portals.paging.listing import as_stamp
from tamias.features.portals.records.ogc import RECORDS_MAPPING, STAC_MAPPING
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.finding import Finding, Harvest, HarvestEnd, HarvestStep, Problem, Quads
from tamias.model.url import host_key
from tamias.protocols import PoliteClient

PAGE_RECORDS = 100
MOST_PAGES = 100_000
MOST_COLLECTIONS = 10_000
_LONGEST_NAME = 1_000
_MOST_GAPS = 10
"""Reasons why something is missing that are told; the state of a harvest is stored with every page."""
_ACCEPT = "application/geo+json, application/json;q=0.9"


class _OgcState(DatedState, kw_only=True):
    """The state of a harvest: the next request, and counts so far."""

    kind: str
    root: str
    next: str | None
    """The page to ask for; None before the next collection."""
    collections: list[str] = msgspec.field(default_factory=list)
    """Those whose items are still to be read."""
    listing: bool = True
    """Whether pages of collections are being read."""
    title: str = ""
    pages: int = 0
    others: int = 0
    """Collections of features that are data, not records."""
    matched: int = 0
    gaps: list[str] = msgspec.field(default_factory=list)
    turns: CycleDetector = msgspec.field(default_factory=CycleDetector)
    first: bool = False
    """Whether the page to ask for is the first one of its collection."""
    listed: int = 0
    """Collections that are records themselves."""


class OgcRecordsHarvester:
    """Harvests a catalogue that speaks OGC API Records, as GeoNetwork and pygeoapi do."""

    kinds = frozenset({"ogc-records"})

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        state = _state(harvest)
        end: HarvestEnd | None = None
        if not harvest.state:
            findings, end = await _introduce(state, client)
            yield state.step(findings, end)
        while end is None:
            if state.next is None and not state.collections:
                if await _explains(state, client):
                    yield state.step([], _end(state))
                    return
                continue
            if state.next is None:
                state.next, state.first = _items_address(state), True
                state.turns = CycleDetector()
            capture = await client.ask(Request(url=state.next, accept=_ACCEPT))
            end = failure(capture, "the records of")
            if end is not None and not end.retry and state.since is not None:
                end = None
                _read_everything(state, f"{state.next} does not list changes")
                continue
            if end is not None and not end.retry and state.datasets:
                _note_gap(state, end.reason)
                state.next, end = None, None
                state.listing = False
                yield state.step()
                continue
            findings = [] if end else _read(state, client, capture)
            yield state.step(findings, end)


class StacHarvester(OgcRecordsHarvester):
    """Harvests a STAC API: its collections and their items."""

    kinds = frozenset({"stac"})


def _state(harvest: Harvest) -> _OgcState:
    if harvest.state:
        return msgspec.msgpack.decode(harvest.state, type=_OgcState)
    parts = urlsplit(harvest.url)
    path = parts.path.partition("/collections")[0].rstrip("/") + "/"
    root = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    state = _OgcState(kind=harvest.kind, root=root, next=_collections_address(root))
    state.ask_for_changes(harvest.bookmark)
    return state


def _collections_address(root: str) -> str:
    return f"{root}collections?f=json&limit={PAGE_RECORDS}"


async def _explains(state: _OgcState, client: PoliteClient) -> bool:
    """Compare what was read with what the catalogue counts; if they differ, begin again and return False."""
    if state.since is None:
        return True
    held, counted = await client.records_held(), state.matched + state.listed
    if held == counted:
        return True
    _read_everything(state, f"{held:,} records are known, and the catalogue counts {counted:,}")
    return False


def _read_everything(state: _OgcState, why: str) -> None:
    """Begin again, without asking for changes."""
    address = _collections_address(state.root)
    state.read_everything(_OgcState(kind=state.kind, root=state.root, next=address, title=state.title), why)


async def _introduce(state: _OgcState, client: PoliteClient) -> tuple[list[Finding], HarvestEnd | None]:
    """Read the landing page: the catalogue's title."""
    capture = await client.ask(Request(url=f"{state.root}?f=json", accept="application/json"))
    if (end := failure(capture, "the catalogue at")) and end.retry:
        return [], end
    try:
        landing = table(json_of(client, capture))
    except msgspec.DecodeError:
        landing = {}
    state.title = text(landing.get("title")) or ""
    return [Quads(catalogue_quads(state.root, state.title, None, state.root))], None


def _items_address(state: _OgcState) -> str:
    name = quote(state.collections.pop(0), safe="")
    # Servers of STAC refuse parameters that they do not know; those of pygeoapi answer HTML without `f`.
    form = "" if state.kind == "stac" else "&f=json"
    if state.since is not None:
        form += "&sortby=-properties.updated" if state.kind == "stac" else "&sortby=-updated"
    return f"{state.root}collections/{name}/items?limit={PAGE_RECORDS}{form}"


def _read(state: _OgcState, client: PoliteClient, capture: Capture) -> list[Finding]:
    """Return the findings of a page, and go on to the next one."""
    state.pages += 1
    is_first, state.next, state.first = state.first, None, False
    try:
        page = table(json_of(client, capture))
    except msgspec.DecodeError as error:
        state.problems += 1
        state.listing = False
        return [Problem(f"{capture.url}: not JSON: {error}"[:1000])]
    found = tables(page.get("collections" if state.listing else "features"))
    if state.listing:
        records = [each for each in found if _is_record(state, each)]
        state.listed += len(records)
        _note_collections(state, found)
    else:
        state.matched += count(page.get("numberMatched")) or 0 if is_first else 0
        records = _changed(state, found)
    is_over = not state.listing and len(records) < len(found)
    if not state.pages:  # It begins again.
        return []
    mapping = STAC_MAPPING if state.kind == "stac" else RECORDS_MAPPING
    findings = state.findings(
        records,
        state.root,
        lambda record: map_record(mapping, msgspec.json.encode(record), state.root),
        lambda record: text(record.get("id")),
    )
    _turn(state, _following(page, capture.final_url) if found and not is_over else None, found)
    return findings


def _turn(state: _OgcState, following: str | None, found: list[dict[str, Any]]) -> None:
    """Go on to the following page, unless it was there before, or there were too many."""
    if following and state.turns.again([following, *(text(each.get("id")) or "" for each in found)]):
        _note_gap(state, f"{following} gives the same page again")
        following = None
    if state.pages >= MOST_PAGES:
        _note_gap(state, f"{MOST_PAGES} pages are the most that are asked for")
        following, state.collections = None, []
    state.next = following
    state.listing = state.listing and following is not None


def _changed(state: _OgcState, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records to read: all of a page, or those that were updated since the last harvest.

    Begins again where they do not come in the order of their updates.
    """
    said = [text(table(each.get("properties")).get("updated")) for each in found]
    for each in said:
        state.note_update(each)
    dates = [stamp for stamp in map(as_stamp, said) if stamp is not None]
    if state.since is None:
        return found
    if len(dates) < len(said) or dates != sorted(dates, reverse=True):
        _read_everything(state, "the records are not in the order of `updated`")
        return []
    return [each for each, stamp in zip(found, dates, strict=True) if stamp >= state.since]


def _note_collections(state: _OgcState, found: list[dict[str, Any]]) -> None:
    """Add the collections whose items are read: all of STAC, and those of records."""
    names = [name for each in found if (name := text(each.get("id")))]
    wanted = {text(each.get("id")) for each in found if _has_records(state, each)}
    state.others += sum(name not in wanted for name in names)
    state.collections += [name for name in names if name in wanted and len(name) <= _LONGEST_NAME]
    if any(len(name) > _LONGEST_NAME for name in names):
        _note_gap(state, f"collections whose names have more than {_LONGEST_NAME} characters are left out")
    if len(state.collections) > MOST_COLLECTIONS:
        _note_gap(state, f"of {len(state.collections)} collections {MOST_COLLECTIONS} are read")
        del state.collections[MOST_COLLECTIONS:]


def _note_gap(state: _OgcState, reason: str) -> None:
    if len(state.gaps) < _MOST_GAPS:
        state.gaps.append(reason[:_LONGEST_NAME])


def _is_record(state: _OgcState, collection: dict[str, Any]) -> bool:
    """Return whether a collection is itself a dataset: not if it is a catalogue of records."""
    return state.kind == "stac" or not _has_records(state, collection)


def _has_records(state: _OgcState, collection: dict[str, Any]) -> bool:
    return state.kind == "stac" or text(collection.get("itemType")) in ("record", "catalog")


def _following(page: dict[str, Any], base: str) -> str | None:
    """Return the next page, by GET and on the same host; None where there is none."""
    for link in tables(page.get("links")):
        address = text(link.get("href"))
        if text(link.get("rel")) == "next" and address and (text(link.get("method")) or "GET") == "GET":
            target = urljoin(base, address)
            return target if host_key(target) == host_key(base) else None
    return None


def _end(state: _OgcState) -> HarvestEnd:
    said = [f"{state.datasets} datasets on {state.pages} pages"]
    if state.others:
        said[0] += f", {state.others} collections of features whose items are data"
    if state.since is not None:
        said[0] = f"{state.datasets} of {state.matched + state.listed} records read, in {state.pages} pages"
        said.append(f"those updated since {state.since}; the catalogue counts as many as are known")
    said += filter(None, [state.why])
    doubts = list(state.gaps)
    if state.problems:
        doubts.append(f"{state.problems} records could not be read")
    if state.matched > state.datasets and state.since is None:
        doubts.append(f"the catalogue counts {state.matched}")
    if not state.datasets:
        doubts.append("nothing there is a record")
    outcome = Outcome.OK if state.datasets or state.since is not None else Outcome.FAILED
    is_counted = state.since is not None or state.matched + state.listed == state.datasets
    return HarvestEnd(
        outcome=outcome,
        reason="; ".join(said + doubts),
        complete=not doubts and state.since is None,
        bookmark=state.bookmark() if is_counted and not doubts else None,
    )
