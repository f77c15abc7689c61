"""RDF/JSON into quads, one subject at a time, so that memory does not grow with the document."""

import codecs
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tamias.analyse.chunks import RefusedError, read_chunks, utf8_chunks
from tamias.analyse.rdf.statements import (
    JSON,
    Nesting,
    RdfStatements,
    StatementAnalyser,
    blank_node,
    iri,
    literal,
)
from tamias.content.formats import read_by
from tamias.model.document import Document
from tamias.model.finding import Finding

_LEAST_READ = 1 << 16
_BLANKS = " \t\r\n"
_DECODER = JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


class RdfJsonAnalyser(StatementAnalyser):
    """Reads RDF/JSON; a fault in the JSON ends it, one in a statement does not."""

    media_types = read_by(__name__)

    def _read(self, document: Document, statements: RdfStatements) -> Iterator[Finding]:
        chunks = utf8_chunks(read_chunks(document.stream), document.charset)
        text = _Text(Nesting(JSON, self._limits).watched(chunks), self._limits.rdfjson_subject)
        try:
            for subject, line, value in _members(text):
                yield from _said(subject, value, line, statements)
        except JSONDecodeError as error:
            yield from statements.fault(f"JSON: {error.msg}", text.line_of(error.pos))
        except RecursionError:
            yield from statements.fault("JSON is nested too deep", text.line())


class _Text:
    """A JSON text of which a window is at hand, read on as it is asked for."""

    def __init__(self, chunks: Iterator[bytes], most: int) -> None:
        self._chunks = chunks
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._most = most
        self._ended = False
        self._line = 1
        self._counted = 0
        self.text = ""
        self.at = 0

    def line(self) -> int:
        """The line of where it was read to."""
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def line_of(self, place: int) -> int:
        """The line of a place further on in the window."""
        return self.line() + self.text.count("\n", self.at, place)

    def sign(self) -> str:
        """The next sign that is not blank, which stays; nothing at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in _BLANKS:
                self.at += 1
            if self.at < len(self.text) or not self._more():
                return self.text[self.at : self.at + 1]

    def expect(self, signs: str) -> str:
        """Passes one of the signs."""
        found = self.sign()
        if not found or found not in signs:
            raise JSONDecodeError(f"expected {' or '.join(signs)}", self.text, self.at)
        self.at += 1
        return found

    def value(self) -> object:
        """Passes a JSON value."""
        self.sign()
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except JSONDecodeError:
                if not self._more():
                    raise
                continue
            self.at = end
            return value

    def _more(self) -> bool:
        """Reads on, at least as much as is at hand, so that trying again costs no more than twice."""
        if self._ended:
            return False
        self.line()
        pieces = [self.text[self.at :]]
        wanted = max(_LEAST_READ, len(pieces[0]))
        self.at = self._counted = 0
        if len(pieces[0]) > self._most:
            limit = f"{self._most} characters (limit analyse.rdfjson_subject)"
            raise RefusedError(f"RDF/JSON subject of more than {limit}, the rest was not read")
        while wanted > 0 and not self._ended:
            chunk = next(self._chunks, None)
            self._ended = chunk is None
            pieces.append(self._decode(chunk or b"", self._ended))
            wanted -= len(pieces[-1])
        self.text = "".join(pieces)
        return True


def _members(text: _Text) -> Iterator[tuple[str, int, object]]:
    """Yield each subject, its line and its properties."""
    text.expect("{")
    going_on = text.sign() != "}" or text.expect("}") == ""
    while going_on:
        if text.sign() != '"':
            text.expect('"')
        line = text.line()
        subject = text.value()
        text.expect(":")
        yield str(subject), line, text.value()
        going_on = text.expect(",}") == ","
    if text.sign():
        raise JSONDecodeError("extra data after the end", text.text, text.at)


def _said(subject: str, value: object, line: int, statements: RdfStatements) -> Iterator[Finding]:
    try:
        node = blank_node(subject[2:]) if subject.startswith("_:") else iri(subject)
        pairs = _pairs(value)
    except ValueError as error:
        yield from statements.fault(f"subject {subject[:200]!r}: {error}", line)
        return
    for predicate, each in pairs:
        try:
            term, size = _object(each)
            quad = Quad(node, iri(predicate), term)
        except ValueError as error:
            yield from statements.fault(f"statement about {subject[:200]!r}: {error}", line)
            continue
        if statements.say(quad, size + len(subject) + len(predicate)):
            yield statements.take()


def _pairs(value: object) -> Iterator[tuple[str, object]]:
    if not isinstance(value, dict):
        raise ValueError("predicates are not a JSON object")
    return (
        (predicate, each)
        for predicate, objects in value.items()
        for each in (objects if isinstance(objects, list) else [objects])
    )


def _object(found: object) -> tuple[NamedNode | BlankNode | Literal, int]:
    if not isinstance(found, dict) or not isinstance(found.get("value"), str):
        raise ValueError("object without a value")
    kind, value = found.get("type"), found["value"]
    if kind == "uri":
        return iri(value), len(value)
    if kind == "bnode":
        return blank_node(value.removeprefix("_:")), len(value)
    if kind != "literal":
        raise ValueError(f"object of type {str(kind)[:100]!r}")
    language, datatype = found.get("lang"), found.get("datatype")
    if not isinstance(language, str | None) or not isinstance(datatype, str | None):
        raise ValueError("language or datatype is not a string")
    return literal(value, language, datatype), len(value)
