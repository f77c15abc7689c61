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
from tamias.model.site import Signal
from tamias.permit.signals import verdict
from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.secret import Secret, has_secret
from tamias.serve.queries.thread_pool import ServiceSession, SessionPool

MOST_KEPT: Final = 20_000
REASON: Final = "its server asks that its content is not shown (noarchive)"
_HOW: Final = "the owner of the archive gets it with the secret: 'Authorization: Bearer SECRET'"
_SQL = statements("tamias.serve.replay", "usage.sql")


class UsageTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What was said when a version came, and what follows from it."""

    noindex: bool = False
    """The resource is not found by a search, while this is its newest version."""
    noarchive: bool = False
    """Its body is not given out; its digest and what is known of it are."""
    signals: tuple[Signal, ...] = ()


_SILENCE: Final = UsageTerms()


def usage(db: ServiceSession, version: Version) -> UsageTerms:
    """Of one version."""
    return usages(db, [version.capture])[version.capture]


def usages(db: ServiceSession, captures: Collection[str]) -> dict[str, UsageTerms]:
    """By the captures that brought versions."""
    asked = {"bucket": list(range(db.frontier.buckets)), "capture": list(captures)}
    rows = db.session.transact(lambda cursor: cursor.execute(_SQL["signals"].text, asked).fetchall())
    told = {capture: msgspec.convert(signals, tuple[Signal, ...]) for capture, signals in rows}
    return {each: _judged(told[each]) if each in told else _SILENCE for each in captures}


def unlisted(db: ServiceSession, resources: Iterable[str]) -> frozenset[str]:
    """Those of some resources that searches leave out."""
    asked = {"resource": list(set(resources))}
    if not asked["resource"]:
        return frozenset()
    rows = db.session.transact(lambda cursor: cursor.execute(_SQL["newest"].text, asked).fetchall())
    said = usages(db, [capture for _, capture in rows])
    return frozenset(resource for resource, capture in rows if said[capture].noindex)


def check_open(db: ServiceSession, versions: Sequence[Version], *, owner: bool) -> dict[str, UsageTerms]:
    """What was said of versions whose bodies are wanted. Raises `HttpProblem` where that withholds one."""
    said = usages(db, [each.capture for each in versions])
    if not owner and any(each.noarchive for each in said.values()):
        raise _withheld()
    return said


def check_owner(request: Request, secret: Secret) -> None:
    """Raises `HttpProblem` unless the request has the secret: what it wants is withheld from others."""
    if not has_secret(request, secret):
        raise _withheld()


class Usages:
    """The same for those who are at no db. What was said of a capture never changes, so it is kept."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool
        self._withheld: OrderedDict[str, bool] = OrderedDict()

    async def withheld(self, version: Version) -> bool:
        """Whether the body of a version is for the owner only."""
        known = self._withheld.get(version.capture)
        if known is None:
            said = await self._pool.run(partial(usage, version=version))
            known = self._withheld[version.capture] = said.noarchive
            if len(self._withheld) > MOST_KEPT:
                self._withheld.popitem(last=False)
        return known


def _judged(signals: tuple[Signal, ...]) -> UsageTerms:
    judged = verdict(signals)
    return UsageTerms(noindex=judged.noindex, noarchive=judged.noarchive, signals=signals)


def _withheld() -> HttpProblem:
    return HttpProblem(403, f"{REASON}; {_HOW}")
