"""Harvests of changes: a portal lists what changed last, and its count tells whether anything was deleted.

What changed is asked for by date, the latest first, until a record is met that is older than the last
harvest. If as many records are held afterwards as the portal counts, nothing was deleted. Otherwise the
portal is asked what was, if it has a way to tell; if not, everything is read again.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from tamias.features.dcat.datasets.mapping import BAD, MappedRecord
from tamias.features.dcat.datasets.records import described
from tamias.features.portals.paging.listing import (
    AddressOf,
    ChangeOrder,
    PortalListing,
    RecordPage,
    as_stamp,
    stamp_of,
    state_of,
)
from tamias.features.portals.paging.position import (
    LAG,
    DatedBookmark,
    Position,
    bookmark_of,
    read_bookmark,
)
from tamias.model.capture import Outcome
from tamias.model.finding import Finding, HarvestEnd, HarvestStep, Present, Problem, Quads
from tamias.protocols import PoliteClient

FIRST_PAGE = 20


class _Changes:
    """The progress of a harvest of changes."""

    def __init__(self, place: Position) -> None:
        assert place.mark is not None
        self.since = place.time_before_mark()
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
    listing: PortalListing, place: Position, client: PoliteClient
) -> AsyncIterator[HarvestStep]:
    """Read changes. Without an end, everything is to be read, and the place says why."""
    order = listing.order
    assert order is not None
    assert order.latest is not None
    changes, size = _Changes(place), min(FIRST_PAGE, listing.largest)
    while not changes.over and not changes.why_not:
        page, start = await _request_page(listing, order.latest, place, client, changes, size)
        if changes.trouble is not None:
            yield HarvestStep(state=state_of(place), end=changes.trouble)
            return
        if page is None:
            break
        findings = _read(listing, order, place, changes, page, start)
        size = min(listing.largest, size * 5) if len(page.records) >= size else max(1, len(page.records))
        if not changes.why_not:
            yield HarvestStep(state=state_of(place), findings=findings)
    listed, deletions = False, order.deletions
    held = await client.records_held() + place.left_out
    if not changes.why_not and changes.total is not None and held > changes.total and deletions is not None:
        async with aclosing(deletions(place, client)) as found_out:
            async for each in found_out:
                yield HarvestStep(state=state_of(place), findings=[each])
                listed = isinstance(each, Present)
                held = await client.records_held() + place.left_out
                if held == changes.total:
                    break
    end = _end(place, changes, order, held, listed=listed)
    if end is None:
        place.read_everything(changes.why_not, listing.largest)
    else:
        yield HarvestStep(state=state_of(place), end=end)


async def _request_page(
    listing: PortalListing,
    latest: AddressOf,
    place: Position,
    client: PoliteClient,
    changes: _Changes,
    size: int,
) -> tuple[RecordPage | None, int]:
    url, start = latest(place, changes.seen, size)
    page = await listing.ask(place, client, url)
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
            mapped = listing.record(raw, place.root)
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
    place.lost, place.total = place.left_out, changes.total
    place.taken = changes.total - place.lost
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
