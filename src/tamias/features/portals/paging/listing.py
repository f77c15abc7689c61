"""Listings of portals as tables: their addresses, where records are in answers, how changes are asked for."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from tamias.features.dcat.datasets.dcat import catalogue_quads
from tamias.features.dcat.datasets.mapping import BAD, MappedRecord, RecordMapping, map_record
from tamias.features.dcat.datasets.records import MOST_PAGE, failure
from tamias.features.portals.paging.position import Position
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.dataset import Agent
from tamias.model.finding import Deleted, HarvestEnd, HarvestStep, Present, Problem, Quads
from tamias.protocols import PoliteClient

MOST_DATASETS = 5_000_000
"""Records of one harvest."""
STEP_RECORDS = 250
"""Records of one step: what is in memory at once, and what is repeated at the most after a crash."""

_TOO_MUCH = frozenset({408, 413, 414, 425})


class RecordPage(msgspec.Struct, frozen=True):
    """A page whose records are not parsed yet."""

    records: Sequence[Any]
    total: int | None = None
    """How many there are, by the page's own word."""
    following: str = ""
    """The address of the page behind it, where the listing is linked."""
    collections: Sequence[str] | None = None
    """The collections to read, where it is a page of the list of collections."""
    is_all: bool = False
    """Whether all records are on it, though it was asked for those from a number on."""


AddressOf = Callable[[Position, int, int], tuple[str, int]]
"""Where the page stands that holds the record of a number, and the number of its first record."""
Detailed = MappedRecord | Problem | HarvestEnd


class ChangeOrder(NamedTuple):
    """The way in which changes are asked for."""

    field: str
    """What dates a record."""
    stamp: Callable[[Any], str | None]
    """When a record was changed (ISO 8601). May raise one of `BAD`."""
    latest: AddressOf | None = None
    """A listing of the latest changes first. Without one, the listing's own address has `since` in it."""
    is_listed: bool = False
    """Whether all records are listed to the end, and those that did not change not read."""
    deletions: Callable[[Position, PoliteClient], AsyncGenerator[Present | Deleted]] | None = None
    """Asks which records were deleted, or which are all that are left; the place says how."""


def json_at(path: str, kind: Any = str, *, needed: bool = True) -> Callable[[bytes], Any]:
    """Make a reader of one value of JSON, by the names that lead to it with dots between them.

    It raises one of `BAD`; where the value is not `needed`, it is None if one of the names is missing.

    >>> json_at("resource.id")(b'{"resource": {"id": "a", "b": 1}}'), json_at("a.b", needed=False)(b"{}")
    ('a', None)
    """
    names, form = path.split("."), kind
    for name in reversed(names):
        form = msgspec.defstruct("JsonTable", [(name, form) if needed else (name, form | None, None)])
    decoder = msgspec.json.Decoder(form)

    def read(raw: bytes) -> Any:
        value: Any = decoder.decode(raw)
        for name in names:
            value = getattr(value, name, None)
        return value

    return read


def json_page(records: str, total: str = "") -> Callable[[bytes], RecordPage]:
    """Make a reader of pages by the places of their records and of their total; without one, all are there.

    It raises one of `BAD` for what is no page.
    """
    found, counted = json_at(records, list[msgspec.Raw]), json_at(total, int, needed=False) if total else None

    def read(body: bytes) -> RecordPage:
        page = found(body)
        return RecordPage(page, counted(body) if counted else len(page))

    return read


