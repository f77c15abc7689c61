"""A resource under watch, its versions and its sources: what the archive knows of one URL."""

from hashlib import sha256
from typing import Annotated, Literal

import msgspec

from tamias.model.capture import Column

State = Literal["active", "gone", "stopped"]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The source that named a resource: a user, or a catalogue with one of its datasets."""

    source: str
    """An address: of the catalogue's dataset, of a list, of an endpoint; empty for a user's word."""
    portal: str | None = None
    title: str | None = None
    format: str | None = None
    """As the source says it: a short name or a media type."""
    licence: str | None = None
    """As a portal says it, of the file or of its dataset."""


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A stored state of a resource."""

    resource: Annotated[str, Column("text")]
    number: int = 0
    """From 1 on; 0 before it is stored."""
    captured_at: Annotated[int, Column("int8")]
    """Milliseconds UTC, when its first bytes were requested."""
    sha256: Annotated[str, Column("bytea")]
    byte_size: Annotated[int, Column("int8")]
    media_type: Annotated[str | None, Column("text")]
    """As found."""
    declared_type: Annotated[str | None, Column("text")] = msgspec.field(default=None, name="told_type")
    fingerprint: Annotated[str | None, Column("bytea")] = None
    """Of the content: equal where only the bytes differ."""
    noise: Annotated[str | None, Column("text")] = None
    """Why only its bytes differ from those of the version before; None where its content does."""
    suspicious: Annotated[str | None, Column("text")] = None
    """Why it was suspicious before it was accepted because it stayed; None where it never was."""
    items: Annotated[int | None, Column("int8")] = None
    """Rows, statements, items or files in a new one, where they were counted."""
    capture: Annotated[str, Column("uuid")]
    """The attempt that brought it."""
    packed: Annotated[bytes | None, Column("bytea")] = None
    """The profile of a new one, where it was made at once (`tamias.features.dcat.profiles` packs it)."""
    tables: Annotated[str | None, Column("text")] = None
    """What is looked up in that by itself, as JSON."""

    @property
    def id(self) -> str:
        """Return its name, such as `3b1f..._4`."""
        return f"{self.resource}_{self.number}"


class LastError(msgspec.Struct, frozen=True):
    """The reason why a visit brought nothing, and its time."""

    reason: str
    at: int | None


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A URL of which every version is stored."""

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

    @property
    def licences(self) -> tuple[str, ...]:
        """Return the licences that its sources name, each once."""
        return tuple(dict.fromkeys(each.licence for each in self.sources if each.licence))


def resource_id(key: str) -> str:
    """The short name of a resource: from the key of its URL.

    >>> resource_id("http://example.org/a.csv")
    '9637fc70d9dc55fb671d5c1f'
    """
    return sha256(key.encode()).hexdigest()[:24]


class VersionNote(msgspec.Struct, frozen=True):
    """A note about a version for people; `is_trouble` where somebody should look at it."""

    resource: str
    number: int
    text: str
    is_trouble: bool
