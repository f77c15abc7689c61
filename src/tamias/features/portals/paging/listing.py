"""The paging driver of listings: adaptive in size, exact about what it missed, flat in memory.

A portal may change while it is read. Where its records come in the order of a key, each page begins with the
last record of the one before: if that is not met, the page is asked for further up.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from tamias.features.dcat.datasets.dcat import catalogue_quads
from tamias.features.dcat.datasets.mapping import BAD, MappedRecord, RecordMapping, map_record
from tamias.features.dcat.datasets.records import MOST_PAGE, described, failure
from tamias.features.portals.paging.position import Position, digest, read_to_the_end
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.finding import Finding, HarvestEnd, HarvestStep, Problem, Quads
from tamias.protocols import PoliteClient

MOST_DATASETS = 5_000_000
"""Records of one harvest."""
STEP_RECORDS = 250
"""Records of one step: what is in memory at once, and what is repeated at the most after a crash."""

_SKIPS_IN_A_ROW = 10
_IDLE_PAGES = 10
_TOO_MUCH = frozenset({408, 413, 414, 425})


class RecordPage(msgspec.Struct, frozen=True):
    """A page whose records are not parsed yet."""

    records: Sequence[msgspec.Raw]
    total: int | None = None


AddressOf = Callable[[Position, int, int], tuple[str, int]]
"""Where the page stands that holds the record of a number, and the number of its first record."""


class ChangeOrder(NamedTuple):
    """The order of changes in a listing, the latest first."""

    field: str
    """What the records are ordered by."""
    address: AddressOf
    stamp: Callable[[bytes], str | None]
    """When a record was changed (ISO 8601). May raise one of `BAD`."""


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


class PortalListing(msgspec.Struct, kw_only=True):
    """The listing of one software: its addresses, and where records are in its answers."""

    name: str
    mapping: RecordMapping
    """How its records become datasets."""
    address: AddressOf
    records: Callable[[bytes], list[msgspec.Raw]]
    """The records of a page, not yet looked into. Raises one of `BAD` for what is no page."""
    total: Callable[[bytes], int | None] | None = None
    """How many there are, by the page's own word; None: all of them are on it."""
    key: Callable[[bytes], str] = json_at("id")
    """By what the listing is ordered; unique. Raises one of `BAD` for a record without one."""
    order: ChangeOrder | None = None
    """How changes are asked for; None where they cannot be."""
    largest: int = 1
    """Records to ask for at the most, and first."""
    any_offset: bool = True
    """Whether a page can begin at any record, not only at multiples of its size."""
    deepest: int | None = None
    """How far an offset goes; beyond it the listing goes on from the key of the last record."""

    def page(self, body: bytes) -> RecordPage:
        """Read a page. Raises one of `BAD` for what is none."""
        records = self.records(body)
        return RecordPage(records, self.total(body) if self.total else len(records))


async def read_listing(
    listing: PortalListing, place: Position, client: PoliteClient, first: Capture | None = None
) -> AsyncIterator[HarvestStep]:
    """Read a listing from a place to its end; `first` is its first page, if it was fetched already."""
    reader = _ListingReader(listing, place, client, first)
    await reader.mark()
    idle = 0
    while True:
        page = await reader.page()
        if isinstance(page, HarvestEnd):
            yield HarvestStep(state=state_of(place), findings=reader.problems(), end=page)
            return
        before = place.taken + place.lost
        for findings in reader.take(page):
            yield HarvestStep(state=state_of(place), findings=findings)
        idle = 0 if place.taken + place.lost > before else idle + 1
        end = reader.end(page, idle)
        if end:
            yield HarvestStep(state=state_of(place), findings=reader.problems(), end=end)
            return


class _Entry(NamedTuple):
    number: int
    key: str
    record: msgspec.Raw


