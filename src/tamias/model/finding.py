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
    """Something that could not be read. The rest of the document still counts."""

    what: str
    line: int | None = None


Finding = Quads | Links | Problem
