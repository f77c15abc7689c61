"""The position in a portal's listing: the state of a harvest, and the verdict at its end."""

from datetime import datetime, timedelta
from hashlib import blake2b
from importlib.metadata import version
from math import ceil
from typing import TypeVar

import msgspec

from tamias.archive.moments import shown
from tamias.features.dcat.datasets.records import CycleDetector
from tamias.model.capture import Outcome
from tamias.model.finding import HarvestEnd

LAG = timedelta(minutes=5)
"""A search index may show a record later than another that was changed after it."""


class Position(msgspec.Struct, kw_only=True):
    """The position of a reader. It has the last keys only: its size does not grow with the portal."""

    root: str
    """The portal's address, with a slash at the end."""
    stage: str = ""
    """Which of a harvester's ways is being taken."""
    inner: bytes | None = None
    """The state of another harvester that was asked to help out."""
    note: str = ""
    """Why the ways before this one were left."""
    title: str = ""
    publisher: str = ""
    query: str = ""
    """Which part of the portal the user's address names, in its own words."""
    size: int = 1
    """Records to ask for; it shrinks on trouble and grows again."""
    most: int | None = None
    """Records that the portal gives on one page, where that is fewer than it was asked for."""
    offset: int = 0
    after: str = ""
    """In an ordered listing, the key of the last record that was taken."""
    bridged: bool = False
    """Whether that record stands right before the offset, where it can be met again."""
    recent: list[int] = []
    """Digests of the names of records: with the key `after`; in a listing without order, on the last page."""
    window: str = ""
    """Where an offset may not go any deeper, the key from which it is counted anew."""
    ordered: bool = True
    next: str = ""
    """The address of the next page, where pages name it."""
    first: int = 0
    """How many records are before that page."""
    collection: str = ""
    """The collection that is read, where a catalogue has several; empty for the list of them."""
    collections: list[str] = []
    """Those that are still to be read."""
    turns: CycleDetector = msgspec.field(default_factory=CycleDetector)
    taken: int = 0
    """Datasets of this pass, each counted once."""
    lost: int = 0
    """Records of this pass that could not be read."""
    others: int = 0
    """Records of this pass that are no datasets."""
    present: int = 0
    """Of the datasets taken, those that did not change since the last harvest, and were not read again."""
    bare: int = 0
    """Datasets whose details could not be had."""
    details: bool = True
    """Whether details of records may be asked for."""
    failures: int = 0
    """Details in a row that could not be had now."""
    total: int | None = None
    """What the portal says it has."""
    changed: bool = False
    """Whether it said something else before."""
    second: bool = False
    """Whether this is the second pass, which follows when the portal changed under the first."""
    requests: int = 0
    mark: str | None = None
    """When the latest change was, by the portal's own clock, before anything was read; None: not known."""
    marked: bool = False
    """Whether that was asked for."""
    undated: bool = False
    """Whether a record does not say when it was changed: then its changes cannot be asked for."""
    days_only: bool = False
    """Whether a record is dated by the day."""
    changes: bool = False
    """Whether only changes since the mark are asked for."""
    since: str = ""
    """The time since which changes are asked for, where the portal takes one."""
    left_out: int = 0
    """Records that the portal counts and that the last whole harvest did not take."""
    way: str = ""
    """How deletions were asked for, or why everything was read again."""
    harvests: int = 0
    """Harvests of changes since the last one of everything."""

    @property
    def passed(self) -> int:
        """Return how many records of this pass are done with."""
        return self.taken + self.lost + self.others

    def shrink(self) -> None:
        """Ask for a third."""
        self.size = max(1, self.size // 3)

    def grow(self, largest: int, factor: float) -> None:
        """Ask for more, but for no more than the portal gives."""
        self.size = min(largest, self.most or largest, ceil(self.size * factor))

    def counted(self, total: int | None) -> None:
        """Note the total that a page gives."""
        if total is None:
            return
        self.changed = self.changed or self.total not in (None, total)
        self.total = total

    def pass_by(self, key: str, name: str) -> None:
        """Note a record that was taken."""
        if self.ordered:
            self.recent = [*(self.recent if key == self.after else ()), digest(name)]
        self.after = max(self.after, key)

    def skip(self) -> None:
        """Leave out the record at the offset."""
        self.offset += 1
        self.lost += 1
        self.bridged = False

    @property
    def whole(self) -> bool:
        """Return whether all that the portal lists was taken, as far as this pass can tell.

        In order and with its last record met again, a reader misses nothing that stood there all the time: it
        is enough that as many were taken as there are. Without order a record may slip past while another
        is met twice, so the count must not have moved; one that leaves as another comes is not noticed then.
        """
        if self.lost or self.total is None:
            return not self.lost and (self.ordered or bool(self.first))
        if self.ordered or self.first:
            return self.taken + self.others >= self.total
        return self.taken + self.others == self.total and not self.changed

    @property
    def again(self) -> bool:
        """Return whether a second pass may find what the first could not."""
        return self.changed and not self.second and not self.whole

    def time_before_mark(self) -> str:
        """Return the time since which changes are asked for."""
        moment = datetime.fromisoformat(self.mark or "") - (timedelta(days=1) if self.days_only else LAG)
        return moment.date().isoformat() if self.days_only else moment.isoformat(timespec="microseconds")

    def read_everything(self, why: str) -> None:
        """Begin again, without asking for changes."""
        fresh = Position(
            root=self.root, title=self.title, publisher=self.publisher, query=self.query, stage=self.stage,
            note=self.note, requests=self.requests, way=f"everything was read: {why}"[:1000],
        )  # fmt: skip
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))

    def restart(self) -> None:
        """Begin the second pass."""
        self.offset = self.taken = self.lost = self.others = self.present = self.bare = 0
        self.after = self.window = ""
        self.recent = []
        self.inner = None
        self.bridged = self.changed = False
        self.second = True


