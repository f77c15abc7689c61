"""Usage signals of servers, and what is withheld from the public because of them.

The one place where that is decided, for every way to a body and for every search.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec
from starlette.requests import Request

from tamias.database.sql import statements
from tamias.features.service.http.callers import may_read_all
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.thread_pool import ServiceSession, SessionPool
from tamias.model.resource import Version
from tamias.model.site import Signal
from tamias.model.usage import BULK, SHOWING, TRAINING, UsageVerdict, reasons, refusal, verdict

MOST_VERDICTS: Final = 20_000
SEARCH: Final = ("noindex",)
_HOW: Final = (
    "the owner of the archive gets it with the secret or a token with the scope 'read':"
    " 'Authorization: Bearer SECRET'"
)
_SQL = statements("tamias.features.service.queries", "queries.sql")


class UsageTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The usage signals of a version, and the verdict on them."""

    verdict: UsageVerdict = UsageVerdict()
    signals: tuple[Signal, ...] = ()

    @property
    def noindex(self) -> bool:
        """The resource is not found by a search, while this is its newest version."""
        return self.verdict.noindex

    @property
    def noarchive(self) -> bool:
        """Return whether the body is withheld, while its metadata is not."""
        return self.verdict.noarchive

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """Return forbidden uses, with who forbids them."""
        return list(reasons(self.signals))


_SILENCE: Final = UsageTerms()


def usages(db: ServiceSession, captures: Collection[str]) -> dict[str, UsageTerms]:
    """Return usage terms by captures."""
    values = {"bucket": list(range(db.frontier.buckets)), "capture": list(captures)}
    rows = db.session.fetch_all(_SQL["signals"], values)
    said = dict.fromkeys(captures, _SILENCE)
    for capture, found in rows:
        signals = msgspec.convert(found, tuple[Signal, ...])
        said[capture] = UsageTerms(verdict=verdict(signals), signals=signals)
    return said


def unlisted(db: ServiceSession, resources: Iterable[str], words: Collection[str] = SEARCH) -> frozenset[str]:
    """Return the resources that searches leave out, or feeds by other words of the verdict."""
    values = {"resource": list(set(resources))}
    if not values["resource"] or not words:
        return frozenset()
    rows = db.session.fetch_all(_SQL["newest"], values)
    said = usages(db, [capture for _, capture in rows])
    return frozenset(
        resource for resource, capture in rows if any(getattr(said[capture].verdict, word) for word in words)
    )


def check_open(
    db: ServiceSession, versions: Sequence[Version], *, owner: bool, words: Collection[str] = SHOWING
) -> dict[str, UsageTerms]:
    """Return the usage terms of versions. Raises `HttpProblem` if a body is withheld."""
    said = usages(db, [each.capture for each in versions])
    withheld = (refusal(each.verdict, words) for each in said.values())
    if not owner and (reason := next((each for each in withheld if each), None)):
        raise _withheld(reason)
    return said


def check_owner(request: Request, reason: str) -> None:
    """Raises `HttpProblem` unless the caller may read all: what it wants is withheld from others."""
    if not may_read_all(request):
        raise _withheld(reason)


def bulk_words(request: Request, also: Collection[str] = ()) -> tuple[str, ...]:
    """Return the words of the verdict by which a zip or feed leaves out; the owner gets all but training."""
    words = () if may_read_all(request) else (*also, *BULK)
    return (*words, *TRAINING) if wants_training(request) else words


def wants_training(request: Request) -> bool:
    """Return whether `?for=training` marks the response for the training of models."""
    return request.query_params.get("for") == "training"


class Usages:
    """The same for those who are at no db. What was said of a capture never changes, so it is kept."""

    def __init__(self, pool: SessionPool) -> None:
        self._pool = pool
        self._verdicts: OrderedDict[str, UsageVerdict] = OrderedDict()

    async def withheld(self, version: Version, words: Collection[str] = SHOWING) -> str | None:
        """Return why the body of a version is withheld; None if it is not."""
        known = self._verdicts.get(version.capture)
        if known is None:
            said = await self._pool.run(lambda db: usages(db, [version.capture]))
            known = self._verdicts[version.capture] = said[version.capture].verdict
            if len(self._verdicts) > MOST_VERDICTS:
                self._verdicts.popitem(last=False)
        return refusal(known, words)


def _withheld(reason: str) -> HttpProblem:
    return HttpProblem(403, f"{reason}; {_HOW}")
