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
from tamias.model.usage import BULK, SHOWING, TRAINING, UsageVerdict, reasons, refusal, verdict
from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.secret import may_read_all
from tamias.serve.queries.thread_pool import ServiceSession, SessionPool

MOST_KEPT: Final = 20_000
SEARCH: Final = ("noindex",)
_HOW: Final = (
    "the owner of the archive gets it with the secret or a token with the scope 'read':"
    " 'Authorization: Bearer SECRET'"
)
_SQL = statements("tamias.serve.replay", "usage.sql")


class UsageTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What was said when a version came, and what follows from it."""

    verdict: UsageVerdict = UsageVerdict()
    signals: tuple[Signal, ...] = ()

    @property
    def noindex(self) -> bool:
        """The resource is not found by a search, while this is its newest version."""
        return self.verdict.noindex

    @property
    def noarchive(self) -> bool:
        """Its body is not given out; its digest and what is known of it are."""
        return self.verdict.noarchive

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """What must not be done with it, and who says so."""
        return list(reasons(self.signals))


_SILENCE: Final = UsageTerms()


def usage(db: ServiceSession, version: Version) -> UsageTerms:
    """Of one version."""
    return usages(db, [version.capture])[version.capture]


def usages(db: ServiceSession, captures: Collection[str]) -> dict[str, UsageTerms]:
    """By the captures that brought versions."""
    asked = {"bucket": list(range(db.frontier.buckets)), "capture": list(captures)}
    rows = db.session.fetch_all(_SQL["signals"], asked)
    told = {capture: msgspec.convert(signals, tuple[Signal, ...]) for capture, signals in rows}
    return {each: _judged(told[each]) if each in told else _SILENCE for each in captures}


def unlisted(db: ServiceSession, resources: Iterable[str], words: Collection[str] = SEARCH) -> frozenset[str]:
    """Those of some resources that searches leave out; or feeds, by other words of the verdict."""
    asked = {"resource": list(set(resources))}
    if not asked["resource"] or not words:
        return frozenset()
    rows = db.session.fetch_all(_SQL["newest"], asked)
    said = usages(db, [capture for _, capture in rows])
    return frozenset(
        resource for resource, capture in rows if any(getattr(said[capture].verdict, word) for word in words)
    )


def check_open(
    db: ServiceSession, versions: Sequence[Version], *, owner: bool, words: Collection[str] = SHOWING
) -> dict[str, UsageTerms]:
    """What was said of versions whose bodies are wanted. Raises `HttpProblem` where that withholds one."""
    said = usages(db, [each.capture for each in versions])
    withheld = (refusal(each.verdict, words) for each in said.values())
    if not owner and (reason := next((each for each in withheld if each), None)):
        raise _withheld(reason)
    return said


def check_owner(request: Request, reason: str) -> None:
    """Raises `HttpProblem` unless the caller may read all: what it wants is withheld from others."""
    if not may_read_all(request):
        raise _withheld(reason)


def zip_words(request: Request) -> tuple[str, ...]:
    """By which words of the verdict a zip leaves files out. The owner gets all, except for training."""
    words = () if may_read_all(request) else (*SHOWING, *BULK)
    return (*words, *TRAINING) if wants_training(request) else words


def feed_words(request: Request, *, search: bool) -> tuple[str, ...]:
    """By which words of the verdict a feed leaves resources out; one that searches, more of them."""
    words = () if may_read_all(request) else (*(SEARCH if search else ()), *BULK)
    return (*words, *TRAINING) if wants_training(request) else words


def wants_training(request: Request) -> bool:
    """Whether the response is marked for the training of models, by `?for=training`."""
    return request.query_params.get("for") == "training"


class Usages:
    """The same for those who are at no db. What was said of a capture never changes, so it is kept."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool
        self._verdicts: OrderedDict[str, UsageVerdict] = OrderedDict()

    async def withheld(self, version: Version, words: Collection[str] = SHOWING) -> str | None:
        """Why the body of a version is withheld, by some words of the verdict; None if it is not."""
        known = self._verdicts.get(version.capture)
        if known is None:
            said = await self._pool.run(partial(usage, version=version))
            known = self._verdicts[version.capture] = said.verdict
            if len(self._verdicts) > MOST_KEPT:
                self._verdicts.popitem(last=False)
        return refusal(known, words)


def _judged(signals: tuple[Signal, ...]) -> UsageTerms:
    return UsageTerms(verdict=verdict(signals), signals=signals)


def _withheld(reason: str) -> HttpProblem:
    return HttpProblem(403, f"{reason}; {_HOW}")
