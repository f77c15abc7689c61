"""The statements of an RDF document as lines of N-Quads.

pyoxigraph ends its process on some hostile documents: what would do so is refused before it is parsed.
"""

import re
from itertools import islice
from xml.parsers import expat

import msgspec
from pyoxigraph import RdfFormat, parse, serialize

from tamias.content.containers.codecs import HEAD
from tamias.content.formats import load_analyser, syntax_of
from tamias.content.quad_lines import QuadLines
from tamias.content.sniff import found_charset
from tamias.features.archive.canonical.text import Source, marked_chunks, open_source, size_of
from tamias.model.document import Document, LimitExceeded, Unreadable
from tamias.model.finding import Finding, Problem, Quads

NO_BASE = "http://base.invalid/"
"""Stands for the address of a document that is not known."""
BATCH = 500
MAX_DEPTH = 500
MAX_ENTITIES = 64 << 10
MAX_JSON_LD = 16 << 20
MOST_RECOVERED = 8 << 20
"""Bytes of a broken document, which is read by slower means."""
_GROWTH = 10
_FREE_GROWTH = 8 << 20
_CONTEXT_WORK = 200_000_000
_QUOTED_TRIPLE = re.compile(rb"<<|>>")

MOST_NESTED = 200
MOST_NESTING = 200_000
_FLAT = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
_ROUND = bytes.maketrans(b"[]", b"()")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]()"))


class BrokenDocument(Unreadable):
    """A document has faults, but a part of it can be read."""


def statement_lines(source: Source, media_type: str, most_bytes: int, base: str | None = None) -> set[bytes]:
    """Return the statements of a document, each a line of N-Quads without its end. Raises `Unreadable`."""
    syntax = syntax_of(media_type)
    if syntax is None:
        return _analysed_lines(source, media_type, most_bytes, base, lenient=False)
    return parsed_lines(read_document(source, most_bytes), syntax, base)


def recovered_lines(source: Source, media_type: str, base: str | None) -> set[bytes]:
    """Return the statements that a crawl reads in a broken document. Raises `Unreadable` if none."""
    lines = _analysed_lines(source, media_type, MOST_RECOVERED, base, lenient=True)
    if not lines:
        raise Unreadable(f"not {media_type}")
    return lines


def _analysed_lines(
    source: Source, media_type: str, most_bytes: int, base: str | None, *, lenient: bool
) -> set[bytes]:
    """Return the statements that an analyser reads. Raises `BrokenDocument` at a fault, unless lenient."""
    _check_size(source, most_bytes)
    analyser = load_analyser(media_type)
    if analyser is None:
        raise Unreadable(f"no analyser reads {media_type}")
    lines: set[bytes] = set()
    size = 0
    with open_source(source) as file:
        charset = found_charset(file.read(HEAD), None, media_type)
        file.seek(0)
        document = Document(url=base or NO_BASE, stream=file, media_type=media_type, charset=charset)
        try:
            for finding in analyser().analyse(document):
                if isinstance(finding, Problem) and not lenient:
                    raise BrokenDocument(f"not {media_type}: {finding.what}")
                text = _written(finding)
                size += len(text)
                if size > _GROWTH * most_bytes:
                    raise Unreadable(f"{media_type} of more than {_GROWTH * most_bytes} bytes of statements")
                lines.update(text.split(b"\n"))
        except LimitExceeded as limit:
            raise Unreadable(str(limit)) from limit
    lines.discard(b"")
    return lines


def _written(finding: Finding) -> bytes:
    if not isinstance(finding, Quads):
        return b""
    quads = finding.quads
    return quads.nquads if isinstance(quads, QuadLines) else serialize(quads, format=RdfFormat.N_QUADS) or b""


def read_document(source: Source, most_bytes: int) -> bytes:
    """The text of a document, without a mark. Raises `Unreadable`."""
    _check_size(source, most_bytes)
    return b"".join(marked_chunks(source))


def _check_size(source: Source, most_bytes: int) -> None:
    size = size_of(source)
    if size > most_bytes:
        raise Unreadable(f"{size} bytes of RDF, more than the {most_bytes} that are compared")


