"""A catalogue of data sets as triples, the same in every run, written in each format that is read."""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import escape

import msgspec
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse, serialize

from tamias.sinks.export import PREFIXES

SITE = "https://data.example.org/"
GRAPH_TRIPLES = 1000
"""Triples in each named graph, where the format has them."""

_DCT, _DCAT, _XSD = PREFIXES["dcterms"], PREFIXES["dcat"], PREFIXES["xsd"]
_VCARD = "http://www.w3.org/2006/vcard/ns#"
_TYPE = f"{PREFIXES['rdf']}type"
_THEMES = ("water", "energy", "transport", "health", "education", "housing", "forest")
_MEDIA = "https://www.iana.org/assignments/media-types/"
_TRIX = '<TriX xmlns="http://www.w3.org/2004/03/trix/trix-1/">\n'

Term = NamedNode | BlankNode | Literal | Triple


class CorpusFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A format: its name, the ending of its files, its type, and how it is written."""

    name: str
    ending: str
    media_type: str
    write: Callable[[Iterable[Triple], BinaryIO], object]
    parsed_as: RdfFormat | None = None
    """For pyoxigraph, where it can read it."""


def lines() -> Iterator[str]:
    """N-Triples without end: data sets with a distribution, a publisher and a contact each."""
    number = 0
    while True:
        yield from _dataset(number)
        number += 1


def triples(count: int) -> Iterator[Triple]:
    """The first so many."""
    some = "".join(islice(lines(), count)).encode()
    return (quad.triple for quad in parse(some, format=RdfFormat.N_TRIPLES))


def write_dump(path: Path, count: int) -> None:
    """N-Triples in gzip, written as a stream."""
    rest = islice(lines(), count)
    with gzip.open(path, "wt", compresslevel=3, encoding="utf-8", newline="\n") as file:
        while some := "".join(islice(rest, 10_000)):
            file.write(some)


def _dataset(number: int) -> Iterator[str]:
    dataset, file = f"<{SITE}dataset/{number}>", f"<{SITE}dataset/{number}/file.csv>"
    theme, other = _THEMES[number % 7], _THEMES[number % 5]
    yield f"{dataset} <{_TYPE}> <{_DCAT}Dataset> .\n"
    yield f'{dataset} <{_DCT}title> "Register of {theme}, part {number}"@en .\n'
    yield f'{dataset} <{_DCT}description> "Observations of {theme} and {other} in district {number % 97}, taken every month and \\"checked\\" by hand." .\n'  # noqa: E501
    yield f"{dataset} <{_DCT}publisher> <{SITE}office/{number % 211}> .\n"
    yield f'{dataset} <{_DCT}issued> "20{number % 25:02}-{number % 12 + 1:02}-{number % 28 + 1:02}"^^<{_XSD}date> .\n'  # noqa: E501
    yield f'{dataset} <{_DCAT}keyword> "{theme}"@en .\n'
    yield f"{dataset} <{_DCAT}theme> <{SITE}theme/{other}> .\n"
    yield f"{dataset} <{_DCAT}contactPoint> _:contact{number} .\n"
    yield f'_:contact{number} <{_VCARD}fn> "Desk {number % 13}" .\n'
    yield f"{dataset} <{_DCAT}distribution> {file} .\n"
    yield f"{file} <{_TYPE}> <{_DCAT}Distribution> .\n"
    yield f"{file} <{_DCAT}downloadURL> {file} .\n"
    yield f"{file} <{_DCAT}mediaType> <{_MEDIA}text/csv> .\n"
    yield f'{file} <{_DCAT}byteSize> "{number * 7919 % 10_000_000}"^^<{_XSD}integer> .\n'


def _in_graphs(said: Iterable[Triple]) -> Iterator[Quad]:
    for number, triple in enumerate(said):
        subject, predicate, value = triple
        yield Quad(subject, predicate, value, NamedNode(f"{SITE}graph/{number // GRAPH_TRIPLES}"))


def _plain(said: Iterable[Triple], out: BinaryIO, form: RdfFormat) -> None:
    prefixes = {**PREFIXES, "vcard": _VCARD} if form in (RdfFormat.TURTLE, RdfFormat.RDF_XML) else None
    serialize(said, out, format=form, prefixes=prefixes)


def _graphs(said: Iterable[Triple], out: BinaryIO, form: RdfFormat) -> None:
    prefixes = {**PREFIXES, "vcard": _VCARD} if form == RdfFormat.TRIG else None
    serialize(_in_graphs(said), out, format=form, prefixes=prefixes)


def _hdt(said: Iterable[Triple], out: BinaryIO) -> None:
    from tamias.content.hdt.writer import write_hdt

    write_hdt(said, out, name=SITE, most=100_000_000)


def _jelly(said: Iterable[Triple], out: BinaryIO) -> None:
    from tamias.sinks.files.jelly import write_jelly

    write_jelly(_in_graphs(said), out)


def _rdf_json(said: Iterable[Triple], out: BinaryIO) -> None:
    subjects: dict[str, dict[str, list[dict[str, str]]]] = {}
    for subject, predicate, value in said:
        subjects.setdefault(_name(subject), {}).setdefault(predicate.value, []).append(_json_term(value))
    out.write(json.dumps(subjects).encode())


def _json_term(term: Term) -> dict[str, str]:
    if not isinstance(term, Literal):
        return {"type": "bnode" if isinstance(term, BlankNode) else "uri", "value": _name(term)}
    mark = {"lang": term.language} if term.language else {"datatype": term.datatype.value}
    return {"type": "literal", "value": term.value, **mark}


def _trix(said: Iterable[Triple], out: BinaryIO) -> None:
    out.write(f"{_TRIX}<graph>\n".encode())
    out.writelines(f"<triple>{''.join(map(_trix_term, triple))}</triple>\n".encode() for triple in said)
    out.write(b"</graph>\n</TriX>\n")


def _trix_term(term: Term) -> str:
    if isinstance(term, NamedNode):
        return f"<uri>{escape(term.value)}</uri>"
    if not isinstance(term, Literal):
        return f"<id>{_name(term)[2:]}</id>"
    if term.language:
        return f'<plainLiteral xml:lang="{term.language}">{escape(term.value)}</plainLiteral>'
    return f'<typedLiteral datatype="{term.datatype.value}">{escape(term.value)}</typedLiteral>'


def _name(term: Term) -> str:
    return term.value if isinstance(term, NamedNode) else str(term)


def _oxigraph_form(
    name: str, form: RdfFormat, write: Callable[[Iterable[Triple], BinaryIO, RdfFormat], None]
) -> CorpusFormat:
    return CorpusFormat(
        name=name,
        ending=form.file_extension,
        media_type=form.media_type,
        write=lambda said, out: write(said, out, form),
        parsed_as=form,
    )


FORMS = (
    _oxigraph_form("N-Triples", RdfFormat.N_TRIPLES, _plain),
    _oxigraph_form("N-Quads", RdfFormat.N_QUADS, _graphs),
    _oxigraph_form("Turtle", RdfFormat.TURTLE, _plain),
    _oxigraph_form("TriG", RdfFormat.TRIG, _graphs),
    _oxigraph_form("RDF/XML", RdfFormat.RDF_XML, _plain),
    _oxigraph_form("JSON-LD", RdfFormat.JSON_LD, _plain),
    CorpusFormat(name="HDT", ending="hdt", media_type="application/vnd.hdt", write=_hdt),
    CorpusFormat(name="Jelly", ending="jelly", media_type="application/x-jelly-rdf", write=_jelly),
    CorpusFormat(name="RDF/JSON", ending="rj", media_type="application/rdf+json", write=_rdf_json),
    CorpusFormat(name="TriX", ending="trix", media_type="application/trix", write=_trix),
)


def written(form: CorpusFormat, count: int) -> bytes:
    """The first so many triples in a format."""
    out = BytesIO()
    form.write(triples(count), out)
    return out.getvalue()
