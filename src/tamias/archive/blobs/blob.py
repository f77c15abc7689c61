"""A blob: one body that is kept, how it is coded and where it stands."""

from enum import StrEnum
from typing import Annotated
from uuid import UUID

import msgspec

from tamias.model.capture import Column
from tamias.model.errors import TamiasError


class Codec(StrEnum):
    """How a body is stored; `docs/blobs.md` tells how to read each without Tamias."""

    RAW = "raw"
    """As it is."""
    ZSTD = "zstd"
    """One zstd frame."""
    ZDELTA = "zdelta"
    """One zstd frame that refers to the base as if it stood before it (`zstd --patch-from`)."""
    ROWS = "rows"
    """The lines that the base does not have, and where those stand that it has."""
    CHUNKS = "chunks"
    """Blobs in a row; the base is their list."""


class BlobPlace(msgspec.Struct, frozen=True):
    """Where a record stands."""

    pack: Annotated[UUID, Column("uuid")]
    start: Annotated[int, Column("int8")]
    length: Annotated[int, Column("int8")]

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.start + self.length


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """What must be known to give a body back. Digests are SHA-256 in hexadecimal."""

    sha256: Annotated[str, Column("bytea")]
    size: Annotated[int, Column("int8")]
    codec: Annotated[Codec, Column("text")]
    base: Annotated[str | None, Column("bytea")] = None
    depth: Annotated[int, Column("int2")] = 0
    stored: Annotated[int, Column("int8")]
    place: BlobPlace


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A body whose bytes are written, and the rows that will make it true."""

    sha256: str
    size: int
    blobs: tuple[Blob, ...] = ()
    """Those whose rows are not known to be there: all that it needs of what was prepared and not settled."""
    relies_on: tuple[str, ...] = ()
    """Those with rows, which must still be there when the new ones are written."""
    written: int = 0
    """Bytes that were added to packs for it."""


class BlobMissing(TamiasError):
    """There is no such blob."""


class BlobDamaged(TamiasError):
    """The stored bytes of a blob do not give its body back; `sha256` is the one that is broken."""

    def __init__(self, sha256: str, problem: str) -> None:
        super().__init__(f"blob {sha256} is damaged: {problem}; 'tamias check --repair' may repair it")
        self.sha256 = sha256
        self.problem = problem


class BlobLost(TamiasError):
    """What a prepared body relies on was collected before its rows were written; prepare it again."""

    retry_can_help = True
