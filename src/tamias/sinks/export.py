"""Gives stored N-Quads out again, as they are or in another form; features add forms of their own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import BinaryIO

from pyoxigraph import Quad, RdfFormat, Triple, parse, serialize

from tamias.plugins import load, parts
from tamias.sinks.graphs import whole_lines

Writer = Callable[[Iterable[bytes], BinaryIO], int]
"""Writes N-Quads, cut into chunks anywhere, and returns how many statements the format cannot express."""

_BUILT_IN = ("nquads", "trig", "turtle", "jsonld")

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


def export_formats() -> list[str]:
    """Return the names of all formats that quads can be written in."""
    return [*_BUILT_IN, *parts("writers")]


def export(
    chunks: Iterable[bytes],
    out: BinaryIO,
    format: str,  # noqa: A002 - the word of the command line
    prefixes: Mapping[str, str] = PREFIXES,
) -> int:
    """Writes N-Quads, cut into chunks anywhere; returns how many statements the format cannot say.

    N-Quads pass through. TriG and JSON-LD open a graph anew whenever the graph changes. Turtle has no graphs:
    the names are dropped, and a triple that stands in several graphs comes several times. JSON-LD leaves out
    triples about triples. Other formats are those of features. Raises `ConfigError` for one there is not.
    """
    if format == "nquads":
        out.writelines(chunks)
    elif format == "trig":
        serialize(read_quads(chunks), out, format=RdfFormat.TRIG, prefixes=dict(prefixes))
    elif format == "turtle":
        triples = (quad.triple for quad in read_quads(chunks))
        serialize(triples, out, format=RdfFormat.TURTLE, prefixes=dict(prefixes))
    elif format == "jsonld":
        return _json_ld(chunks, out)
    else:
        writer: Writer = load("writers", format)
        return writer(chunks, out)
    return 0


def _json_ld(chunks: Iterable[bytes], out: BinaryIO) -> int:
    """Write JSON-LD without prefixes: an IRI whose scheme looks like one would change."""
    left_out = 0

    def sayable() -> Iterator[Quad]:
        nonlocal left_out
        for quad in read_quads(chunks):
            if isinstance(quad.object, Triple):
                left_out += 1
            else:
                yield quad

    serialize(sayable(), out, format=RdfFormat.JSON_LD)
    return left_out


def read_quads(chunks: Iterable[bytes]) -> Iterator[Quad]:
    """Parse stored N-Quads, cut into chunks anywhere."""
    for lines in whole_lines(chunks):
        # Lenient: the grammar was seen to when they were written, and IRIs are given out as they were read.
        yield from parse(lines, format=RdfFormat.N_QUADS, lenient=True)
