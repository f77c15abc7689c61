"""Judge whether a response is a new version of a resource, or only looks like one. Pure."""

from enum import StrEnum

import msgspec

from tamias.model.capture import Outcome

MOST_SHARED = 4
"""Resources of one host that may have the same body before it is taken for an error page."""

LOST_FROM = 20
"""Items from which on a version is missed when nearly all of them are gone."""

LOST_SHARE = 20
"""One item of so many is left, or fewer."""

SHARED_BYTES = 1 << 20
"""A larger body is hardly an error page, however many have it."""

PAGES = frozenset({"text/html", "application/xhtml+xml"})


class AttemptMeaning(StrEnum):
    """The meaning of an attempt for a resource."""

    CHANGED = "changed"
    NOISE = "noise"
    """Other bytes, the same content."""
    UNCHANGED = "unchanged"
    SUSPECT = "suspect"
    """Suspicious: the version before stays the current one."""
    GONE = "gone"
    FAILED = "failed"
    """Nothing can be said."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The response of an attempt, as it is judged."""

    outcome: Outcome
    sha256: str | None = None
    size: int = 0
    media_type: str | None = None
    """As found."""
    fingerprint: str | None = None
    shared_by: int = 0
    """Other resources of the host with the same body."""
    items: int | None = None
    """Rows, statements or items in it, where they were counted."""
    counted: str = "items"
    """What was counted."""
    is_data: bool = False
    """Whether it was read as the table or graph that its type says, with two rows or a statement."""
    error: str | None = None
    """What it says, where it is an error message and nothing else; or why the response was refused."""
    at: int = 0
    """When it was observed, in milliseconds."""


class KnownState(msgspec.Struct, frozen=True):
    """The known state of a resource."""

    sha256: str | None = None
    fingerprint: str | None = None
    media_type: str | None = None
    expected: str | None = None
    items: int | None = None
    """Rows, statements or items in the current version."""
    suspicious: str | None = None
    """Why the current version was suspicious before it was accepted."""
    suspicious_since: int | None = None
    """Since when responses are suspicious, one after another, in milliseconds."""


class Judgement(msgspec.Struct, frozen=True):
    """The meaning, and why it is suspicious, if so."""

    meaning: AttemptMeaning
    reason: str | None = None
    accepted: str | None = None
    """Why it is suspicious, where it is a version all the same: it stayed, or is the first."""


def judge(observed: Observation, known: KnownState, patience_ms: int | None = None) -> Judgement:
    """An error message or a page in place of data, nearly all rows lost, a body shared by many: suspicious.

    What stays suspicious for longer than `patience_ms` is taken for what the resource has become.
    """
    if observed.outcome is Outcome.GONE:
        return Judgement(AttemptMeaning.GONE)
    if observed.outcome is Outcome.UNCHANGED:
        return Judgement(AttemptMeaning.UNCHANGED)
    if observed.outcome is Outcome.REFUSED and observed.error is not None:
        return Judgement(AttemptMeaning.SUSPECT, observed.error)
    if observed.outcome is not Outcome.OK or observed.sha256 is None:
        return Judgement(AttemptMeaning.FAILED)
    if observed.sha256 == known.sha256:
        return Judgement(AttemptMeaning.UNCHANGED)
    doubt = _doubt(observed, known)
    if doubt is not None:
        since = known.suspicious_since
        if patience_ms is None or since is None or observed.at - since < patience_ms:
            return Judgement(AttemptMeaning.SUSPECT, doubt)
    accepted = doubt or _accepted_error(observed, known)
    if known.fingerprint is not None and observed.fingerprint == known.fingerprint:
        return Judgement(AttemptMeaning.NOISE, accepted=accepted)
    return Judgement(AttemptMeaning.CHANGED, accepted=accepted)


def _doubt(observed: Observation, known: KnownState) -> str | None:
    promised = known.media_type or known.expected
    if observed.media_type in PAGES and promised is not None and promised not in PAGES:
        return f"a page ({observed.media_type}) where {promised} was expected"
    if observed.size == 0 and known.sha256 is not None:
        return "empty, and was not before"
    if observed.shared_by >= MOST_SHARED and observed.size <= SHARED_BYTES and not observed.is_data:
        return f"the same body as {observed.shared_by} other resources of the host"
    # A resource that was accepted with such content may have more of it, and a first version may be anything.
    if known.suspicious is not None or known.sha256 is None:
        return None
    return _error(observed) or _lost(observed, known)


def _accepted_error(observed: Observation, known: KnownState) -> str | None:
    """Return why an accepted error message is marked; a series of them is accepted."""
    return (known.suspicious or _error(observed)) if observed.error is not None else None


def _error(observed: Observation) -> str | None:
    return f"an error message: {observed.error}" if observed.error is not None else None


def _lost(observed: Observation, known: KnownState) -> str | None:
    if observed.media_type != known.media_type:
        return None
    if observed.items is None or known.items is None or known.items < LOST_FROM:
        return None
    if observed.items * LOST_SHARE > known.items:
        return None
    return f"{observed.items:,} {observed.counted}, where the version before has {known.items:,}"
