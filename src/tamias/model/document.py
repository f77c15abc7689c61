"""A document: what an analyser reads, after compression and archives are peeled off; a page, for taggers."""

from typing import BinaryIO

import msgspec


class TextPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A place between two statements of a document, from which reading can go on."""

    offset: int
    """Bytes before it, in UTF-8."""
    line: int
    prefixes: dict[str, str] = {}
    base: str | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One readable thing: a page, an RDF file, a member of an archive."""

    url: str
    """The final URL it was read from; also the base of relative references."""
    stream: BinaryIO
    """Already bounded: reading past a limit raises `LimitExceeded`, never returns forever.

    Damaged data ends it where what can be read ends; the `Problem` is told by whoever opened it.
    """
    media_type: str
    """What was found, not what was told; parameters stripped."""
    told_type: str | None = None
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

    @property
    def base(self) -> str:
        """What relative references are relative to."""
        return self.graph or self.url


class LimitExceeded(Exception):
    """A read hit a limit of ours; the message names the limit and its setting."""


class Overblown(LimitExceeded):
    """A body that becomes more than any honest one of its size would: a bomb, not a dataset."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What was fetched. The body is whole or, where it is large, empty."""

    url: str
    media_type: str | None
    """As found, not as told."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever its case."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)
