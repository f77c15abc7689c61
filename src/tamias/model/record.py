"""A capture as it is kept: what the database, the metadata graph and an export know of one attempt."""

import msgspec

from tamias.model.outcome import Outcome
from tamias.model.signal import Signal


class Extent(msgspec.Struct, frozen=True):
    """Where the quads of one document stand: plain bytes in the zstd frames of a segment."""

    segment: int
    frame: int
    """Byte offset of the first frame in the file."""
    start: int
    """Plain bytes to skip in that frame."""
    length: int
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
    """One attempt on a URL. Times are milliseconds UTC."""

    id: str
    """A time-ordered UUID."""
    crawl: int
    crawl_name: str = ""
    """Known when the record is read back."""
    url: str
    """As it was asked for."""
    started_at: int
    ended_at: int
    outcome: Outcome
    reason: str
    depth: int
    hops: tuple[HopRecord, ...] = ()
    final_url: str
    status: int | None = None
    told_type: str | None = None
    found_type: str | None = None
    bytes: int | None = None
    """Size of the body after transfer and content coding; None when none came."""
    sha256: str | None = None
    read: bool = False
    """Whether the body was read to its end; one that is known already need not be."""
    quads: int = 0
    links: int = 0
    problems: tuple[str, ...] = ()
    extent: Extent | None = None
    renamed_graphs: tuple[tuple[str, str], ...] = ()
    """Graph names that were a stranger's: as they stood in the document, and what they became."""
    signals: tuple[Signal, ...] = ()
    """What the site said about the use of it, as it was in force."""
    worker: str
    agent: str
    """The User-Agent that was sent."""
    deferred: bool = False
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
