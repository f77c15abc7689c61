"""A document: what an analyser reads, after compression and archives are peeled off; a page, for taggers."""

import sys
import time
from typing import BinaryIO

import msgspec

FREE_GROWTH = 16 << 20
MAX_GROWTH = 250
"""Bytes of statements that a document may become for each of its own, beyond `FREE_GROWTH`, by default."""
AT_ONCE_BYTES = 8 << 20
AT_ONCE_SECONDS = 1.0
"""What a document may take of the thread that all others wait for."""


class LimitExceeded(Exception):
    """A read hit a limit of ours; the message names the limit and its setting."""


class Overblown(LimitExceeded):
    """A body that becomes more than any honest one of its size would: a bomb, not a dataset."""


class NotAtOnce(LimitExceeded):
    """A small document that takes more than the others can wait for: it is read again in a sandbox."""


class Unreadable(Exception):
    """A content is not what its type says, or would cost too much to read; the message says which."""


class DocumentBudget:
    """Bound what one body becomes while it is read: the bytes of its statements, and the time they take.

    Readers call `check` before they make more of a document than they have read of it, and wherever a few
    bytes can ask for much work. What is written is spent.
    """

    def __init__(self, size: int, growth: int = MAX_GROWTH, *, at_once: bool = False) -> None:
        self._growth = growth
        self._left = AT_ONCE_BYTES if at_once else FREE_GROWTH + growth * size
        self._ends = time.thread_time() + AT_ONCE_SECONDS if at_once else None

    def check(self, more: int = 0) -> None:
        """Raise `Overblown` if so many bytes more are too many; `NotAtOnce` for a document read at once."""
        self.expect(more)
        if more > self._left:
            raise Overblown(f"becomes more than {self._growth} times its size (limit analyse.growth)")

    def expect(self, more: int = 0, seconds: float = 0.0) -> None:
        """Raise `NotAtOnce` for what may become too much, or take too long, to be read at once."""
        if self._ends is not None and (more > self._left or time.thread_time() + seconds > self._ends):
            raise NotAtOnce("takes too long to be read at once")

    def spend(self, size: int) -> None:
        """Count bytes that are written. Raise as `check` does."""
        self.check(size)
        self._left -= size


class TextPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A place between two statements of a document, from which reading can go on."""

    offset: int
    """Bytes before it, in UTF-8."""
    line: int
    prefixes: dict[str, str] = {}
    base: str | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A readable unit: a page, an RDF file, a member of an archive."""

    url: str
    """The final URL it was read from; also the base of relative references."""
    stream: BinaryIO
    """Already bounded: reading past a limit raises `LimitExceeded`, never returns forever.

    Damaged data ends it where what can be read ends; the `Problem` is told by whoever opened it.
    """
    media_type: str
    """What was found, not what was told; parameters stripped."""
    declared_type: str | None = None
    charset: str | None = None
    """The character encoding as found, by a name that Python knows; None where nothing speaks for one."""
    member: str | None = None
    """The name inside an archive, never a path; `outer.zip!/inner.nt` in an archive inside another."""
    graph: str | None = None
    """The IRI that the member's name spells, percent-encoded, as in the dumps of Semantic Sitemaps.

    What it says belongs to the graph of that name, if the document may speak for it.
    """

    position: TextPosition | None = None
    """Where reading goes on; None: at the beginning."""
    context: str | None = None
    """The address of the JSON-LD context that the answer named for plain JSON."""
    budget: DocumentBudget = msgspec.field(default_factory=lambda: DocumentBudget(sys.maxsize))
    """What the body that it is from may become."""

    @property
    def base(self) -> str:
        """Return what relative references are relative to."""
        return self.graph or self.url


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A fetched page. The body is whole or, where it is large, empty."""

    url: str
    media_type: str | None
    """As found, not as told."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever its case."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)
