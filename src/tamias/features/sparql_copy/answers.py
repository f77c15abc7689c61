"""Answers of an endpoint as rows of cells, told apart by their content: what a server says of it is no proof.

An answer that is cut, an error page or a form that loses what a term is raises `Unreadable`.
"""

import json
import re
from typing import Any

import msgspec
from lxml import etree
from pyoxigraph import BlankNode, Literal, NamedNode, QueryResultsFormat, QuerySolutions, parse_query_results

_XML = "{http://www.w3.org/2005/sparql-results#}"
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_DIRECTION = "{http://www.w3.org/2005/11/its}dir"
_MARKUP = re.compile(rb"(?:<\?xml[^>]*>\s*|<!--.*?-->\s*)*<(?:!doctype\s+)?(\w+)", re.IGNORECASE | re.DOTALL)


class UnreadableAnswer(Exception):
    """The answer is not what was asked for; says what it looks like."""


class Cell(msgspec.Struct, frozen=True):
    """A term as the JSON results format writes it."""

    type: str
    value: "str | Nested"
    language: str | None = msgspec.field(default=None, name="xml:lang")
    datatype: str | None = None
    direction: str | None = msgspec.field(default=None, name="its:dir")

    @property
    def text(self) -> str:
        """The text, as `STR` returns it."""
        return self.value if isinstance(self.value, str) else ""


class Nested(msgspec.Struct, frozen=True):
    """A triple that is a term."""

    subject: Cell
    predicate: Cell
    object: Cell


Row = dict[str, Cell]


class SparqlAnswer(msgspec.Struct, frozen=True):
    """The rows of a SELECT, in the server's order."""

    variables: list[str]
    rows: list[Row]


class _ResultsHead(msgspec.Struct):
    vars: list[str] = []


class _Results(msgspec.Struct):
    bindings: list[Row]


class _Json(msgspec.Struct):
    results: _Results
    head: _ResultsHead = msgspec.field(default_factory=_ResultsHead)


_DECODER = msgspec.json.Decoder(_Json)


def read_answer(body: bytes) -> SparqlAnswer:
    """The rows of a complete answer in JSON, XML or tab-separated values. Raises `Unreadable`."""
    content = body.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not content:
        raise UnreadableAnswer("an empty answer")
    if content[:1] == b"{":
        return _json(content)
    if content[:1] == b"<" and (markup := _MARKUP.match(content)):
        if markup[1].lower() != b"sparql":
            raise UnreadableAnswer(f"a page of <{markup[1].decode().lower()}> in place of results")
        return _xml(content)
    if content[:1] == b"?":
        return _tsv(content)
    raise UnreadableAnswer(
        f"not SPARQL results in JSON, XML or TSV: {content[:60].decode('utf-8', 'replace')!r}"
    )


def _json(content: bytes) -> SparqlAnswer:
    try:
        read = _DECODER.decode(content)
    except msgspec.DecodeError as error:
        read = _loose_json(content, error)
    except RecursionError:
        raise UnreadableAnswer("JSON that is nested too deeply") from None
    return SparqlAnswer(read.head.vars, read.results.bindings)


def _loose_json(content: bytes, error: msgspec.DecodeError) -> _Json:
    """Escape control characters, which some servers leave in strings as they are."""
    if "truncated" in str(error) or isinstance(error, msgspec.ValidationError):
        raise UnreadableAnswer(f"JSON that is not a result: {error}") from None
    try:
        return msgspec.convert(json.loads(content, strict=False), _Json)
    except (ValueError, RecursionError) as second:
        raise UnreadableAnswer(f"broken JSON: {second}") from None


def _xml(content: bytes) -> SparqlAnswer:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise UnreadableAnswer(f"broken XML: {error}") from None
    results = root.find(f"{_XML}results")
    if results is None:
        raise UnreadableAnswer("XML without results")
    names = [str(variable.get("name")) for variable in root.iter(f"{_XML}variable")]
    return SparqlAnswer(names, [_xml_row(result) for result in results.iter(f"{_XML}result")])


def _xml_row(result: Any) -> Row:
    return {
        str(binding.get("name")): _xml_cell(binding[0])
        for binding in result.iter(f"{_XML}binding")
        if len(binding)
    }


def _xml_cell(term: Any) -> Cell:
    kind = etree.QName(term).localname
    if kind == "triple":
        return Cell("triple", Nested(*(_xml_cell(part[0]) for part in term)))
    return Cell(kind, term.text or "", term.get(_LANG), term.get("datatype"), term.get(_DIRECTION))


def _tsv(content: bytes) -> SparqlAnswer:
    if not content.endswith(b"\n"):
        raise UnreadableAnswer("tab-separated values cut off in a line")
    try:
        solutions = parse_query_results(content, format=QueryResultsFormat.TSV)
        if not isinstance(solutions, QuerySolutions):
            raise UnreadableAnswer("a truth value in place of results")
        names = [variable.value for variable in solutions.variables]
        rows = [
            {name: _cell(term) for name, term in zip(names, row, strict=True) if term is not None}
            for row in solutions
        ]
    except (SyntaxError, ValueError) as error:
        raise UnreadableAnswer(f"broken tab-separated values: {error}") from None
    return SparqlAnswer(names, rows)


def _cell(term: Any) -> Cell:
    if isinstance(term, NamedNode):
        return Cell("uri", term.value)
    if isinstance(term, BlankNode):
        return Cell("bnode", term.value)
    if isinstance(term, Literal):
        direction = None if term.direction is None else str(term.direction.value)
        datatype = None if term.language else term.datatype.value
        return Cell("literal", term.value, term.language, datatype, direction)
    return Cell("triple", Nested(_cell(term.subject), _cell(term.predicate), _cell(term.object)))
