"""What a path of the web can be. Plain values: `sites` makes them, `answers` turns them into HTTP."""

import msgspec
from pyoxigraph import Quad


class Data(msgspec.Struct, frozen=True):
    """RDF in whichever syntax the client likes best."""

    quads: tuple[Quad, ...]


class File(msgspec.Struct, frozen=True):
    """Fixed bytes under a media type that need not be the truth."""

    body: bytes
    media_type: str
    quads: tuple[Quad, ...] = ()
    """What a reader who opens it finds; the default graph stands for the document."""


class Redirect(msgspec.Struct, frozen=True):
    """Something that is elsewhere."""

    location: str
    status: int = 303


class MissingPage(msgspec.Struct, frozen=True):
    """Something that others still link to."""

    status: int = 404


class Busy(msgspec.Struct, frozen=True):
    """Asks the first visitor to come again, and then gives the page."""

    page: Data | File
    retry_after: int = 1


class Slow(msgspec.Struct, frozen=True):
    """Gives the page after a while."""

    page: Data | File
    seconds: float = 0.5


Page = Data | File | Redirect | MissingPage | Busy | Slow


class DemoSite(msgspec.Struct, frozen=True, kw_only=True):
    """One host with all its paths, as they are written on the wire."""

    authority: str
    kind: str
    pages: dict[str, Page]
    disallowed: frozenset[str] = frozenset()
    """The paths that exist and that its robots.txt forbids."""

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"http://{self.authority}{path}"


class DemoWeb(msgspec.Struct, frozen=True, kw_only=True):
    """Every host by its address, and the URLs from which all the rest can be reached."""

    sites: dict[str, DemoSite]
    seeds: tuple[str, ...]


def quads_of(page: Page) -> tuple[Quad, ...]:
    """What is to be read on a page, sooner or later."""
    match page:
        case Data(quads=quads) | File(quads=quads):
            return quads
        case Busy(page=inner) | Slow(page=inner):
            return inner.quads
        case _:
            return ()