def digest(key: str) -> int:
    """Return a digest of a record's key in eight bytes."""
    return int.from_bytes(blake2b(key.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def read_to_the_end(place: Position, why: str = "") -> HarvestEnd:
    """Return the end of a listing that was read; `why` says why it is not complete."""
    counted = "" if place.total is None else f" of {place.total:,} counted"
    stage = f" ({place.stage})" if place.stage else ""
    said = [f"{place.taken:,} datasets{counted}, in {place.requests:,} requests{stage}"]
    if place.present:
        said.append(f"{place.present:,} of them were not updated since {place.since}")
    if place.others:
        said.append(f"{place.others:,} records of other kinds left out")
    if place.bare:
        robots = "" if place.details else " (robots.txt forbids to ask for them)"
        said.append(f"{place.bare:,} of them without their files{robots}")
    if place.lost:
        said.append(f"{place.lost:,} records could not be read")
    if place.changed:
        said.append("the portal changed while it was read")
    if place.second:
        said.append("this was the second pass")
    said += filter(None, [place.way, why])
    return HarvestEnd(
        outcome=Outcome.OK,
        reason="; ".join(said),
        complete=place.whole and not why,
        bookmark=bookmark_of(place),
    )


MOST_HARVESTS = 30
"""Harvests of changes in a row: what a portal changes without a date is then seen with all else."""
B = TypeVar("B", bound="DatedBookmark")


class DatedBookmark(msgspec.Struct, kw_only=True, frozen=True):
    """The bookmark of a harvest: the next one asks for changes only."""

    latest: str
    """When the latest change was, by the portal's own word."""
    harvests: int
    """Harvests of changes since the last one of everything."""
    left_out: int = 0
    """Records that the portal counts and that are no datasets here, or could not be read."""
    release: str = msgspec.field(default_factory=lambda: version("tamias"))
    """Another release may read records in another way."""


class PortalBookmark(DatedBookmark, kw_only=True, frozen=True):
    """The bookmark of a listing, with what its first requests found out."""

    root: str
    title: str
    publisher: str = ""
    query: str = ""
    stage: str = ""
    days_only: bool = False


def read_bookmark(bookmark: bytes | None, form: type[B]) -> B | None:
    """Return the bookmark, if changes since then are enough; None where everything is to be read."""
    try:
        known = msgspec.msgpack.decode(bookmark, type=form) if bookmark else None
    except msgspec.MsgspecError:
        return None
    is_good = known is not None and known.release == version("tamias") and known.harvests < MOST_HARVESTS
    return known if is_good else None


def bookmark_of(place: Position) -> bytes | None:
    """Return a bookmark; None if not everything was read, or changes cannot be asked for."""
    left_out = place.lost + place.others
    unread = place.changed or place.bare or place.taken + left_out != place.total
    if place.mark is None or place.undated or unread:
        return None
    known = shown(PortalBookmark, place, latest=place.mark, left_out=left_out)
    return msgspec.msgpack.encode(known)


def place_after(bookmark: bytes | None) -> Position | None:
    """Return the beginning of a harvest of changes; None where everything is to be read."""
    known = read_bookmark(bookmark, PortalBookmark)
    if known is None:
        return None
    more = {"mark": known.latest, "changes": True, "marked": True}
    return shown(Position, known, harvests=known.harvests + 1, **more)
