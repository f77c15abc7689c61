"""The paging driver of listings: adaptive in size, exact about what it missed, flat in memory.

A portal may change while it is read. Where its records come in the order of a key, each page begins with the
last record of the one before: if that is not met, the page is asked for further up.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple
from urllib.parse import urljoin

import msgspec

from tamias.features.dcat.datasets.mapping import BAD, MappedRecord
from tamias.features.dcat.datasets.records import CycleDetector, described
from tamias.features.portals.paging.listing import (
    MOST_DATASETS,
    ChangeOrder,
    PortalListing,
    RecordPage,
    as_stamp,
    read_answer,
    stamp_of,
    state_of,
)
from tamias.features.portals.paging.position import Position, bookmark_of, digest, read_to_the_end
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.finding import Deleted, Finding, HarvestEnd, HarvestStep, Present, Problem, Quads
from tamias.model.url import host_key
from tamias.protocols import PoliteClient

FIRST_PAGE = 20
"""Records first asked for, where the latest changes come first."""
MOST_COLLECTIONS = 10_000
LONGEST_NAME = 1_000
"""Characters of the name of a collection: what is still to be read is saved with every page."""
_SKIPS_IN_A_ROW = 10
_IDLE_PAGES = 10


async def read_listing(
    listing: PortalListing, place: Position, client: PoliteClient, first: Capture | None = None
) -> AsyncIterator[HarvestStep]:
    """Read a listing from a place to its end; `first` is its first page, if it was fetched already.

    If the place says so, only what changed is read, unless the portal does not count as many records then.
    """
    if place.changes and not place.since and listing.order is not None:
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
        self._is_list = False
        """Whether the page is of the list of collections."""
        self._url = ""
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
        if place.marked or order is None or order.latest is None or self._listing.is_linked:
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
            self._url, is_linked = capture.final_url, self._listing.is_linked
            answer: RecordPage | HarvestEnd = read_answer(
                self._client,
                capture,
                self._listing.page,
                self._listing.name,
                retry=place.taken > 0 and not is_linked,
            )
            if isinstance(answer, RecordPage):
                place.grow(self._listing.largest, 5 if self._latest else 6 / 5)
                self._problems.extend(skipped)
                return answer
            if is_linked and place.taken and not (place.since or answer.retry):
                self._lose("a page", answer.reason)
                return RecordPage([])
            if answer.retry_after_ms is None and not is_linked and self._may_help(capture):
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
        self._is_list = page.collections is not None
        if self._latest and not self._is_list and not self._is_latest_first(page):
            return
        self._note_size(page)
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
        if self._listing.is_linked:
            self._follow(page)

    def _follow(self, page: RecordPage) -> None:
        """Go on to the page that a page leads to, or to the next collection."""
        place = self._place
        if page.total is not None and not place.next:
            place.total = (place.total or 0) + page.total
        place.next, place.first = "", place.offset
        named = [*place.collections, *(page.collections or ())]
        place.collections = [name for name in named if len(name) <= LONGEST_NAME][:MOST_COLLECTIONS]
        if len(place.collections) < len(named):
            limits = f"{MOST_COLLECTIONS:,}, nor those whose names have more than {LONGEST_NAME} characters"
            place.way, place.lost = f"not more collections are read than {limits}", place.lost + 1
        target = urljoin(self._url, page.following)
        if page.following and host_key(target) == host_key(self._url) and not self._is_over:
            if not place.turns.again([target, *map(str, place.recent)]):
                place.next = target
                return
            place.way, place.lost = f"{target} gives the same page again", place.lost + 1
        place.collection = place.collections.pop(0) if place.collections else ""
        place.turns, place.recent, self._is_over = CycleDetector(), [], not place.collection

    def _is_latest_first(self, page: RecordPage) -> bool:
        """Return whether the latest changes come first; if not, begin again."""
        place, order = self._place, self._listing.order
        assert order is not None
        dates = [stamp_of(order, each) or "" for each in page.records]
        is_late = bool(self._start or self._listing.is_linked or not dates or dates[0] >= (place.mark or ""))
        if is_late and all(dates) and dates == sorted(dates, reverse=True):
            self._is_over = bool(dates) and dates[-1] < place.since
            return True
        self.begin_again(f"the records are not in the order of {order.field}")
        return False

    def _note_size(self, page: RecordPage) -> None:
        """Note the total, and that a page which is not the last has fewer records than asked for.

        Where pages begin at multiples of their size, the next one would begin at a wrong record.
        """
        if not self._place.window and not self._listing.is_linked:
            self._place.counted(page.total)
        records = len(page.records)
        is_last = page.total is None or self._start + records >= page.total
        if 0 < records < self._size and not (self._listing.any_offset or is_last):
            self._place.most = self._place.size = records

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
            if self._latest and not known and self._listing.order and not self._is_list:
                known = (stamp_of(self._listing.order, entry.record) or "") < place.since
            if not known:
                fresh.setdefault(entry.name, entry)
        return list(fresh.values())

    async def _read(self, entry: _Entry, more: list[Finding]) -> MappedRecord | HarvestEnd | None:
        listing, place = self._listing, self._place
        if listing.order is not None and not self._is_list:
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
        if order.latest is None or place.since or self._listing.is_linked:
            place.mark = max(place.mark or "", stamp or "") or None

    def _lose(self, what: str, error: Exception | str) -> None:
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
        place, listing = self._place, self._listing
        if self._back:
            return None
        if idle >= _IDLE_PAGES and not listing.is_linked:
            return read_to_the_end(place, "the portal gave the same datasets again and again")
        if place.taken >= MOST_DATASETS:
            return read_to_the_end(place, f"more than {MOST_DATASETS:,} are not read in one harvest")
        if self._is_read(page):
            if place.since or not place.again:
                end = read_to_the_end(place)
                is_none = self._listing.is_linked and not (place.taken or place.since)
                return msgspec.structs.replace(end, outcome=Outcome.FAILED) if is_none else end
            place.restart()
        elif listing.deepest is not None and place.offset + place.size + listing.any_offset > listing.deepest:
            place.window, place.offset, place.bridged = listing.window(place), 0, False
        return None

    def _is_read(self, page: RecordPage) -> bool:
        """Return whether a page is the last one."""
        if self._is_over or self._listing.is_linked:
            return self._is_over
        return not page.records or (page.total is not None and self._place.offset >= page.total)
