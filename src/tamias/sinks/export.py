"""Gives stored N-Quads out again, as they are or in another form. Only HDT needs memory for all of them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO, Literal

from pyoxigraph import Quad, RdfFormat, Triple, parse, serialize

from tamias.model.errors import TamiasError
from tamias.sinks.files.graphs import whole_lines

ExportFormat = Literal["nquads", "trig", "turtle", "jsonld", "jelly", "hdt"]

MAX_HDT_TRIPLES = 10_000_000
"""At about 300 bytes of memory each, 3 GB."""

HDT_NAME = "urn:tamias:export"
"""What the header of an HDT file calls its data set."""

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
    hdt_triples: int = MAX_HDT_TRIPLES,
) -> int:
    """Writes N-Quads, cut into chunks anywhere; returns how many statements the format cannot say.

    N-Quads pass through. TriG and JSON-LD open a graph anew whenever the graph changes. Turtle and HDT have
    no graphs: the names are dropped, and a triple that stands in several graphs comes several times in
    Turtle. JSON-LD and HDT leave out triples about triples. HDT holds all in memory and raises `TamiasError`
    for more than `hdt_triples`.
    """
    if format == "nquads":
        out.writelines(chunks)
    elif format == "trig":
        serialize(_quads(chunks), out, format=RdfFormat.TRIG, prefixes=dict(prefixes))
    elif format == "turtle":
        serialize(_triples(chunks), out, format=RdfFormat.TURTLE, prefixes=dict(prefixes))
    elif format == "jsonld":
        return _json_ld(chunks, out)
    elif format == "jelly":
        _jelly(chunks, out)
    else:
        return _hdt(chunks, out, hdt_triples)
    return 0


def _json_ld(chunks: Iterable[bytes], out: BinaryIO) -> int:
    """Without prefixes: an IRI whose scheme is spelled like one would come back as another."""
    left_out = 0

    def sayable() -> Iterator[Quad]:
        nonlocal left_out
        for quad in _quads(chunks):
            if isinstance(quad.object, Triple):
                left_out += 1
            else:
                yield quad

    serialize(sayable(), out, format=RdfFormat.JSON_LD)
    return left_out


def _jelly(chunks: Iterable[bytes], out: BinaryIO) -> None:
    from tamias.sinks.files.jelly import write_jelly

    write_jelly(_quads(chunks), out)


def _hdt(chunks: Iterable[bytes], out: BinaryIO, most: int) -> int:
    from tamias.content.hdt.writer import TooManyTriples, write_hdt

    try:
        return write_hdt(_triples(chunks), out, name=HDT_NAME, most=most).left_out
    except TooManyTriples:
        raise TamiasError(
            f"HDT is made in memory, and there are more than {most} triples; export another format"
        ) from None


def _quads(chunks: Iterable[bytes]) -> Iterator[Quad]:
    for lines in whole_lines(chunks):
        # Lenient: the grammar was seen to when they were written, and IRIs are given out as they were read.
        yield from parse(lines, format=RdfFormat.N_QUADS, lenient=True)


def _triples(chunks: Iterable[bytes]) -> Iterator[Triple]:
    for quad in _quads(chunks):
        yield quad.triple
