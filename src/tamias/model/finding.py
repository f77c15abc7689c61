"""What an analyser finds, in batches: quads, links, problems."""

import msgspec
from pyoxigraph import Quad


class Quads(msgspec.Struct, frozen=True):
    """Statements as they stand in the document; plain triples are in the default graph."""

    quads: list[Quad]


class Links(msgspec.Struct, frozen=True):
    """References as they stand in the document, to be resolved against `base`."""

    references: list[str]
    base: str


class Problem(msgspec.Struct, frozen=True):
    """Something that could not be read. The rest still counts, but the reading is a partial one."""

    what: str
    line: int | None = None
    column: int | None = None
    """Both counted from 1, in characters."""
    wants: str | None = None
    """The address of what was not at hand, such as a JSON-LD context; with it, reading again can help."""


Finding = Quads | Links | Problem
