"""The interface of the stores of packs, `local` and `objects`."""

from collections.abc import Iterator
from typing import ClassVar, Protocol
from uuid import UUID

import msgspec

from tamias.model.errors import TamiasError


class PackError(TamiasError):
    """A pack cannot be read or written."""


class StoreUnavailable(PackError):
    """The store cannot be reached at this moment."""

    retry_can_help = True


class PackMissing(PackError):
    """Raised for a pack that does not exist, or that lacks the bytes requested."""


class Pack(msgspec.Struct, frozen=True):
    """A pack that is there."""

    pack: UUID
    length: int


class PackWriter(Protocol):
    """Writes one new pack from its start to its end. `DiskFull` leaves it as it was before the call."""

    pack: UUID
    length: int
    """Bytes so far."""

    @property
    def is_open(self) -> bool:
        """Return whether it takes more; a store may close a pack at its first `sync`."""
        ...

    def append(self, record: list[bytes]) -> int:
        """Adds the parts of a record; returns where it starts. It can be read at once, and is not durable."""
        ...

    def take_back(self, length: int) -> None:
        """Forgets what was appended beyond that length and is not synced; nothing if the pack is closed."""
        ...

    def sync(self) -> None:
        """Makes all so far durable. If it fails the pack is closed: nobody knows what was kept of it."""
        ...

    def close(self) -> None:
        """Lets go of it. What was not synced may be lost. May be called twice."""
        ...


class Packs(Protocol):
    """The packs of an archive. Raises `PackError`, and `DiskFull` when there is no room."""

    is_elsewhere: ClassVar[bool]
    """Whether it is another machine's, which may have to be waited for."""

    @property
    def is_borrowed(self) -> bool:
        """Return whether another archive owns the packs: then none is removed."""
        ...

    @property
    def waits_for(self) -> str | None:
        """Return what is waited for, in a sentence, while it cannot be reached. For any thread."""
        ...

    def probe(self) -> None:
        """Raises `StoreUnavailable` at once where the store cannot be reached."""
        ...

    def create(self, pack: UUID) -> PackWriter:
        """A new pack."""
        ...

    def read(self, pack: UUID, start: int, length: int) -> bytes:
        """Return so many bytes, or `PackMissing`."""
        ...

    def find(self, pack: UUID) -> Pack | None:
        """A pack, if it is there."""
        ...

    def all(self) -> Iterator[Pack]:
        """Yield every pack that is there."""
        ...

    def is_held(self, pack: UUID, age: float) -> bool:
        """Return whether somebody may still be writing it; `age` in seconds is that of its row."""
        ...

    def cut(self, pack: UUID, length: int) -> None:
        """Takes away what follows, where the store can; only for a pack that nobody holds."""
        ...

    def erase(self, pack: UUID, start: int, length: int) -> bool:
        """Overwrites a record that no row names, durably; False where the store cannot. May be done twice."""
        ...

    def remove(self, pack: UUID) -> None:
        """Takes a pack away. May be done twice."""
        ...
