"""Harvests of changes: a portal lists what changed last, and its count tells whether anything was deleted.

What changed is asked for by date, the latest first, until a record is met that is older than the last
harvest. If as many records are held afterwards as the portal counts, nothing was deleted. Otherwise the
portal is asked what was, if it has a way to tell; if not, everything is read again.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from tamias.features.dcat.datasets.mapping import BAD, MappedRecord, map_record
from tamias.features.dcat.datasets.records import described
from tamias.features.portals.paging.listing import (
    ChangeOrder,
    PortalListing,
    RecordPage,
    as_stamp,
    ask_json,
    opening,
    place_of,
    read_listing,
    stamp_of,
    state_of,
)
from tamias.features.portals.paging.position import (
    DatedBookmark,
    Position,
    bookmark_of,
    place_after,
    read_bookmark,
)
from tamias.features.portals.paging.ways import roots
from tamias.model.capture import Outcome
from tamias.model.finding import Deleted, Finding, Harvest, HarvestEnd, HarvestStep, Present, Problem, Quads
from tamias.protocols import PoliteClient

FIRST_PAGE = 20
LAG = timedelta(minutes=5)
"""A search index may show a record later than another that was changed after it."""

DeletionsOf = Callable[[Position, PoliteClient], AsyncGenerator[Present | Deleted]]
"""Asks a portal which records were deleted, or which are all that are left; the place says how."""


class _Changes:
    """The progress of a harvest of changes."""

    def __init__(self, place: Position) -> None:
        assert place.mark is not None
        self.since = (datetime.fromisoformat(place.mark) - LAG).isoformat(timespec="microseconds")
        self.latest = ""
        self.mark = place.mark
        self.total: int | None = None
        self.seen = 0
        self.read: set[str] = set()
        self.over = False
        self.why_not = ""
        """Why changes are not enough, and everything is to be read."""
        self.trouble: HarvestEnd | None = None
        """What keeps the portal from answering now."""

    def is_in_order(self, stamps: list[str | None]) -> bool:
        """Return whether the dates of a page go down, from one that is not before the mark."""
        dates = [each for each in stamps if each is not None]
        self.latest = self.latest or max(dates, default=self.mark)
        return len(dates) == len(stamps) and dates == sorted(dates, reverse=True) and self.latest >= self.mark


async def read_changes(
    listing: PortalListing, place: Position, client: PoliteClient, deletions: DeletionsOf | None = None
) -> AsyncIterator[HarvestStep]:
    """Read changes. Without an end, everything is to be read, and the place says why."""
    order = listing.order
    assert order is not None
    changes, size = _Changes(place), min(FIRST_PAGE, listing.largest)
    while not changes.over and not changes.why_not:
        page, start = await _request_page(listing, order, place, client, changes, size)
        if changes.trouble is not None:
            yield HarvestStep(state=state_of(place), end=changes.trouble)
            return
        if page is None:
            break
        findings = _read(listing, order, place, changes, page, start)
        size = min(listing.largest, size * 5) if len(page.records) >= size else max(1, len(page.records))
        if not changes.why_not:
            yield HarvestStep(state=state_of(place), findings=findings)
    listed = False
    held = await client.records_held() + place.lost
    if not changes.why_not and changes.total is not None and held > changes.total and deletions is not None:
        async with aclosing(deletions(place, client)) as found_out:
            async for each in found_out:
                yield HarvestStep(state=state_of(place), findings=[each])
                listed = isinstance(each, Present)
                held = await client.records_held() + place.lost
                if held == changes.total:
                    break
    end = _end(place, changes, order, held, listed=listed)
    if end is None:
        _begin_again(place, listing, f"everything was read: {changes.why_not}")
    else:
        yield HarvestStep(state=state_of(place), end=end)


class ListedPortal:
    """Harvests a portal by its listing."""

    def __init__(
        self,
        kind: str,
        find: Callable[[str, PoliteClient], Awaitable[Position]],
        read: Callable[[Position, PoliteClient, bytes | None], AsyncIterator[HarvestStep]],
    ) -> None:
        """`find` returns where a portal's listing begins, by its address; `read` reads it from a place on.

        `read` also gets the bookmark of the last harvest, if this one just begins.
        """
        self.kinds = frozenset({kind})
        self._find = find
        self._read = read

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        place = place_of(harvest.state)
        if place is None:
            place = place_after(harvest.bookmark) or await self._find(harvest.url, client)
            yield opening(place)
        async for step in self._read(place, client, None if harvest.state else harvest.bookmark):
            yield step


def at_root(
    size: int, *inner: str, is_top: bool = False, ordered: bool = True
) -> Callable[[str, PoliteClient], Awaitable[Position]]:
    """Make a function that begins at the root of a portal, or of its host, without a request."""

    async def find(url: str, _client: PoliteClient) -> Position:
        return Position(root=roots(url, *inner)[-1 if is_top else 0], size=size, ordered=ordered)

    return find


async def read_changes_or_all(
    listing: PortalListing, place: Position, client: PoliteClient, _bookmark: bytes | None = None
) -> AsyncIterator[HarvestStep]:
    """Read the changes, if the place says so and they are enough; otherwise the whole listing."""
    if place.changes:
        async for step in read_changes(listing, place, client):
            yield step
    if not place.changes:
        async for step in read_listing(listing, place, client):
            yield step


async def _request_page(
    listing: PortalListing,
    order: ChangeOrder,
    place: Position,
    client: PoliteClient,
    changes: _Changes,
    size: int,
) -> tuple[RecordPage | None, int]:
    url, start = order.address(place, changes.seen, size)
    page = await ask_json(place, client, url, listing.page, listing.name)
    if isinstance(page, HarvestEnd):
        changes.why_not = page.reason
        changes.trouble = msgspec.structs.replace(page, changes_only=True) if page.retry else None
        return None, start
    if changes.total not in (None, page.total):
        changes.why_not = "the portal changed while its changes were read"
    changes.total = page.total
    if page.total is None:
        changes.why_not = "the portal does not count its records"
    return page, start


def _read(
    listing: PortalListing,
    order: ChangeOrder,
    place: Position,
    changes: _Changes,
    page: RecordPage,
    start: int,
) -> list[Finding]:
    """Return the findings of a page; note why it cannot be relied on."""
    records, problems = list[MappedRecord](), list[Finding]()
    if not changes.is_in_order([stamp_of(order, raw) for raw in page.records]):
        changes.why_not = f"the records are not in the order of {order.field}"
        return []
    for raw in page.records[changes.seen - start :]:
        if (stamp_of(order, raw) or "") < changes.since:
            changes.over = True
            break
        try:
            mapped = map_record(listing.mapping, bytes(raw), place.root)
        except BAD as error:
            problems.append(Problem(f"{listing.name} {place.root}: a record was left out: {error}"[:1000]))
            continue
        if mapped.dataset.record not in changes.read:
            changes.read.add(mapped.dataset.record)
            records.append(mapped)
    reached = start + len(page.records)
    changes.over = changes.over or reached >= (changes.total or 0) or reached <= changes.seen
    changes.seen = reached
    findings = [each for each in described(records, place.root, pages=False) if not isinstance(each, Quads)]
    return [*findings, *problems]


def _end(
    place: Position, changes: _Changes, order: ChangeOrder, held: int, *, listed: bool
) -> HarvestEnd | None:
    """Return the end; None where the changes do not explain what the portal counts."""
    if changes.why_not or changes.total is None:
        return None
    if held != changes.total and not listed:
        changes.why_not = f"{held:,} records are known, and the portal counts {changes.total:,}"
        return None
    place.taken, place.total = changes.total - place.lost, changes.total
    place.mark = changes.latest
    said = f"{len(changes.read):,} of {changes.total:,} datasets read, those changed since {changes.since}"
    how = [f"{said} by {order.field}, in {place.requests:,} requests", place.way]
    return HarvestEnd(
        outcome=Outcome.OK,
        reason="; ".join(filter(None, how)),
        complete=listed,
        bookmark=bookmark_of(place),
        changes_only=True,
    )


def _begin_again(place: Position, listing: PortalListing, why: str) -> None:
    fresh = Position(
        root=place.root, title=place.title, size=listing.largest, way=why, requests=place.requests
    )
    for name in msgspec.structs.asdict(fresh):
        setattr(place, name, getattr(fresh, name))


R = TypeVar("R")


def a_little_before(stamp: str) -> str:
    """A search index may show a record later than another that was changed after it."""
    return (datetime.fromisoformat(stamp) - LAG).isoformat(timespec="microseconds")


class DatedState(msgspec.Struct, kw_only=True):
    """State of a harvest: how far it came, and what it had. Portals add what they need."""

    datasets: int = 0
    problems: int = 0
    latest: str = ""
    """The latest time at which a record was changed, by the portal's own word."""
    undated: bool = False
    """Whether a record does not say when it was changed."""
    since: str | None = None
    """Only records that changed since are asked for; None reads everything."""
    harvests: int = 0
    """Harvests of changes since the last one of everything."""
    why: str = ""
    """Why everything is read, where changes were not enough."""

    def ask_for_changes(self, bookmark: bytes | None) -> DatedBookmark | None:
        """Ask for what changed since the last harvest, if its bookmark is good enough for that."""
        if known := read_bookmark(bookmark, DatedBookmark):
            self.latest, self.since = known.latest, a_little_before(known.latest)
            self.harvests = known.harvests + 1
        return known

    def note_update(self, said: str | None) -> None:
        """Take note of when a record was changed."""
        stamp = as_stamp(said)
        self.undated = self.undated or stamp is None
        self.latest = max(self.latest, stamp or "")

    def bookmark(self, form: type[DatedBookmark] = DatedBookmark, **more: Any) -> bytes | None:
        """The bookmark for the next harvest; None where that has to read everything."""
        if self.undated or not self.latest:
            return None
        return msgspec.msgpack.encode(form(latest=self.latest, harvests=self.harvests, **more))

    def read_everything(self, fresh: "DatedState", why: str) -> None:
        """Begin again, without asking for changes."""
        fresh.why = f"everything was read: {why}"[:1000]
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))

    def findings(
        self,
        records: Iterable[R],
        root: str,
        read: Callable[[R], MappedRecord],
        name: Callable[[R], str | None],
    ) -> list[Finding]:
        """Return what records bring, and a problem for each that cannot be read.

        In a harvest of changes the document is written again from what is stored, so nothing is said twice.
        """
        mapped, problems = list[MappedRecord](), list[Finding]()
        for record in records:
            try:
                mapped.append(read(record))
            except BAD as error:
                problems.append(Problem(f"record {name(record) or '?'} of {root}: {error}"[:1000]))
        self.datasets += len(mapped)
        self.problems += len(problems)
        return [*self.brought(mapped, root), *problems]

    def brought(self, mapped: Sequence[MappedRecord], root: str) -> list[Finding]:
        """Return what records bring that could be read."""
        findings = described(mapped, root)
        return findings if self.since is None else [each for each in findings if not isinstance(each, Quads)]

    def step(self, findings: Sequence[Finding] = (), end: HarvestEnd | None = None) -> HarvestStep:
        """The state with what it brought."""
        if end is not None and self.since is not None:
            end = msgspec.structs.replace(end, changes_only=True)
        return HarvestStep(state=msgspec.msgpack.encode(self), findings=findings, end=end)
