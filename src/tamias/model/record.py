"""A capture as it is kept: what the database, the metadata graph and an export know of one attempt."""

from typing import Annotated

import msgspec

from tamias.model.outcome import Outcome
from tamias.model.signal import Signal


class Column(msgspec.Struct, frozen=True):
    """Says of a field that it is a column of the database, of which type, and by what name if not its own."""

    type: str
    name: str = ""


class Extent(msgspec.Struct, frozen=True):
    """Where the quads of one document stand: plain bytes in the zstd frames of a segment."""

    segment: Annotated[int, Column("int8")]
    frame: Annotated[int, Column("int8")]
    """Byte offset of the first frame in the file."""
    start: Annotated[int, Column("int8")]
    """Plain bytes to skip in that frame."""
    length: Annotated[int, Column("int8")]
    """Plain bytes, over as many frames as it takes."""


class HopRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request and its answer."""

    url: str
    status: int
    address: str
    location: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Kept where the archive keeps what came."""


class CaptureRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt on a URL, and its row of the table `capture`. Times are milliseconds UTC."""

    id: Annotated[str, Column("uuid", "capture")]
    """A time-ordered UUID."""
    crawl: Annotated[int, Column("int4")]
    crawl_name: str = ""
    """Known when the record is read back."""
    url: Annotated[str, Column("text")]
    """As it was asked for."""
    started_at: Annotated[int, Column("int8")]
    ended_at: Annotated[int, Column("int8")]
    outcome: Annotated[Outcome, Column("int2")]
    reason: Annotated[str, Column("text")]
    depth: Annotated[int, Column("int2")]
    hops: Annotated[tuple[HopRecord, ...], Column("jsonb")] = ()
    final_url: Annotated[str, Column("text")]
    status: Annotated[int | None, Column("int2")] = None
    told_type: Annotated[str | None, Column("text")] = None
    found_type: Annotated[str | None, Column("text")] = None
    bytes: Annotated[int | None, Column("int8")] = None
    """Size of the body after transfer and content coding; None when none came."""
    sha256: Annotated[str | None, Column("bytea")] = None
    read: bool = False
    """Whether the body was read to its end; one that is known already need not be."""
    quads: Annotated[int, Column("int8")] = 0
    links: Annotated[int, Column("int8")] = 0
    problems: Annotated[tuple[str, ...], Column("jsonb")] = ()
    extent: Extent | None = None
    renamed_graphs: Annotated[tuple[tuple[str, str], ...], Column("jsonb")] = ()
    """Graph names that were a stranger's: as they stood in the document, and what they became."""
    signals: Annotated[tuple[Signal, ...], Column("jsonb")] = ()
    """What the site said about the use of it, as it was in force."""
    worker: Annotated[str, Column("text")]
    agent: Annotated[str, Column("text")]
    """The User-Agent that was sent."""
    deferred: Annotated[bool, Column("bool")] = False
    """Whether it is repeated because nobody could be reached."""

    @property
    def held(self) -> Extent | None:
        """The quads that the document holds after this attempt."""
        return None if self.outcome is Outcome.GONE else self.extent

    @property
    def tells_content(self) -> bool:
        """Whether the attempt says what the document holds: read, read up to a limit, or gone."""
        if self.outcome is Outcome.OK:
            return self.read or self.extent is not None
        return self.outcome is Outcome.GONE or self.extent is not None
