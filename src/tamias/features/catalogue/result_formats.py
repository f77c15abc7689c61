"""The format of an answer: the one of those offered that the client likes best."""

from typing import Final

from pyoxigraph import QueryResultsFormat, QueryTriples, RdfFormat

from tamias.content.formats import (
    CSV,
    JSON,
    JSON_LD,
    N3,
    NQUADS,
    NTRIPLES,
    PLAIN,
    RDF_XML,
    TRIG,
    TSV,
    TURTLE,
    XML,
)

_RESULTS: Final = [
    "application/sparql-results+json",
    "application/sparql-results+xml",
    *(CSV, TSV, JSON, XML),
    "text/json",
    "text/xml",
    PLAIN,
]
_STATEMENTS: Final = [NTRIPLES, TURTLE, NQUADS, TRIG, RDF_XML, JSON_LD, JSON, XML, PLAIN, N3]


def result_format(answer: object, accept: str) -> QueryResultsFormat | RdfFormat | None:
    """The format of an answer; None when the client likes none of ours."""
    if isinstance(answer, QueryTriples):
        kind = preferred(accept, _STATEMENTS)
        return RdfFormat.from_media_type(kind) if kind else None
    kind = preferred(accept, _RESULTS)
    if kind == PLAIN:
        return QueryResultsFormat.TSV
    return QueryResultsFormat.from_media_type(kind) if kind else None


def preferred(accept: str, offered: list[str]) -> str | None:
    """The media type that a client likes best, the first of those it likes equally; None: it likes none.

    >>> preferred("text/*;q=0.5, application/ld+json", ["text/turtle", "application/ld+json"])
    'application/ld+json'
    """
    if not accept.strip():
        return offered[0]
    liked = [weighed(part) for part in accept.split(",")[:100]]
    weights = {kind: _weight(kind, liked) for kind in offered}
    best = max(weights.values())
    return next(kind for kind in offered if weights[kind] == best) if best > 0 else None


def weighed(part: str) -> tuple[str, float]:
    """Return a name in an Accept header, and its weight from 0 to 1."""
    kind, *words = (word.strip().lower() for word in part.split(";"))
    weight = next((word[2:] for word in words if word.startswith("q=")), "1")
    try:
        return kind, min(1.0, max(0.0, float(weight)))
    except ValueError:
        return kind, 0.0


def _weight(kind: str, liked: list[tuple[str, float]]) -> float:
    """Return the weight of the closest range."""
    for pattern in (kind, kind.partition("/")[0] + "/*", "*/*"):
        for name, weight in liked:
            if name == pattern:
                return weight
    return 0.0