class PortalListing(msgspec.Struct, kw_only=True):
    """The listing of one software: its addresses, and where records are in its answers."""

    name: str
    address: AddressOf
    page: Callable[[bytes], RecordPage]
    """Reads a page, but not yet its records. Raises one of `BAD` for what is none."""
    mapping: RecordMapping | None = None
    """How its records, in JSON or read from it, become datasets."""
    read: Callable[[Any, str], MappedRecord] | None = None
    """Reads any other record. Raises one of `BAD`."""
    details: Callable[[Position, PoliteClient, Any], Awaitable[Detailed]] | None = None
    """Asks for a record by itself, where the listing only names it. May raise one of `BAD`."""
    is_dataset: Callable[[Any], bool] = lambda _record: True
    replaced: Callable[[Position, PoliteClient, Any], Awaitable[list[str] | HarvestEnd]] | None = None
    """Asks which records a changed one has replaced."""
    key: Callable[[Any], str] = json_at("id")
    """By what the listing is ordered. Raises one of `BAD` for a record without one."""
    name_of: Callable[[Any], str] | None = None
    """The unique name of a record, where the key is not unique."""
    accept: str = "application/json"
    is_file: bool = False
    """Whether it is one file, which may have validators."""
    pages: bool = False
    """Whether pages of datasets without files are followed."""
    step: int = STEP_RECORDS
    """Records of one step at the most."""
    refused_for_size: frozenset[int] = _TOO_MUCH
    """Statuses below 500 that a smaller page may help against."""
    order: ChangeOrder | None = None
    """How changes are asked for; None where they cannot be."""
    largest: int = 1
    """Records to ask for at the most, and first."""
    any_offset: bool = True
    """Whether a page can begin at any record, not only at multiples of its size."""
    ordered: bool = True
    """Whether it promises records in the order of their keys."""
    is_linked: bool = False
    """Whether pages are found by links, in one collection after the other; the address is of the place's."""
    deepest: int | None = None
    """How far an offset goes; beyond it the listing goes on from the last record, in another window."""
    window: Callable[[Position], str] = lambda place: place.after

    async def ask(self, place: Position, client: PoliteClient, url: str) -> RecordPage | HarvestEnd:
        """Request a page, or the `HarvestEnd` of a harvest without it."""
        place.requests += 1
        capture = await client.ask(Request(url=url, accept=self.accept))
        answer: RecordPage | HarvestEnd = read_answer(client, capture, self.page, self.name)
        return answer

    def record(self, raw: Any, root: str) -> MappedRecord:
        """Read a record. Raises one of `BAD`."""
        if self.read:
            return self.read(raw, root)
        return map_record(self.mapping, msgspec.json.encode(raw), root)  # type: ignore[arg-type]


async def ask_json(
    place: Position, client: PoliteClient, url: str, read: Callable[[bytes], Any], name: str
) -> Any:
    """Request JSON and return what `read` finds in it, or the `HarvestEnd` of a harvest without it."""
    place.requests += 1
    capture = await client.ask(Request(url=url, accept="application/json"))
    return read_answer(client, capture, read, name)


def read_answer(
    client: PoliteClient, capture: Capture, read: Callable[[bytes], Any], name: str, *, retry: bool = False
) -> Any:
    """Return what `read` finds in a response, or the `HarvestEnd` of a harvest without it."""
    if end := failure(capture, name):
        return end
    try:
        return read(client.body(capture, MOST_PAGE))
    except BAD as error:
        reason = f"{name} {capture.url}: not a listing ({error})"[:1000]
        return HarvestEnd(outcome=Outcome.FAILED, reason=reason, retry=retry)


def stamp_of(order: ChangeOrder, record: Any) -> str | None:
    """Return when a record was changed, as a text that sorts by time; None without a date."""
    try:
        return as_stamp(order.stamp(record))
    except BAD:
        return None


def as_stamp(text: str | None) -> str | None:
    """Return a time (ISO 8601, UTC by default) as a text that sorts by time; None for any other text.

    >>> as_stamp("2024-01-02T04:04:05+01:00"), as_stamp("last week")
    ('2024-01-02T03:04:05.000000+00:00', None)
    """
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")


def opening(place: Position) -> HarvestStep:
    """Return the first step of a harvest: the catalogue itself."""
    publisher = Agent(name=place.publisher) if place.publisher else None
    quads = catalogue_quads(place.root, place.title, publisher, place.root)
    return HarvestStep(state=state_of(place), findings=[Quads(quads)])


def state_of(place: Position) -> bytes:
    """Return the place as the harvest's state."""
    return msgspec.msgpack.encode(place)


def place_of(state: bytes | None) -> Position | None:
    """Return the place that a state holds; None without a readable one."""
    try:
        return msgspec.msgpack.decode(state, type=Position) if state else None
    except msgspec.MsgspecError:
        return None
