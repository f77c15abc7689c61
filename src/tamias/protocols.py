"""Interfaces between the rooms, with its contract.

A part meets another only through these and through the values of `model`. Filters, fetchers,
analysers, sinks and seeds are found by entry points (`tamias.plugins`); the built-in ones too.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from tamias.model.capture import Capture, Extent, Hop, Request, Stop
from tamias.model.document import Document, Page
from tamias.model.finding import Finding, Harvest, HarvestStep
from tamias.model.item import Seed
from tamias.model.resource import VersionNote
from tamias.model.site import HostNote

Record = Callable[[Any, frozenset[int]], None]
"""Called inside the transaction of `PostgresFrontier.finish` with its cursor and hosts (`qid`) still held;
writes what must become true together with the finish. May be called again if the transaction is."""

Follow = Callable[[str], Awaitable[Stop | None]]
"""Asked before a redirect is followed, with its absolute target. None: go on (any politeness delay has
been waited for). A `Stop` ends the capture there, with that outcome and reason."""


RefuseResponse = Callable[[Capture], str | None]
"""Gives the reason to refuse a response before it is read; None lets it pass. Pure, fast, never raises."""

ReadHostNotes = Callable[[Any], list[HostNote]]
"""Reads notes about hosts from a session of the database."""

ReadVersionNotes = Callable[[Any, Sequence[str] | None], list[VersionNote]]
"""Reads notes about versions of some resources, or of all, from a session of the database."""

NeededBodies = Callable[[Any], list[tuple[str, str]]]
"""Reads from a session which bodies must stay: the name of what needs each, and its digest."""


class SignRequests(Protocol):
    """Signs the requests of a fetcher, hop by hop."""

    def headers(self, url: str) -> list[bytes]:
        """Return the header lines that sign a request; none where it is not signed. Never raises."""
        ...

    def take_challenge(self, hop: Hop) -> bool:
        """Return whether a response asks for a signature; then the request is repeated once, signed."""
        ...


class DocumentSink(Protocol):
    """A place for the N-Quads of one document."""

    def write(self, chunk: bytes) -> None:
        """Append plain N-Quads."""
        ...

    @property
    def extent(self) -> Extent:
        """Return where the document stands; to be taken when it is complete, within its block."""
        ...


class SeedSource(Protocol):
    """Turns what a user names (a URL, a list, a portal) into addresses to start from."""

    def seeds(self, argument: str) -> Iterator[Seed]:
        """The seeds, in order. Raises `TamiasError` when the argument cannot be read."""
        ...


class Filter(Protocol):
    """Decides whether a URL may enter the frontier. Pure and fast: it sees every new link.

    Filters of features are made with the settings `filters`, or None is, and asked after those of the core.
    """

    def refuse(self, url: str, depth: int) -> str | None:
        """The reason to keep the URL out, naming the rule; None lets it in. Never raises."""
        ...


@runtime_checkable
class ListFilter(Filter, Protocol):
    """A filter whose lists change: it is also asked before each request. Its refusals are counted by list."""

    def taken_counts(self) -> dict[str, int]:
        """Return how often each list kept something out since the last call."""
        ...


class Fetcher(Protocol):
    """Fetches one kind of address. Never raises for what a server does: the capture tells."""

    schemes: frozenset[str]

    async def fetch(self, request: Request, follow: Follow) -> Capture:
        """Return one attempt within all limits; each redirect is a hop, taken only if `follow` agrees.

        Raises `DiskFull` when there is no room for the body.
        """
        ...

    async def close(self) -> None:
        """Give up what is under way. May be called twice."""
        ...


class Tagger(Protocol):
    """Tells tags of a page from its content. Pure and fast: it sees every page that was fetched."""

    def tags(self, page: Page) -> Iterable[str]:
        """The tags, such as `lang=de`: categories, a few for each page. Never raises."""
        ...


class PoliteClient(Protocol):
    """Ways of a harvester to the outside: ask politely, and read responses as any document is read."""

    async def ask(self, request: Request) -> Capture:
        """Send a request within all limits, after robots.txt and delay; follow redirects within the queue.

        Never raises for what a server does. A refusal by robots.txt is a capture that says so. Leads to the
        harvest's own host or one of its queue only; another address is refused. Give each capture to `body`
        or `read`, or let it be: what it holds on disk is gone after the next `ask`.
        """
        ...

    def body(self, capture: Capture, most: int) -> bytes:
        """The first `most` bytes of what came; empty when nothing did."""
        ...

    def read(self, capture: Capture) -> Iterator[Finding]:
        """Return what came, opened and analysed as an ordinary document would be."""
        ...

    async def records_held(self) -> int:
        """Return how many records of the catalogue the archive holds, those of the steps so far included."""
        ...


class PageRules(Protocol):
    """Rules of a user that find data and links on some pages."""

    def applies(self, url: str) -> bool:
        """Return whether there is a rule for the page."""
        ...

    def narrows(self, url: str) -> bool:
        """Return whether only those links of the page are followed that its rules name."""
        ...

    def extract(self, url: str, data: bytes, *, base: str | None = None) -> Iterator[Finding]:
        """Yield what the rules find on a page in UTF-8. Never raises."""
        ...


class Harvester(Protocol):
    """Reads what is more than a document: an endpoint, a portal, a stream of events."""

    kinds: frozenset[str]

    def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        """Step by step, each small enough for memory and complete in itself; the last has an `end`.

        Quads are as they stand: default graph for what the address itself says, blank nodes with labels that
        mean the same throughout the harvest. A step that was not saved is asked for again, with the state
        before it.
        """
        ...


class Sink(Protocol):
    """Writes one new segment: takes the N-Quads of documents, one document at a time.

    Made with the path of its file and the segment's number; the setting `sinks.segments` names the part.
    Others read the segment as docs/formats.md describes it: zstd frames in that file.
    """

    segment: int

    def document(self) -> AbstractContextManager[DocumentSink]:
        """Take one document; if the block is left by an exception, nothing of it stays."""
        ...

    def sync(self) -> int:
        """Make all documents so far durable; return the length to be recorded as committed."""
        ...

    def close(self) -> None:
        """Let go of it. What was not synced is cut off by the next start."""
        ...


class Analyser(Protocol):
    """Reads one kind of document."""

    media_types: frozenset[str]

    def analyse(self, document: Document) -> Iterator[Finding]:
        """Findings in batches as they are read, memory bounded; bad data becomes a `Problem`.

        `LimitExceeded` from the document's stream passes through.
        """
        ...
