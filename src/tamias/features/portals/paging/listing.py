"""The paging driver of listings: adaptive in size, exact about what it missed, flat in memory.

A portal may change while it is read. Where its records come in the order of a key, each page begins with the
last record of the one before: if that is not met, the page is asked for further up.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from tamias.features.dcat.datasets.dcat import catalogue_quads
from tamias.features.dcat.datasets.mapping import BAD, MappedRecord, RecordMapping, map_record
from tamias.features.dcat.datasets.records import MOST_PAGE, described, failure
from tamias.features.portals.paging.position import Position, bookmark_of, digest, read_to_the_end
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.dataset import Agent
from tamias.model.finding import Deleted, Finding, HarvestEnd, HarvestStep, Present, Problem, Quads
from tamias.protocols import PoliteClient

MOST_DATASETS = 5_000_000
"""Records of one harvest."""
STEP_RECORDS = 250
"""Records of one step: what is in memory at once, and what is repeated at the most after a crash."""

FIRST_PAGE = 20
"""Records first asked for, where the latest changes come first."""
_SKIPS_IN_A_ROW = 10
_IDLE_PAGES = 10
_TOO_MUCH = frozenset({408, 413, 414, 425})


class RecordPage(msgspec.Struct, frozen=True):
    """A page whose records are not parsed yet."""

    records: Sequence[Any]
    total: int | None = None
    """How many there are, by the page's own word."""
    is_all: bool = False
    """Whether all records are on it, though it was asked for those from a number on."""


AddressOf = Callable[[Position, int, int], tuple[str, int]]
"""Where the page stands that holds the record of a number, and the number of its first record."""
Detailed = MappedRecord | Problem | HarvestEnd


class ChangeOrder(NamedTuple):
    """How changes are asked for."""

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
    """How its records, in JSON, become datasets."""
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
        return self.read(raw, root) if self.read else map_record(self.mapping, bytes(raw), root)  # type: ignore[arg-type]


async def read_listing(
    listing: PortalListing, place: Position, client: PoliteClient, first: Capture | None = None
) -> AsyncIterator[HarvestStep]:
    """Read a listing from a place to its end; `first` is its first page, if it was fetched already.

    If the place says so, only what changed is read, unless the portal does not count as many records then.
    """
    if place.changes and not place.since:
        place.since = place.time_before_mark()
    reader, idle = _ListingReader(listing, place, client, first), 0
    while True:
        await reader.mark()
        page = await reader.page()
        if isinstance(page, HarvestEnd):
            if place.since and not page.retry:
                reader.begin_again(f"the portal does not list changes: {page.reason}")
                continue
            yield reader.step(reader.problems(), page)
            return
        passed = place.passed
        async for findings in reader.take(page):
            yield reader.step(findings, reader.stopped)
            if reader.stopped:
                return
        idle = 0 if place.passed > passed else idle + 1
        if end := reader.end(page, idle):
            async for step in reader.last_steps(end):
                yield step
                if step.end:
                    return


