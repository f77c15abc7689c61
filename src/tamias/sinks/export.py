"""Gives stored N-Quads out again, as they are or in a syntax for people. Memory does not grow with them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO, Literal

from pyoxigraph import Quad, RdfFormat, Triple, parse, serialize

ExportFormat = Literal["nquads", "trig", "turtle"]

PREFIXES = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "http://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def export(
    chunks: Iterable[bytes],
    out: BinaryIO,
    format: ExportFormat,  # noqa: A002 - the word of the command line
    prefixes: Mapping[str, str] = PREFIXES,
) -> None:
    """Writes N-Quads, cut into chunks anywhere, in the given format.

    N-Quads pass through. TriG opens a graph anew whenever the graph changes. Turtle has no graphs: the names
    are dropped, and a triple that stands in several graphs comes several times.
    """
    if format == "nquads":
        out.writelines(chunks)
    elif format == "trig":
        serialize(_quads(chunks), out, format=RdfFormat.TRIG, prefixes=dict(prefixes))
    else:
        serialize(_triples(chunks), out, format=RdfFormat.TURTLE, prefixes=dict(prefixes))


def _quads(chunks: Iterable[bytes]) -> Iterator[Quad]:
    for lines in _whole_lines(chunks):
        # Lenient: the grammar was seen to when they were written, and IRIs are given out as they were read.
        yield from parse(lines, format=RdfFormat.N_QUADS, lenient=True)


def _triples(chunks: Iterable[bytes]) -> Iterator[Triple]:
    for quad in _quads(chunks):
        yield quad.triple


def _whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join((*rest, chunk[:end]))
            rest = []
        rest.append(chunk[end:])
    yield b"".join(rest)
