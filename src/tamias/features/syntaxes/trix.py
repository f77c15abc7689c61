"""TriX, RDF as plain XML, into quads. No tree is kept: what was read is cut off behind the reader."""

from collections.abc import Iterator
from typing import cast

from lxml import etree
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

from tamias.analyse.chunks import read_chunks, utf8_chunks
from tamias.analyse.rdf.statements import RdfStatements, StatementAnalyser, blank_node, iri, literal
from tamias.analyse.xml.entities import flat_entities
from tamias.content.formats import read_by
from tamias.model.document import Document
from tamias.model.finding import Finding

_LANG = "{http://www.w3.org/XML/1998/namespace}lang"

Term = NamedNode | BlankNode | Literal


class TrixAnalyser(StatementAnalyser):
    """Reads TriX with its named graphs."""

    media_types = read_by(__name__)

    def _read(self, document: Document, statements: RdfStatements) -> Iterator[Finding]:
        chunks = utf8_chunks(read_chunks(document.stream), document.charset)
        # The entities are flat and bounded when they come here, so the parser may expand them.
        parser = etree.XMLPullParser(
            events=("start", "end"),
            resolve_entities="internal",  # type: ignore[arg-type]
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        )
        walk = _TrixWalk(statements)
        try:
            for chunk in flat_entities(chunks, self._limits.entity_bytes):
                parser.feed(chunk)
                yield from walk.through(parser)
            parser.close()
        except etree.XMLSyntaxError as error:
            yield from walk.through(parser)
            yield from statements.fault(
                f"XML: {(error.msg or 'damaged').partition(', line ')[0]}", error.lineno
            )


class _TrixWalk:
    """Goes through the elements of one document as they begin and end."""

    def __init__(self, statements: RdfStatements) -> None:
        self._statements = statements
        self._graph: NamedNode | BlankNode | DefaultGraph = DefaultGraph()
        self._triple: etree._Element | None = None
        self._terms: list[Term] = []
        self._size = 0
        self._fault: str | None = None

    def through(self, parser: etree.XMLPullParser) -> Iterator[Finding]:
        for event, found in parser.read_events():
            element = cast("etree._Element", found)
            word = str(element.tag).rpartition("}")[2]
            if event == "start":
                self._begin(word, element)
            elif element is self._triple:
                yield from self._end_of_triple(element)
            elif self._triple is not None:
                self._term(word, element)
            elif word in ("uri", "id"):
                yield from self._name(word, element)
            if event == "end":
                _cut_off(element)

    def _begin(self, word: str, element: "etree._Element") -> None:
        if word == "graph" and self._triple is None:
            self._graph = DefaultGraph()
        elif word == "triple" and self._triple is None:
            self._triple, self._terms, self._size, self._fault = element, [], 0, None

    def _term(self, word: str, element: "etree._Element") -> None:
        try:
            term = _read_term(word, element)
        except ValueError as error:
            self._fault = self._fault or str(error)
            return
        self._size += len(term.value)
        if len(self._terms) < 4:
            self._terms.append(term)

    def _name(self, word: str, element: "etree._Element") -> Iterator[Finding]:
        try:
            term = _read_term(word, element)
        except ValueError as error:
            yield from self._statements.fault(f"graph name: {error}", _line(element))
        else:
            self._graph = term if not isinstance(term, Literal) else DefaultGraph()

    def _end_of_triple(self, element: "etree._Element") -> Iterator[Finding]:
        self._triple = None
        try:
            if self._fault or len(self._terms) != 3:
                raise ValueError(self._fault or f"triple of {len(self._terms)} terms")
            quad = Quad(*self._terms, self._graph)  # type: ignore[call-arg, arg-type]
        except (ValueError, TypeError) as error:
            yield from self._statements.fault(str(error), _line(element))
        else:
            if self._statements.say(quad, self._size + len(str(self._graph))):
                yield self._statements.take()


def _read_term(word: str, element: "etree._Element") -> Term:
    text = element.text or ""
    if word == "uri":
        return iri(text.strip())
    if word == "id":
        return blank_node(text.strip())
    if word == "typedLiteral":
        return literal(text, datatype=str(element.get("datatype", "")))
    if word == "plainLiteral":
        return literal(text, language=_language(element))
    raise ValueError(f"element {word[:100]} in a triple")


def _language(element: "etree._Element") -> str | None:
    for place in (element, *element.iterancestors()):
        if (language := place.get(_LANG)) is not None:
            return str(language)
    return None


def _line(element: "etree._Element") -> int | None:
    return cast("int | None", element.sourceline)


def _cut_off(element: "etree._Element") -> None:
    """Frees what was read; the element itself must stay, for the parser still holds it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and parent[0] is not element:
        del parent[0]