class _ListingReader:
    def __init__(
        self, listing: PortalListing, place: Position, client: PoliteClient, first: Capture | None
    ) -> None:
        self._first = first
        self._listing = listing
        self._place = place
        self._client = client
        self._problems: list[Finding] = []
        self._start = 0
        self._size = 0
        self._back = 0

    def problems(self) -> list[Finding]:
        """Return the problems since the last call."""
        problems, self._problems = self._problems, []
        return problems

    async def mark(self) -> None:
        """Ask when the latest change was: what changes from now on is for the next harvest."""
        place, order = self._place, self._listing.order
        if place.marked or order is None:
            return
        url, _ = order.address(place, 0, 1)
        place.marked = True
        answer = await ask_json(place, self._client, url, self._listing.page, self._listing.name)
        if isinstance(answer, RecordPage) and answer.records:
            place.mark = stamp_of(order, answer.records[0])

    async def page(self) -> RecordPage | HarvestEnd:
        """Return the next page, smaller if need be; a record that never comes is left out.

        If none of those behind it comes either, it is the portal that is down: then nothing was left out.
        """
        place = self._place
        offset, lost, bridged = place.offset, place.lost, place.bridged
        skipped: list[Finding] = []
        while True:
            capture = await self._ask()
            answer: RecordPage | HarvestEnd = read_json(
                self._client, capture, self._listing.page, self._listing.name, retry=place.taken > 0
            )
            if isinstance(answer, RecordPage):
                place.grow(self._listing.largest)
                self._problems.extend(skipped)
                return answer
            if answer.retry_after_ms is None and _may_help(capture):
                if place.size > 1:
                    place.shrink()
                    continue
                if self._can_skip() and len(skipped) < _SKIPS_IN_A_ROW:
                    skipped.append(Problem(f"record {place.offset + 1} left out: {answer.reason}"))
                    place.skip()
                    continue
            place.offset, place.lost, place.bridged = offset, lost, bridged
            return answer

    async def _ask(self) -> Capture:
        place, listing = self._place, self._listing
        overlap = 1 if place.bridged and listing.any_offset and place.ordered else 0
        start = max(0, place.offset - overlap - self._back)
        size = place.offset - start + place.size
        self._size = size
        url, self._start = listing.address(place, start, size)
        place.requests += 1
        first, self._first = self._first, None
        return first or await self._client.ask(Request(url=url, accept="application/json"))

    def _can_skip(self) -> bool:
        """Return whether the record at the offset is one that the portal counts, and may be left out."""
        return self._place.total is not None and self._place.offset < self._place.total

    def take(self, page: RecordPage) -> Iterator[list[Finding]]:
        """Yield the findings of a page, in parts; the place moves along."""
        place = self._place
        if not place.window:
            place.counted(page.total)
        if self._is_capped(page):
            place.capped(len(page.records))
        entries = list(self._entries(page))
        keys = [entry.key for entry in entries]
        if place.ordered and (keys != sorted(keys) or self._out_of_order(keys)):
            place.ordered, place.recent = False, []
        if self._fell_behind(keys):
            return
        self._back = 0
        place.bridged = bool(entries) and entries[-1].number == self._start + len(page.records)
        before = place.offset
        yield from self._parts(entries)
        place.offset = self._start + len(page.records)
        if place.offset <= before:
            place.bridged = False
        if not place.ordered:
            place.recent = [digest(key) for key in keys]

    def _is_capped(self, page: RecordPage) -> bool:
        """Return whether a page that is not the last has fewer records than asked for.

        Where pages begin at multiples of their size, the next one would begin at a wrong record.
        """
        records = len(page.records)
        is_last = page.total is None or self._start + records >= page.total
        return 0 < records < self._size and not (self._listing.any_offset or is_last)

    def _out_of_order(self, keys: list[str]) -> bool:
        """Return whether all records here belong before the last one: then the order was chance."""
        place = self._place
        return bool(keys and keys[-1] < place.after and not self._back and not place.window)

    def _fell_behind(self, keys: list[str]) -> bool:
        """Return whether the last record was not met again: some before it are gone, others moved up."""
        place = self._place
        gap = place.ordered and place.bridged and self._listing.any_offset and self._start > 0
        if not (gap and keys and keys[0] > place.after):
            return False
        self._back = self._back * 4 or 8
        return True

    def _entries(self, page: RecordPage) -> Iterator[_Entry]:
        """Yield each record with its number and key; one without a key is a problem."""
        for number, raw in enumerate(page.records, self._start + 1):
            try:
                yield _Entry(number, self._listing.key(raw), raw)
            except BAD as error:
                self._lose(f"record {number}", error)

    def _parts(self, entries: Sequence[_Entry]) -> Iterator[list[Finding]]:
        fresh = self._fresh(entries)
        for first in range(0, len(fresh), STEP_RECORDS):
            part = fresh[first : first + STEP_RECORDS]
            records = [record for record in map(self._mapped, part) if record]
            self._place.taken += len(records)
            self._place.after = max(self._place.after, part[-1].key)
            self._place.offset = part[-1].number
            yield [*described(records, self._place.root, pages=False), *self.problems()]

    def _fresh(self, entries: Sequence[_Entry]) -> list[_Entry]:
        """Return the records that were not there before, each once."""
        place, recent = self._place, set(self._place.recent)
        fresh: dict[str, _Entry] = {}
        for entry in entries:
            if place.ordered:
                known = entry.key <= place.after
            else:
                known = entry.number <= place.offset or digest(entry.key) in recent
            if not known:
                fresh.setdefault(entry.key, entry)
        return list(fresh.values())

    def _mapped(self, entry: _Entry) -> MappedRecord | None:
        order = self._listing.order
        if order is not None and self._place.mark is not None and not self._place.undated:
            self._place.undated = stamp_of(order, entry.record) is None
        try:
            return map_record(self._listing.mapping, bytes(entry.record), self._place.root)
        except BAD as error:
            self._lose(f"record {entry.key!r}", error)
            return None

    def _lose(self, what: str, error: Exception) -> None:
        self._place.lost += 1
        where = f"{self._listing.name} {self._place.root}"
        self._problems.append(Problem(f"{where}: {what} left out: {error}"[:1000]))

    def end(self, page: RecordPage, idle: int) -> HarvestEnd | None:
        """Return how the harvest ends with this page; None where it goes on."""
        place, deepest = self._place, self._listing.deepest
        if self._back:
            return None
        if idle >= _IDLE_PAGES:
            return read_to_the_end(place, "the portal gave the same datasets again and again")
        if place.taken >= MOST_DATASETS:
            return read_to_the_end(place, f"more than {MOST_DATASETS:,} are not read in one harvest")
        if not page.records or (page.total is not None and place.offset >= page.total):
            if not place.again:
                return read_to_the_end(place)
            place.restart()
        elif deepest is not None and place.offset + place.size + 1 > deepest:
            place.window, place.offset, place.bridged = place.after, 0, False
        return None


