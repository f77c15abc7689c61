"""Bookmarks by date: when the latest change was that the last harvest saw, by the portal's own word."""

from datetime import datetime
from importlib.metadata import version
from typing import TypeVar

import msgspec

from tamias.harvesters.kit.changes import LAG
from tamias.harvesters.kit.paging import as_stamp
from tamias.harvesters.kit.position import MOST_HARVESTS

B = TypeVar("B", bound="DatedBookmark")


class DatedBookmark(msgspec.Struct, kw_only=True, frozen=True):
    """What the next harvest needs to ask for changes only."""

    latest: str
    harvests: int
    """Harvests of changes since the last one of everything."""
    left_out: int = 0
    """Records that the portal counts and that are no datasets here."""
    release: str = msgspec.field(default_factory=lambda: version("tamias"))
    """Another release may read records in another way."""


def read_bookmark(bookmark: bytes | None, form: type[B]) -> B | None:
    """The bookmark, if changes since then are enough; None where everything is to be read."""
    try:
        known = msgspec.msgpack.decode(bookmark, type=form) if bookmark else None
    except msgspec.MsgspecError:
        return None
    is_good = known is not None and known.release == version("tamias") and known.harvests < MOST_HARVESTS
    return known if is_good else None


def sound_stamp(text: str | None) -> str | None:
    """A time as a text that sorts by time; None for what is none.

    >>> sound_stamp("2024-01-02T03:04:05Z"), sound_stamp("last week")
    ('2024-01-02T03:04:05.000000+00:00', None)
    """
    try:
        return as_stamp(text)
    except ValueError:
        return None


def a_little_before(stamp: str) -> str:
    """A search index may show a record later than another that was changed after it."""
    return (datetime.fromisoformat(stamp) - LAG).isoformat(timespec="microseconds")
