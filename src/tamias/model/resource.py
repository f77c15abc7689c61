"""A resource under watch, its versions and its sources: what the archive knows of one URL."""

from hashlib import sha256
from typing import Literal

import msgspec

State = Literal["active", "gone", "stopped"]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a resource was named: by a user, or by a catalogue as a form of one of its datasets."""

    source: str
    """An address: of the catalogue's dataset, of a list, of an endpoint; empty for a user's word."""
    portal: str | None = None
    title: str | None = None
    format: str | None = None
    """As the source says it: a short name or a media type."""


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a resource. Numbers begin at 1."""

    resource: str
    number: int
    captured_at: int
    """Milliseconds UTC, when its first bytes were asked for."""
    sha256: str
    byte_size: int
    media_type: str | None
    """As found."""
    told_type: str | None = None
    fingerprint: str | None = None
    """Of the content: equal where only the bytes differ."""
    noise: str | None = None
    """Why only its bytes differ from those of the version before; None where its content does."""
    suspicious: str | None = None
    """Why it was suspicious before it was accepted because it stayed; None where it never was."""
    capture: str
    """The attempt that brought it."""

    @property
    def id(self) -> str:
        """Its name, such as `3b1f..._4`."""
        return f"{self.resource}_{self.number}"


class LastError(msgspec.Struct, frozen=True):
    """Why a visit brought nothing, and when that was."""

    reason: str
    at: int | None


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """One URL of which every version is kept."""

    id: str
    url: str
    state: State = "active"
    title: str | None = None
    media_type: str | None = None
    """Of the current version, as found."""
    expected: str | None = None
    """What its sources say it is, as a media type; None where they do not, or disagree."""
    added_at: int
    next_visit: int | None = None
    change_rate: float | None = None
    """Changes a day, as far as it is known."""
    versions: int = 0
    every: int | None = None
    """How often the user wants it visited, in milliseconds; None leaves it to the schedule."""
    priority: float | None = None
    """How much more often than others it is visited, by the user's word."""
    last_error: LastError | None = None
    """The latest; it stays when later visits succeed."""
    sources: tuple[Source, ...] = ()


def resource_id(key: str) -> str:
    """The short name of a resource: from the key of its URL.

    >>> resource_id("http://example.org/a.csv")
    '9637fc70d9dc55fb671d5c1f'
    """
    return sha256(key.encode()).hexdigest()[:24]
