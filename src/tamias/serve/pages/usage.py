"""What the server of a version said about its use, and what a page must not do therefore."""

import msgspec

from tamias.model.resource import Version
from tamias.model.signal import Signal
from tamias.permit.signals import verdict
from tamias.serve.desks import Desk
from tamias.serve.pages.asking import rows_of_buckets


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The rules in force, and those that a page keeps."""

    noindex: bool = False
    """Search engines are asked not to list its page."""
    noarchive: bool = False
    """Its content is not shown on a page."""
    signals: tuple[Signal, ...] = ()


def usage(desk: Desk, version: Version) -> Usage:
    """What was said when the version came."""
    found = rows_of_buckets(desk, "signals", capture=version.capture)
    told = msgspec.convert(found[0][0] or [], tuple[Signal, ...]) if found else ()
    judged = verdict(told)
    return Usage(noindex=judged.noindex, noarchive=judged.noarchive, signals=told)
