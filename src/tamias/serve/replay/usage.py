"""What servers said about the use of what they gave, and what the public is not given therefore.

The one place where that is decided, for every way to a body and for every search.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request

from tamias.database.sql import statements
from tamias.model.resource import Version
from tamias.model.signal import Signal
from tamias.permit.signals import verdict
from tamias.serve.http.problems import Problem
from tamias.serve.http.secret import Secret, has_secret
from tamias.serve.queries.thread_pool import Desk, Desks

MOST_KEPT: Final = 20_000
REASON: Final = "its server asks that its content is not shown (noarchive)"
_HOW: Final = "the owner of the archive gets it with the secret: 'Authorization: Bearer SECRET'"
_SQL = statements("tamias.serve.replay", "usage.sql")


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What was said when a version came, and what follows from it."""

    noindex: bool = False
    """The resource is not found by a search, while this is its newest version."""
    noarchive: bool = False
    """Its body is not given out; its digest and what is known of it are."""
    signals: tuple[Signal, ...] = ()


_SILENCE: Final = Usage()


def usage(desk: Desk, version: Version) -> Usage:
    """Of one version."""
    return usages(desk, [version.capture])[version.capture]


def usages(desk: Desk, captures: Collection[str]) -> dict[str, Usage]:
    """By the captures that brought versions."""
    asked = {"bucket": list(range(desk.frontier.buckets)), "capture": list(captures)}
    rows = desk.session.transact(lambda cursor: cursor.execute(_SQL["signals"].text, asked).fetchall())
    told = {capture: msgspec.convert(signals, tuple[Signal, ...]) for capture, signals in rows}
    return {each: _judged(told[each]) if each in told else _SILENCE for each in captures}


def unlisted(desk: Desk, resources: Iterable[str]) -> frozenset[str]:
    """Those of some resources that searches leave out."""
    asked = {"resource": list(set(resources))}
    if not asked["resource"]:
        return frozenset()
    rows = desk.session.transact(lambda cursor: cursor.execute(_SQL["newest"].text, asked).fetchall())
    said = usages(desk, [capture for _, capture in rows])
    return frozenset(resource for resource, capture in rows if said[capture].noindex)


def check_open(desk: Desk, versions: Sequence[Version], *, owner: bool) -> dict[str, Usage]:
    """What was said of versions whose bodies are wanted. Raises `Problem` where that withholds one."""
    said = usages(desk, [each.capture for each in versions])
    if not owner and any(each.noarchive for each in said.values()):
        raise _withheld()
    return said


def check_owner(request: Request, secret: Secret) -> None:
    """Raises `Problem` unless the request has the secret: what it wants is withheld from others."""
    if not has_secret(request, secret):
        raise _withheld()


class Usages:
    """The same for those who are at no desk. What was said of a capture never changes, so it is kept."""

    def __init__(self, desks: Desks) -> None:
        self._desks = desks
        self._withheld: OrderedDict[str, bool] = OrderedDict()

    async def withheld(self, version: Version) -> bool:
        """Whether the body of a version is for the owner only."""
        known = self._withheld.get(version.capture)
        if known is None:
            said = await self._desks.ask(partial(usage, version=version))
            known = self._withheld[version.capture] = said.noarchive
            if len(self._withheld) > MOST_KEPT:
                self._withheld.popitem(last=False)
        return known


def _judged(signals: tuple[Signal, ...]) -> Usage:
    judged = verdict(signals)
    return Usage(noindex=judged.noindex, noarchive=judged.noarchive, signals=signals)


def _withheld() -> Problem:
    return Problem(403, f"{REASON}; {_HOW}")
