"""Meanings of responses for a resource, and its known state."""

from enum import StrEnum

import msgspec

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

    @property
    def trusted(self) -> bool:
        """Return whether the response is what the resource is."""
        return self.meaning in (AttemptMeaning.CHANGED, AttemptMeaning.NOISE, AttemptMeaning.UNCHANGED)
