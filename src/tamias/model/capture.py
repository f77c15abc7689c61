"""A capture: one attempt to fetch a URL, how it ended, what was seen of it, and the record of it."""

import os
from enum import IntEnum, StrEnum
from typing import Annotated
from uuid import UUID

import msgspec

from tamias.model.site import Signal


class Outcome(IntEnum):
    """The outcome of the latest attempt; `NEW` before the first one."""

    NEW = 0
    OK = 1
    UNCHANGED = 2
    GONE = 3
    REFUSED = 4
    FAILED = 5
    SKIPPED = 6

    @property
    def word(self) -> str:
        """The outcome as users read it, such as `ok`."""
        return self.name.lower()


class Unreached(StrEnum):
    """The reason why no answer came at all."""

    UNKNOWN = "unknown"
    """A time-out, no route, a name service in trouble: it may be the host, the way to it, or us."""
    DEFINITE = "definite"
    """The connection was refused, or TLS failed: somebody said no."""
    NO_NAME = "no such name"
    """The name service says that there is no such name."""
    SILENT = "silent"
    """Connected, and then no answer in time."""


class Request(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request to a server, with the validators of the last visit."""

    url: str
    accept: str | None = None
    """None asks for RDF first, then for whatever there is."""
    expected: str | None = None
    """The media type that is expected there: it is asked for before all others, where `accept` is None."""
    etag: str | None = None
    last_modified: str | None = None
    body: bytes | None = None
    """With a body it is a POST, sent again at a redirect only where the method is kept (307, 308)."""
    content_type: str | None = None
    """Of the body."""
    keeps_errors: bool = False
    """Whether what comes with an error or a redirect is kept, too."""
    is_query: bool = False
    """Whether the answer is computed before its first byte, which may take longer then."""


class Stop(msgspec.Struct, frozen=True, gc=False):
    """The reason why a redirect is not followed, and the outcome that it gives the capture."""

    outcome: Outcome
    reason: str
    cut: int = 0
    """What forbids it: bits of `tamias.model.cut`."""


class Hop(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A request and its answer; a redirect makes several. Its JSON stands in the row of a capture."""

    url: str
    status: int
    address: str
    """The peer's IP address."""
    location: str | None = None
    """Where a redirect points, made absolute."""
    headers: tuple[tuple[str, str], ...] = ()
    """In a record, kept where the archive keeps what came."""
    protocol: str = ""
    """As WARC names it, such as `http/1.1`; in a record kept as the headers are."""

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever its case."""
        wanted, length = name.lower(), len(name)
        for key, value in self.headers:
            if len(key) == length and key.lower() == wanted:
                return value
        return None


class Body(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A body after transfer and content coding, in memory or in a spool file."""

    size: int
    sha256: str
    data: bytes | None = None
    path: str | None = None
    """Set instead of `data` when the body is large; whoever asked for it deletes it."""
    descriptor: int | None = None
    """Set instead of `path` where files cannot be opened by name: an open file, read from its start."""


class Capture(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An attempt: every hop, the body if there is one, and how it ended."""

    url: str
    """As it was asked for."""
    started_at: int
    ended_at: int
    outcome: Outcome
    reason: str
    """In words; names the limit that was hit or the rule that refused."""
    hops: tuple[Hop, ...] = ()
    body: Body | None = None
    error_body: Body | None = None
    """What came with an error or a redirect, where somebody keeps that: it is no document."""
    retry: bool = False
    """Whether trying again later can help."""
    retry_after_ms: int | None = None
    """How long the server asked us to stay away."""
    wire_bytes: int = 0
    cut: int = 0
    """What kept us from asking, or from following a redirect: bits of `tamias.model.cut`."""
    unreached: Unreached | None = None
    """Set when nobody answered."""

    @property
    def final_url(self) -> str:
        """Return where the last answer came from."""
        return self.hops[-1].url if self.hops else self.url

    @property
    def status(self) -> int | None:
        """The HTTP status of the last answer."""
        return self.hops[-1].status if self.hops else None

    @property
    def declared_type(self) -> str | None:
        """The Content-Type the server gave, as it stands."""
        return self.hops[-1].header("content-type") if self.hops else None


class Column(msgspec.Struct, frozen=True):
    """Says of a field that it is a column of the database, of which type, and by what name if not its own."""

    type: str
    name: str = ""


class Extent(msgspec.Struct, frozen=True, gc=False):
    """The place of one document's quads: plain bytes in the zstd frames of a segment."""

    segment: Annotated[int, Column("int8")]
    frame: Annotated[int, Column("int8")]
    """Byte offset of the first frame in the file."""
    start: Annotated[int, Column("int8")]
    """Plain bytes to skip in that frame."""
    length: Annotated[int, Column("int8")]
    """Plain bytes, over as many frames as it takes."""


class FramePlace(msgspec.Struct, frozen=True, gc=False):
    """The place of a frame that was merged into another segment: plain bytes of that one's only frame."""

    segment: int
    start: int
    length: int
    next_frame: int
    """Where the next frame of its own segment stood."""


class SegmentMerged(OSError):
    """Raised when a segment is opened whose frames are in others now; `frames` has them by their places."""

    def __init__(self, frames: dict[int, FramePlace]) -> None:
        super().__init__("it was merged into other segments")
        self.frames = frames


class CaptureRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An attempt on a URL, and its row of the table `capture`. Times are milliseconds UTC."""

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
    hops: Annotated[tuple[Hop, ...], Column("jsonb")] = ()
    final_url: Annotated[str, Column("text")]
    status: Annotated[int | None, Column("int2")] = None
    declared_type: Annotated[str | None, Column("text")] = msgspec.field(default=None, name="told_type")
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
    saving_ms: Annotated[int | None, Column("int4")] = None
    """How long it took to analyse and store what came; None where nothing did."""
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
        """Return whether the attempt says what the document holds: read, read up to a limit, or gone."""
        if self.outcome is Outcome.OK:
            return self.read or self.extent is not None
        return self.outcome is Outcome.GONE or self.extent is not None


def new_capture_id(milliseconds: int) -> UUID:
    """A fresh id that sorts by time.

    >>> new_capture_id(0x0123456789AB).hex[:13]
    '0123456789ab7'
    """
    return capture_id_of(milliseconds, os.urandom(10))


def capture_id_of(milliseconds: int, key: bytes) -> UUID:
    """An id that sorts by time and is otherwise made from the first bytes of a key: the same for the same."""
    random = int.from_bytes(key[:10], "big")
    number = (milliseconds & (1 << 48) - 1) << 80 | 7 << 76 | (random >> 68 & 0xFFF) << 64
    return UUID(int=number | 0b10 << 62 | random & (1 << 62) - 1)
