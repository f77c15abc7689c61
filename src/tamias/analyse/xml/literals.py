"""XML literals of RDF/XML in their canonical form (RDF 1.1 XML Syntax, section 7.2.17).

The parser writes every namespace in scope into them, used or not, in no fixed order.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse, serialize

from tamias.analyse.rdf.recover import Read
from tamias.content.quad_lines import QuadLines
from tamias.model.document import TextPosition
from tamias.model.finding import Problem

XML_LITERAL = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral")
_LINE = re.compile(rb'^.*[<&].*"\^\^<%b> \.\n' % XML_LITERAL.value.encode(), re.MULTILINE)
_TAG = re.compile(rb"""<[^\s/>!?"'<=][^\s/>"'<=]*+(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*>""")
_NAMESPACE = re.compile(rb"""\s(xmlns(?::[^\s="']+)?)="[^"]*\"""")


def with_canonical_literals(found: Iterable[Read]) -> Iterator[Read]:
    """The same statements; XML literals by exclusive canonicalisation, with comments."""
    for each in found:
        if isinstance(each, Problem | TextPosition):
            yield each
        elif isinstance(each, QuadLines):
            yield (
                QuadLines(_LINE.sub(_canonical_line, each.nquads), each.graph)
                if b"#XMLLiteral>" in each.nquads
                else each
            )
        else:
            yield [_canonical_quad(quad) for quad in each]


def _canonical_line(found: re.Match[bytes]) -> bytes:
    quads = [_canonical_quad(quad) for quad in parse(found[0], format=RdfFormat.N_TRIPLES)]
    return serialize(quads, format=RdfFormat.N_TRIPLES) or b""


def _canonical_quad(quad: Quad) -> Quad:
    subject, predicate, value, graph = quad
    if not isinstance(value, Literal) or value.datatype != XML_LITERAL:
        return quad
    return Quad(subject, predicate, Literal(_canonical(value.value), datatype=XML_LITERAL), graph)


def _canonical(text: str) -> str:
    """Return canonical XML, or the text itself where it is not well-formed."""
    from lxml import etree

    try:
        whole = etree.tostring(_root(text), method="c14n", exclusive=True, with_comments=True)
    except (etree.LxmlError, ValueError):
        return text
    return str(whole[len("<x>") : -len("</x>")].decode())


def _root(text: str) -> Any:
    """Raises `etree.LxmlError`."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    return etree.fromstring(b"<x>%b</x>" % _TAG.sub(_with_names_once, text.encode()), parser)


def _with_names_once(tag: re.Match[bytes]) -> bytes:
    """A start tag; the parser writes a namespace twice that the tag itself declares."""
    seen: set[bytes] = set()

    def once(attribute: re.Match[bytes]) -> bytes:
        is_new = attribute[1] not in seen
        seen.add(attribute[1])
        return attribute[0] if is_new else b""

    return _NAMESPACE.sub(once, tag[0])
