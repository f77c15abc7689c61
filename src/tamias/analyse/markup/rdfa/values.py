"""The literals of RDFa: text, XML, HTML, dates, as attributes and content of an element say."""

import re
from html import escape

from lxml import etree, html
from pyoxigraph import Literal, NamedNode

from tamias.analyse.markup.rdfa.names import HostLanguage, Language, Names, Scope
from tamias.analyse.markup.rdfa.terms import RDF
from tamias.analyse.markup.statements import MarkupStatements, TooMuchError, date_type

_XML_LITERAL = NamedNode(RDF + "XMLLiteral")
_HTML_LITERAL = NamedNode(RDF + "HTML")
_XHTML = "http://www.w3.org/1999/xhtml"
_START = re.compile(r"<[^\s/>]+")
_MOST_NAMESPACES = 1 << 16
_TEXT = etree.XPath("string()", smart_strings=False)


def text_of(element: etree._Element) -> str:
    """Return the text in an element, without comments."""
    return str(_TEXT(element))


class Values:
    """Makes the literals of one document."""

    def __init__(self, host: HostLanguage, names: Names, statements: MarkupStatements) -> None:
        self._host = host
        self._names = names
        self._statements = statements

    def stated(self, element: etree._Element, scope: Scope) -> Literal | None:
        """The literal that attributes ask for, and no address may replace; None where they ask for none."""
        content, declared = element.get("content"), element.get("datatype")
        if declared is not None:
            return self._typed(element, scope, content, declared.strip())
        if content is not None:
            return self._statements.literal(content, language=scope.language)
        if self._host.language is Language.HTML and not self._host.is_old:
            return self._time(element, scope)
        return None

    def content(self, element: etree._Element, scope: Scope) -> Literal:
        """The literal of an element's own content."""
        if self._host.is_old and any(isinstance(child.tag, str) for child in element):
            return self._statements.literal(_inner_xml(element, self._spaces(scope)), datatype=_XML_LITERAL)
        return self._statements.literal(text_of(element), language=scope.language)

    def _typed(self, element: etree._Element, scope: Scope, content: str | None, declared: str) -> Literal:
        datatype = self._names.name(declared, scope, has_terms=True) if declared else None
        if content is None and datatype == _XML_LITERAL:
            return self._statements.literal(_inner_xml(element, self._spaces(scope)), datatype=_XML_LITERAL)
        if content is None and datatype == _HTML_LITERAL:
            return self._statements.literal(_inner_html(element), datatype=_HTML_LITERAL)
        text = self._value(element) if content is None else content
        if isinstance(datatype, NamedNode):
            return self._statements.literal(text, datatype=datatype)
        return self._statements.literal(text, language=scope.language)

    def _spaces(self, scope: Scope) -> dict[str, str]:
        declared = {f"xmlns:{prefix}": space for prefix, space in sorted(scope.prefixes.items())}
        return {**declared, "xmlns": _XHTML} if self._host.has_head else declared

    def _value(self, element: etree._Element) -> str:
        declared = element.get("datetime") if self._host.language is Language.HTML else None
        return text_of(element) if declared is None else declared

    def _time(self, element: etree._Element, scope: Scope) -> Literal | None:
        declared = element.get("datetime")
        if declared is None:
            if str(element.tag).rpartition("}")[2] != "time":
                return None
            declared = text_of(element)
        datatype = date_type(declared)
        return self._statements.literal(declared, language=scope.language, datatype=datatype)


def _inner_xml(element: etree._Element, spaces: dict[str, str]) -> str:
    """The content, each element with the namespaces that are declared around it, for CURIEs in it too."""
    # Not in canonical form: lxml 6.1 ends the process over a comment in that.
    if len(element) * sum(map(len, spaces.values())) > _MOST_NAMESPACES:
        raise TooMuchError
    parts = [escape(element.text or "", quote=False)]
    parts.extend(_declaring(child, spaces) for child in element)
    return "".join(parts)


def _declaring(child: etree._Element, spaces: dict[str, str]) -> str:
    """A node as XML with declarations that lxml, which reads HTML without namespaces, knows nothing of."""
    text = etree.tostring(child, encoding="unicode")
    if not isinstance(child.tag, str):
        return text
    known = {f"xmlns:{prefix}" for prefix in child.nsmap} | ({"xmlns"} if "}" in child.tag else set())
    added = "".join(f' {name}="{escape(space)}"' for name, space in spaces.items() if name not in known)
    end = _START.match(text).end()  # type: ignore[union-attr]
    return text[:end] + added + text[end:]


def _inner_html(element: etree._Element) -> str:
    parts = (html.tostring(child, encoding="unicode") for child in element)
    return escape(element.text or "", quote=False) + "".join(parts)
