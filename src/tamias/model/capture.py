"""A capture: one attempt to fetch a URL, and all that was seen of it."""

from enum import StrEnum

import msgspec

from tamias.model.outcome import Outcome


class Unreached(StrEnum):
    """Why no answer came at all."""

    UNKNOWN = "unknown"
    """A time-out, no route, a name service in trouble: it may be the host, the way to it, or us."""
    DEFINITE = "definite"
    """The connection was refused, TLS failed, or there is no such name: somebody said no."""
    DOUBTFUL = "doubtful"
    """No such name, said by a name service that has shown no other name lately."""
    SILENT = "silent"
    """Connected, and then no answer in time."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a server, with the validators of the last visit."""

    url: str
    accept: str | None = None
    """None asks for RDF first, then for whatever there is."""
    etag: str | None = None
    last_modified: str | None = None
    body: bytes | None = None
    """With a body it is a POST, sent again at a redirect only where the method is kept (307, 308)."""
    content_type: str | None = None
    """Of the body."""


class Stop(msgspec.Struct, frozen=True):
    """Why a redirect is not followed, and what that makes of the capture."""

    outcome: Outcome
    reason: str
    cut: int = 0
    """What forbids it: bits of `tamias.model.cut`."""


class Hop(msgspec.Struct, frozen=True, kw_only=True):
    """One request and its answer; a redirect makes several."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    address: str
    """The peer's IP address."""
    location: str | None = None
    """Where a redirect points, made absolute."""

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever its case."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A body after transfer and content coding, in memory or in a spool file."""

    size: int
    sha256: str
    data: bytes | None = None
    path: str | None = None
    """Set instead of `data` when the body is large; whoever asked for it deletes it."""
    descriptor: int | None = None
    """Set instead of `path` where files cannot be opened by name: an open file, read from its start."""


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt: every hop, the body if there is one, and how it ended."""

    url: str
    """As it was asked for."""
    started_at: int
    ended_at: int
    outcome: Outcome
    reason: str
    """In words; names the limit that was hit or the rule that refused."""
    hops: tuple[Hop, ...] = ()
    body: Body | None = None
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
        """Where the last answer came from."""
        return self.hops[-1].url if self.hops else self.url

    @property
    def status(self) -> int | None:
        """The HTTP status of the last answer."""
        return self.hops[-1].status if self.hops else None

    @property
    def told_type(self) -> str | None:
        """The Content-Type the server gave, as it stands."""
        return self.hops[-1].header("content-type") if self.hops else None
