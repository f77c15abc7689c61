"""RDF/XML that breaks a rule, brought to what was meant: every change is noted, so that it can be told.

Attributes of old, unknown parse types, relative `xml:base`, characters that no IRI may hold, text beside a
reference. An empty XML literal, which is right but which pyoxigraph 0.5 refuses, is written in another way.
"""

import re
from urllib.parse import urljoin

import msgspec

from tamias.analyse.rdf.recover import TextPlace
from tamias.analyse.xml.nodes import TOKEN

RDF = rb"http://www\.w3\.org/1999/02/22-rdf-syntax-ns#"
_PREFIX = re.compile(rb"""\sxmlns:([^\s=]{1,100})\s*=\s*["']%b["']""" % RDF)
_ATTRIBUTE = re.compile(rb"""([^\s=/"']+)(\s*=\s*)("[^"<]*"|'[^'<]*')""")
_OTHERS = re.compile(rb"""\s(?!xml|(?:[^\s=]*:)?(?:parseType|ID)\s*=)[^\s=/"']+\s*=""")
"""Attributes that a property with a parse type may not have."""
_LEGACY = frozenset({b"about", b"ID", b"resource", b"parseType", b"nodeID", b"datatype", b"type"})
_IRIS = frozenset({b"about", b"resource", b"datatype", b"type", b"base"})
_PARSE_TYPES = (b"Resource", b"Literal", b"Collection", b"Triple")
_UNKNOWN_PARSE_TYPE = re.compile(rb"""parseType\s*=\s*(["'])(?!(?:%b)\1)""" % b"|".join(_PARSE_TYPES))
_FORBIDDEN = re.compile(rb"""&lt;|&gt;|&quot;|[\t\n\r <>"{}|\\^`]""")
_ENTITIES = {b"&lt;": b"<", b"&gt;": b">", b"&quot;": b'"'}
_XML_LITERAL = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral"
_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*:")


Note = tuple[str, TextPlace]
"""A change that was made, and its place."""


class _Element(msgspec.Struct, frozen=True):
    base: str | None
    is_literal: bool
    """Whether what stands in it is a value, which nobody changes."""
    refers: bool = False
    """Whether its value is what `rdf:resource` names, so that nothing stands in it."""


def has_unheeded(text: bytes) -> bool:
    """Return whether the parser would silently ignore something: `rdf:bagID`, an unknown parse type."""
    return b"bagID" in text or (b"parseType" in text and _UNKNOWN_PARSE_TYPE.search(text) is not None)


def mended(text: bytes, base: str | None) -> tuple[bytes, list[Note]]:
    """The text as it was meant, and what was changed."""
    mending, pieces, end = _Mending(text, base), [], 0
    for found in TOKEN.finditer(text):
        pieces += [mending.text(text[end : found.start()]), mending.tag(found)]
        end = found.end()
    return b"".join([*pieces, text[end:]]), mending.notes


class _Mending:
    """Goes through the tags of one document."""

    def __init__(self, text: bytes, base: str | None) -> None:
        declared = _PREFIX.search(text)
        self._prefix = declared[1] if declared else None
        self._stack = [_Element(base, is_literal=False)]
        self._place, self._end = TextPlace(), 0
        self.notes: list[Note] = []

    def text(self, text: bytes) -> bytes:
        """Text between tags."""
        if not self._stack[-1].refers or not text.strip():
            return text
        self._note("text in an element with rdf:resource, left out")
        return b""

    def tag(self, found: re.Match[bytes]) -> bytes:
        """A tag, or what is none."""
        slash, name, attributes, empty = found[1], found[2], found[3], found[4]
        if name is None:
            return found[0]
        if slash:
            if len(self._stack) > 1:
                self._stack.pop()
            return found[0]
        element = self._stack[-1]
        if not element.is_literal:
            self._found = found
            self._base, self._is_literal, self._refers = element.base, False, False
            is_empty = bool(empty) or found.string.startswith(b"</", found.end())
            self._is_empty = is_empty and not _OTHERS.search(attributes)
            attributes = _ATTRIBUTE.sub(self._attribute, attributes)
            element = _Element(self._base, self._is_literal, self._refers)
        if not empty:
            self._stack.append(element)
        return b"<%b%b%b>" % (name, attributes, empty)

    def _attribute(self, found: re.Match[bytes]) -> bytes:
        name, equals, quoted = found.groups()
        prefix, _, local = name.rpartition(b":")
        value, quote = quoted[1:-1], quoted[:1]
        if not prefix and local in _LEGACY and self._prefix:
            self._note(f"attribute {local.decode()} without a namespace, read as rdf:{local.decode()}")
            prefix, name = self._prefix, self._prefix + b":" + local
        if prefix == self._prefix and local == b"bagID":
            self._note("rdf:bagID is no longer part of RDF, left out")
            return b""
        if prefix == self._prefix and local == b"parseType":
            value = self._parse_type(value)
            if self._is_literal and self._is_empty:
                return b"%b:datatype%b%b%b%b" % (prefix, equals, quote, _XML_LITERAL, quote)
        elif self._is_iri(prefix, local):
            value = self._encoded(value)
            self._refers |= local == b"resource"
            if name == b"xml:base":
                value = self._resolved(value)
        return name + equals + quote + value + quote

    def _is_iri(self, prefix: bytes, local: bytes) -> bool:
        if prefix in (b"xmlns", b"xml"):
            return prefix == b"xmlns" or local == b"base"
        return (not prefix and local == b"xmlns") or (prefix == self._prefix and local in _IRIS)

    def _parse_type(self, value: bytes) -> bytes:
        if value not in _PARSE_TYPES:
            self._note(f"unknown rdf:parseType {value.decode('utf-8', 'replace')!r}, read as Literal")
            value = b"Literal"
        self._is_literal = value == b"Literal"
        return value

    def _encoded(self, value: bytes) -> bytes:
        encoded = _FORBIDDEN.sub(_percent, value.strip())
        if encoded != value:
            shown = value.decode("utf-8", "replace")
            self._note(f"characters that no IRI may hold in {shown!r}, percent-encoded")
        return encoded

    def _resolved(self, value: bytes) -> bytes:
        if self._base is not None and not _SCHEME.match(value):
            shown = value.decode("utf-8", "replace")
            self._note(f"relative xml:base {shown!r}, resolved")
            value = urljoin(self._base, shown).encode()
        self._base = value.decode("utf-8", "replace")
        return value

    def _note(self, what: str) -> None:
        start = self._found.start()
        self._place = self._place.after(self._found.string[self._end : start])
        self._end = start
        self.notes.append((what, self._place))


def _percent(found: re.Match[bytes]) -> bytes:
    return b"%%%02X" % ord(_ENTITIES.get(found[0], found[0]))