async def ask_json(
    place: Position, client: PoliteClient, url: str, read: Callable[[bytes], Any], name: str
) -> Any:
    """Request JSON and return what `read` finds in it, or the `HarvestEnd` of a harvest without it."""
    place.requests += 1
    capture = await client.ask(Request(url=url, accept="application/json"))
    return read_json(client, capture, read, name)


def read_json(
    client: PoliteClient, capture: Capture, read: Callable[[bytes], Any], name: str, *, retry: bool = False
) -> Any:
    """Return what `read` finds in a response, or the `HarvestEnd` of a harvest without it."""
    if end := failure(capture, name):
        return end
    try:
        return read(client.body(capture, MOST_PAGE))
    except BAD as error:
        reason = f"{name} {capture.url}: not the JSON of a listing ({error})"[:1000]
        return HarvestEnd(outcome=Outcome.FAILED, reason=reason, retry=retry)


def stamp_of(order: ChangeOrder, record: msgspec.Raw) -> str | None:
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


def _may_help(capture: Capture) -> bool:
    """Return whether a smaller request may succeed."""
    if capture.outcome is Outcome.OK:
        return True
    status = capture.status
    if capture.outcome is not Outcome.FAILED or status == 429:
        return False
    return status is None or not 400 <= status < 500 or status in _TOO_MUCH


def opening(place: Position) -> HarvestStep:
    """Return the first step of a harvest: the catalogue itself."""
    quads = catalogue_quads(place.root, place.title, None, place.root)
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