class _Entry(NamedTuple):
    number: int
    key: str
    name: str
    record: Any


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
        self.stopped: HarvestEnd | None = None
        """Why the last page was not read to its end."""
        self._is_over = False
        """Whether all changes were read."""
        self._begin()

    def begin_again(self, why: str) -> None:
        """Read everything."""
        self._place.read_everything(why)
        self._is_over, self._back = False, 0
        self._begin()

    def _begin(self) -> None:
        place, listing = self._place, self._listing
        self._latest = listing.order.latest if place.since and listing.order else None
        place.ordered = place.ordered and listing.ordered and not self._latest
        if not place.offset and not place.window:
            place.size = min(FIRST_PAGE, listing.largest) if self._latest else listing.largest

    def step(self, findings: Sequence[Finding] = (), end: HarvestEnd | None = None) -> HarvestStep:
        """Return a step with the state after it; the end of a harvest of changes says that it is one."""
        if end is not None and self._place.since:
            end = msgspec.structs.replace(end, changes_only=True)
        return HarvestStep(state=state_of(self._place), findings=findings, end=end)

    def problems(self) -> list[Finding]:
        """Return the problems since the last call."""
        problems, self._problems = self._problems, []
        return problems

    async def mark(self) -> None:
        """Ask when the latest change was: what changes from now on is for the next harvest."""
        place, order = self._place, self._listing.order
        if place.marked or order is None or order.latest is None:
            return
        url, _ = order.latest(place, 0, 1)
        place.marked = True
        answer = await self._listing.ask(place, self._client, url)
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
            answer: RecordPage | HarvestEnd = read_answer(
                self._client, capture, self._listing.page, self._listing.name, retry=place.taken > 0
            )
            if isinstance(answer, RecordPage):
                place.grow(self._listing.largest, 5 if self._latest else 6 / 5)
                self._problems.extend(skipped)
                return answer
            if answer.retry_after_ms is None and self._may_help(capture):
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
        url, self._start = (self._latest or listing.address)(place, start, size)
        place.requests += 1
        first, self._first = self._first, None
        return first or await self._client.ask(Request(url=url, accept=listing.accept))

    def _may_help(self, capture: Capture) -> bool:
        """Return whether a smaller request may succeed."""
        if capture.outcome is Outcome.OK:
            return True
        status = capture.status
        if capture.outcome is not Outcome.FAILED or status == 429:
            return False
        return status is None or not 400 <= status < 500 or status in self._listing.refused_for_size

    def _can_skip(self) -> bool:
        """Return whether the record at the offset is one that the portal counts, and may be left out."""
        return self._place.total is not None and self._place.offset < self._place.total

    async def take(self, page: RecordPage) -> AsyncIterator[list[Finding]]:
        """Yield the findings of a page, in parts; the place moves along."""
        place = self._place
        self._start = 0 if page.is_all else self._start
        if self._latest and not self._is_latest_first(page):
            return
        if not place.window:
            place.counted(page.total)
        if self._is_capped(page):
            place.capped(len(page.records))
        entries = list(self._entries(page))
        keys = [entry.key for entry in entries]
        if self._out_of_order(keys):
            place.ordered, place.recent = False, []
        if self._fell_behind(keys):
            return
        self._back = 0
        place.bridged = bool(entries) and entries[-1].number == self._start + len(page.records)
        before = place.offset
        async for findings in self._parts(entries):
            yield findings
            if self.stopped:
                return
        place.offset = self._start + len(page.records)
        if place.offset <= before:
            place.bridged = False
        if not place.ordered:
            place.recent = [digest(entry.name) for entry in entries]

    def _is_latest_first(self, page: RecordPage) -> bool:
        """Return whether the latest changes come first; if not, begin again."""
        place, order = self._place, self._listing.order
        assert order is not None
        dates = [stamp_of(order, each) or "" for each in page.records]
        is_late = bool(self._start or not dates or dates[0] >= (place.mark or ""))
        if is_late and all(dates) and dates == sorted(dates, reverse=True):
            self._is_over = bool(dates) and dates[-1] < place.since
            return True
        self.begin_again(f"the records are not in the order of {order.field}")
        return False

    def _is_capped(self, page: RecordPage) -> bool:
        """Return whether a page that is not the last has fewer records than asked for.

        Where pages begin at multiples of their size, the next one would begin at a wrong record.
        """
        records = len(page.records)
        is_last = page.total is None or self._start + records >= page.total
        return 0 < records < self._size and not (self._listing.any_offset or is_last)

    def _out_of_order(self, keys: list[str]) -> bool:
        """Return whether the order was chance: a page has none, or belongs before the last record."""
        place = self._place
        is_before = bool(keys and keys[-1] < place.after and not self._back and not place.window)
        return place.ordered and (is_before or keys != sorted(keys))

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
                key = self._listing.key(raw)
                yield _Entry(number, key, self._listing.name_of(raw) if self._listing.name_of else key, raw)
            except BAD as error:
                self._lose(f"record {number}", error)

    async def _parts(self, entries: Sequence[_Entry]) -> AsyncIterator[list[Finding]]:
        place, fresh = self._place, self._fresh(entries)
        if present := [each.name for each in fresh if self._is_unchanged(each)]:
            fresh = [each for each in fresh if each.name not in set(present)]
            place.present += len(present)
            place.taken += len(present)
            yield [Present(present)]
        for first in range(0, len(fresh), self._listing.step):
            records, more = list[MappedRecord](), list[Finding]()
            for entry in fresh[first : first + self._listing.step]:
                found = await self._read(entry, more)
                if isinstance(found, HarvestEnd):
                    self.stopped = found
                    break
                place.pass_by(entry.key, entry.name)
                place.offset = entry.number
                records += [found] if found else []
            place.taken += len(records)
            findings = described(records, place.root, pages=self._listing.pages)
            if place.since:  # The document is written again from what is stored: nothing is said twice.
                findings = [each for each in findings if not isinstance(each, Quads)]
            yield [*findings, *more, *self.problems()]
            if self.stopped:
                return

    def _is_unchanged(self, entry: _Entry) -> bool:
        """Return whether a record that is listed did not change since the last harvest."""
        place, order = self._place, self._listing.order
        if not place.since or order is None or not order.is_listed:
            return False
        stamp = stamp_of(order, entry.record)
        return stamp is not None and stamp < place.since

    def _fresh(self, entries: Sequence[_Entry]) -> list[_Entry]:
        """Return the records that were not there before, each once."""
        place, recent = self._place, set(self._place.recent)
        fresh: dict[str, _Entry] = {}
        for entry in entries:
            known = digest(entry.name) in recent
            if place.ordered:
                known = entry.key < place.after or (known and entry.key == place.after)
            else:
                known = known or entry.number <= place.offset
            if self._latest and not known and self._listing.order:
                known = (stamp_of(self._listing.order, entry.record) or "") < place.since
            if not known:
                fresh.setdefault(entry.name, entry)
        return list(fresh.values())

    async def _read(self, entry: _Entry, more: list[Finding]) -> MappedRecord | HarvestEnd | None:
        listing, place = self._listing, self._place
        if listing.order is not None:
            self._note_date(listing.order, entry.record)
        if not listing.is_dataset(entry.record):
            place.others += 1
            return None
        try:
            if place.since and listing.replaced:
                replaced = await listing.replaced(place, self._client, entry.record)
                if isinstance(replaced, HarvestEnd):
                    return replaced
                more += [Deleted(replaced)] if replaced else []
            if listing.details is None:
                return listing.record(entry.record, place.root)
            found = await listing.details(place, self._client, entry.record)
        except BAD as error:
            self._lose(f"record {entry.name}", error)
            return None
        if isinstance(found, Problem):
            place.lost += 1
            self._problems.append(found)
            return None
        return found

    def _note_date(self, order: ChangeOrder, record: Any) -> None:
        place = self._place
        try:
            said = order.stamp(record)
        except BAD:
            said = None
        stamp = as_stamp(said)
        place.undated = place.undated or stamp is None
        place.days_only = place.days_only or len(said or "") <= len("2024-01-31")
        if order.latest is None or place.since:
            place.mark = max(place.mark or "", stamp or "") or None

    def _lose(self, what: str, error: Exception) -> None:
        self._place.lost += 1
        self._problems.append(Problem(f"{what} of {self._place.root}: {error}"[:1000]))

    async def last_steps(self, end: HarvestEnd) -> AsyncIterator[HarvestStep]:
        """Yield steps to the end; without an end, everything is to be read.

        Changes are enough if the portal then counts as many records as are held, or says which it has.
        """
        place, order, found = self._place, self._listing.order, self.problems()
        if not place.since or order is None or order.is_listed:
            yield self.step(found, end)
            return
        counted, listed, taken = await self._count(), False, place.taken
        if isinstance(counted, HarvestEnd):
            yield self.step(found, counted)
            return
        held = await self._held()
        if order.deletions and held > (counted or held):
            async with aclosing(order.deletions(place, self._client)) as found_out:
                async for each in found_out:
                    yield self.step([each])
                    listed, held = isinstance(each, Present), await self._held()
                    if held == counted:
                        break
        if counted is None or place.changed or (held != counted and not listed):
            why = f"{held:,} records are known, and the portal counts {counted}"
            self.begin_again("the portal changed while its changes were read" if place.changed else why)
            yield self.step(found)
            return
        place.lost, place.others, place.total = place.left_out, 0, counted
        place.taken = counted - place.lost
        said = f"{taken:,} of {counted:,} datasets read, those changed since {place.since} by {order.field}"
        reason = "; ".join(filter(None, [f"{said}, in {place.requests:,} requests", place.way]))
        end = HarvestEnd(outcome=Outcome.OK, reason=reason, complete=listed, bookmark=bookmark_of(place))
        yield self.step(found, end)

    async def _count(self) -> int | HarvestEnd | None:
        """Return how many records there are, changed or not."""
        if self._latest:
            return self._place.total
        everything = msgspec.structs.replace(self._place, since="", window="")
        page = await self._listing.ask(self._place, self._client, self._listing.address(everything, 0, 1)[0])
        return page if isinstance(page, HarvestEnd) else page.total

    async def _held(self) -> int:
        """Return how many records are held or were left out by the last whole harvest."""
        return await self._client.records_held() + self._place.left_out

    def end(self, page: RecordPage, idle: int) -> HarvestEnd | None:
        """Return how the harvest ends with this page; None where it goes on."""
        place, deepest = self._place, self._listing.deepest
        if self._back:
            return None
        if idle >= _IDLE_PAGES:
            return read_to_the_end(place, "the portal gave the same datasets again and again")
        if place.taken >= MOST_DATASETS:
            return read_to_the_end(place, f"more than {MOST_DATASETS:,} are not read in one harvest")
        if not page.records or self._is_over or (page.total is not None and place.offset >= page.total):
            if place.since or not place.again:
                return read_to_the_end(place)
            place.restart()
        elif deepest is not None and place.offset + place.size + self._listing.any_offset > deepest:
            place.window, place.offset, place.bridged = self._listing.window(place), 0, False
        return None


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
