"""Harvests of changes: a portal lists what changed last, and its count tells whether anything was deleted.

What changed is asked for by date, the latest first, until a record is met that is older than the last
harvest. If as many records are held afterwards as the portal counts, nothing was deleted. Otherwise the
portal is asked what was, if it has a way to tell; if not, everything is read again.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import datetime, timedelta

import msgspec

from tamias.harvesters.kit.mapping import MappedRecord, map_record
from tamias.harvesters.kit.paging import (
    BAD,
    ChangeOrder,
    PortalListing,
    RecordPage,
    found,
    opening,
    place_of,
    read_listing,
    stamp_of,
    state_of,
)
from tamias.harvesters.kit.position import Position, bookmark_of, place_after
from tamias.harvesters.kit.records import MOST_PAGE, failure
from tamias.model.capture import Outcome, Request
from tamias.model.finding import Deleted, Finding, Harvest, HarvestEnd, HarvestStep, Present, Problem, Quads
from tamias.protocols import PoliteClient

FIRST_PAGE = 20
LAG = timedelta(minutes=5)
"""A search index may show a record later than another that was changed after it."""

DeletionsOf = Callable[[Position, PoliteClient], AsyncGenerator[Present | Deleted]]
"""Asks a portal which records were deleted, or which are all that are left; the place says how."""


class _Changes:
    """What is known while changes are read."""

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
        """Whether the dates of a page go down, from one that is not before the mark: that one was there."""
        dates = [each for each in stamps if each is not None]
        self.latest = self.latest or max(dates, default=self.mark)
        return len(dates) == len(stamps) and dates == sorted(dates, reverse=True) and self.latest >= self.mark


async def read_changes(
    listing: PortalListing, place: Position, client: PoliteClient, deletions: DeletionsOf | None = None
) -> AsyncIterator[HarvestStep]:
    """The steps of a harvest of changes. Without an end, everything is to be read, and the place says why."""
    order = listing.order
    assert order is not None
    changes, size = _Changes(place), min(FIRST_PAGE, listing.largest)
    while not changes.over and not changes.why_not:
        page, start = await _asked(listing, order, place, client, changes, size)
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
        async with aclosing(deletions(place, client)) as tellings:
            async for told in tellings:
                yield HarvestStep(state=state_of(place), findings=[told])
                listed = isinstance(told, Present)
                held = await client.records_held() + place.lost
                if held == changes.total:
                    break
    end = _end(place, changes, order, held, listed=listed)
    if end is None:
        _begin_again(place, listing, f"everything was read: {changes.why_not}")
    else:
        yield HarvestStep(state=state_of(place), end=end)


class ListedPortal:
    """Harvests a portal of one listing."""

    def __init__(
        self, kind: str, listing: PortalListing, find: Callable[[str, PoliteClient], Awaitable[Position]]
    ) -> None:
        """`find` gives the beginning of a portal's listing, by its address."""
        self.kinds = frozenset({kind})
        self._listing = listing
        self._find = find

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        place = place_of(harvest.state)
        if place is None:
            place = place_after(harvest.bookmark) or await self._find(harvest.url, client)
            yield opening(place)
        async for step in read_changes_or_all(self._listing, place, client):
            yield step


async def read_changes_or_all(
    listing: PortalListing, place: Position, client: PoliteClient
) -> AsyncIterator[HarvestStep]:
    """The changes, if the place says so and they are enough; otherwise the whole listing."""
    if place.changes:
        async for step in read_changes(listing, place, client):
            yield step
    if not place.changes:
        async for step in read_listing(listing, place, client):
            yield step


async def _asked(
    listing: PortalListing,
    order: ChangeOrder,
    place: Position,
    client: PoliteClient,
    changes: _Changes,
    size: int,
) -> tuple[RecordPage | None, int]:
    url, start = order.address(place, changes.seen, size)
    place.requests += 1
    capture = await client.ask(Request(url=url, accept="application/json"))
    if end := failure(capture, listing.name):
        changes.why_not = end.reason
        changes.trouble = msgspec.structs.replace(end, changes_only=True) if end.retry else None
        return None, start
    try:
        page = listing.page(client.body(capture, MOST_PAGE))
    except BAD as error:
        changes.why_not = f"{listing.name} {capture.url}: not the JSON of a listing ({error})"[:1000]
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
    """What a page says of changes; notes where it must not be relied on."""
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
    told = [each for each in found(records, place.root) if not isinstance(each, Quads)]
    return [*told, *problems]


def _end(
    place: Position, changes: _Changes, order: ChangeOrder, held: int, *, listed: bool
) -> HarvestEnd | None:
    """None where the changes do not explain what the portal counts."""
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