def parsed_lines(data: bytes, syntax: RdfFormat, base: str | None = None) -> set[bytes]:
    """Return the statements of a text as lines of N-Quads. Raises `Unreadable`."""
    refuse_hostile(data, syntax)
    try:
        quads = parse(data, format=syntax, base_iri=base or NO_BASE)
        batches = iter(lambda: serialize(islice(quads, BATCH), format=RdfFormat.N_QUADS), b"")
        lines = {line for batch in batches for line in (batch or b"").split(b"\n")}
    except (SyntaxError, ValueError, MemoryError) as fault:  # the last: a token beyond the parser's buffer
        raise BrokenDocument(f"not {syntax.name}: {fault}") from fault
    lines.discard(b"")
    return lines


def refuse_hostile(data: bytes, syntax: RdfFormat) -> None:
    """Raises `Unreadable` for what could end the parser's process or keep it for very long."""
    if syntax == RdfFormat.JSON_LD:
        _check_json_ld(data)
    elif syntax == RdfFormat.RDF_XML:
        _check_xml(data)
    else:
        if syntax not in _FLAT:
            _check_brackets(data)
        if data.count(b"<<") > MAX_DEPTH:
            _check_quoted_triples(data)


def _check_quoted_triples(data: bytes) -> None:
    depth = 0
    for sign in _QUOTED_TRIPLE.findall(data):
        depth = depth + 1 if sign == b"<<" else max(0, depth - 1)
        if depth > MAX_DEPTH:
            raise Unreadable(f"triples nested more than {MAX_DEPTH} deep")


def _check_brackets(data: bytes) -> None:
    """Turtle and its kin: naming the blank nodes of a chain takes seconds for every 100,000 of them.

    Brackets in literals count too: who has so many of them there is compared by bytes.
    """
    shape = data.translate(_ROUND, _NO_BRACKETS)
    for level in range(MOST_NESTED):
        if b"()" not in shape:
            return
        shape = shape.replace(b"()", b"")
        if level == 0 and shape.count(b"(") > MOST_NESTING:
            break
    raise Unreadable(
        f"brackets nested more than {MOST_NESTED} deep, or more than {MOST_NESTING} of them nested"
    )


def _check_json_ld(data: bytes) -> None:
    """A scoped context is gone through for each node, so contexts inside are for small documents only."""
    if len(data) > MAX_JSON_LD:
        raise Unreadable(f"{len(data)} bytes of JSON-LD, more than the {MAX_JSON_LD} that are compared")
    contexts = data.count(b"@context") + data.count(b"\\u0040")
    if contexts > 1 and data.count(b"{") * len(data) > _CONTEXT_WORK:
        raise Unreadable("too many JSON-LD contexts")
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError) as fault:
        raise Unreadable(f"not JSON: {fault}") from fault
    except RecursionError as fault:
        raise Unreadable("JSON nested too deep") from fault


def _check_xml(data: bytes) -> None:
    look = _XmlLook()
    try:
        look.parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as fault:
        raise BrokenDocument(f"not XML: {fault}") from fault
    if look.entities and data.count(b"&") * max(look.entities) > _FREE_GROWTH + _GROWTH * len(data):
        raise Unreadable(f"XML entities may grow the document by more than {_GROWTH} times")


class _XmlLook:
    """Goes through XML for its depth and its entities, without keeping anything."""

    def __init__(self) -> None:
        self.depth = 0
        self.entities: list[int] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = self._entity

    def _start(self, _name: str, _attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable(f"XML elements nested more than {MAX_DEPTH} deep")

    def _end(self, _name: str) -> None:
        self.depth -= 1

    def _entity(self, *declaration: str | bool | None) -> None:
        value = declaration[2]
        if not isinstance(value, str) or "&" in value:
            raise Unreadable("XML entities made of others, or from elsewhere")
        self.entities.append(len(value.encode()))
        if sum(self.entities) > MAX_ENTITIES:
            raise Unreadable(f"XML entities of more than {MAX_ENTITIES} bytes")
