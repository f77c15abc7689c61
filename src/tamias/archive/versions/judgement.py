"""Whether what came is a new version of a resource, or only looks like one. Pure."""

from enum import StrEnum

import msgspec

from tamias.model.capture import Outcome

MOST_SHARED = 4
"""Resources of one host that may have the same body before it is taken for an error page."""

SHARED_BYTES = 1 << 20
"""A larger body is hardly an error page, however many have it."""

PAGES = frozenset({"text/html", "application/xhtml+xml"})


class AttemptMeaning(StrEnum):
    """What an attempt means for a resource."""

    CHANGED = "changed"
    NOISE = "noise"
    """Other bytes, the same content."""
    UNCHANGED = "unchanged"
    SUSPECT = "suspect"
    """Not believed: the version before stays the current one."""
    GONE = "gone"
    FAILED = "failed"
    """Nothing can be said."""


class Came(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt brought."""

    outcome: Outcome
    sha256: str | None = None
    size: int = 0
    media_type: str | None = None
    """As found."""
    fingerprint: str | None = None
    shared_by: int = 0
    """Other resources of the host with the same body."""


class KnownState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the resource."""

    sha256: str | None = None
    fingerprint: str | None = None
    media_type: str | None = None
    expected: str | None = None


class Judgement(msgspec.Struct, frozen=True):
    """The meaning, and why it is not believed, if so."""

    meaning: AttemptMeaning
    reason: str | None = None


def judge(came: Came, known: KnownState) -> Judgement:
    """A page where data was expected, or a body shared by many, is not believed; an error says nothing."""
    if came.outcome is Outcome.GONE:
        return Judgement(AttemptMeaning.GONE)
    if came.outcome is Outcome.UNCHANGED:
        return Judgement(AttemptMeaning.UNCHANGED)
    if came.outcome is not Outcome.OK or came.sha256 is None:
        return Judgement(AttemptMeaning.FAILED)
    if came.sha256 == known.sha256:
        return Judgement(AttemptMeaning.UNCHANGED)
    doubt = _doubt(came, known)
    if doubt is not None:
        return Judgement(AttemptMeaning.SUSPECT, doubt)
    if known.fingerprint is not None and came.fingerprint == known.fingerprint:
        return Judgement(AttemptMeaning.NOISE)
    return Judgement(AttemptMeaning.CHANGED)


def _doubt(came: Came, known: KnownState) -> str | None:
    promised = known.media_type or known.expected
    if came.media_type in PAGES and promised is not None and promised not in PAGES:
        return f"a page ({came.media_type}) where {promised} was expected"
    if came.size == 0 and known.sha256 is not None:
        return "empty, and was not before"
    if came.shared_by >= MOST_SHARED and came.size <= SHARED_BYTES:
        return f"the same body as {came.shared_by} other resources of the host"
    return None
