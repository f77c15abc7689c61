"""RDF/XML with a fault in it: its node elements one by one, and of a bad one its good properties.

What breaks a rule is brought to what was meant, and told: attributes of old, unknown parse types, relative
`xml:base`, characters that no IRI may hold, text beside a reference. An empty XML literal, which is right
but which pyoxigraph 0.5 refuses, is written in another way.
"""

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import msgspec
from pyoxigraph import Quad, RdfFormat, parse

from tamias.analyse.chunks import times
from tamias.analyse.rdf.recover import Faults, Piece, Read, TextPlace, taken_apart
from tamias.analyse.rdf.statements import bounded
from tamias.model.document import DocumentBudget

_OPAQUE = (
    rb"<!--(?:[^-]++|-(?!->))*(?:-->|\Z)|<!\[CDATA\[(?:[^\]]++|\](?!\]>))*(?:\]\]>|\Z)"
    rb"|<\?(?:[^?]++|\?(?!>))*(?:\?>|\Z)|<!DOCTYPE"
)
TOKEN = re.compile(
    _OPAQUE + rb"""|<(/?)([^\s/>"'<=!?]+)((?:[^<>"'/]++|"[^"<]*"|'[^'<]*'|/(?!>))*)(/?)>|(<)""", re.DOTALL
)
"""A tag (whether it ends an element, its name, its attributes, whether it is empty), or what is none."""
_ROOT = re.compile(rb"""<([^\s/>"'<=!?]*:)?RDF(?=[\s>])(?:[^<>"']++|"[^"<]*"|'[^'<]*')*>""")
_ABOUT = re.compile(rb"""\s[^\s=]*:about\s*=""")
_IDENTITY = re.compile(rb"""\s[^\s=]*:(?:about|ID|nodeID)\s*=""")
_RESOURCE = re.compile(rb"""\s[^\s=]*:parseType\s*=\s*["']Resource""")
_BAD_BUT_WHOLE = re.compile(rb"""<([^\s/>"'<=!?]+)[^<]*(?:/>|</\1\s*>|/\s*(?=<))""")
"""A property whose own tag is at fault, without elements in it: what follows stands on the same level."""
_COUNTED = re.compile(rb"<[^\s/>]*:li[\s/>]")


class _Open:
    """A start tag that waits for its end; `holds_nodes` where nodes, not properties, stand in it."""

    def __init__(self, name: bytes, attributes: bytes, *, is_property: bool) -> None:
        self.name = name
        self.holds_nodes = is_property and not _RESOURCE.search(attributes)
        self.is_full = False
        """It has text or an element, so that no further element can stand in it."""
        self._holds_many = not self.holds_nodes or b"parseType" in attributes

    def fill(self) -> None:
        """Text or an element stands in it."""
        self.is_full = not self._holds_many


class Nodes:
    """An RDF/XML document that the parser could not read."""

    def __init__(self, text: bytes, base: str | None, budget: DocumentBudget) -> None:
        root = _ROOT.search(text)
        self._budget = budget
        self._base = base
        self._text = text
        self._start = root.end() if root else 0
        self._head = text[: self._start]
        self._tail = b"</%bRDF>" % (root[1] or b"") if root else b""

    def found(self, faults: Faults) -> Iterator[Read]:
        """Yield all good nodes, and the good properties of bad ones."""
        yield from taken_apart(self._pieces(), self, faults)

    def read(self, text: bytes, *, lenient: bool = False) -> list[Quad]:
        source = self._head + text + self._tail
        if has_forbidden(text):
            raise SyntaxError("a character that XML forbids")
        try:
            parser = parse(source, format=RdfFormat.RDF_XML, base_iri=self._base, lenient=lenient)
            quads = list(bounded(parser, self._budget))
        except SyntaxError as fault:
            raise SyntaxError(fault.msg) from fault  # its place, if any, is not that of this piece
        if ends_early(text):
            raise SyntaxError("an element has no end")
        return quads

    def salvage(self, piece: Piece) -> list[Quad]:
        """Return its complete properties before the first doubtful tag, where the node has a name of its own.

        Where that tag stands in a node of the last property, the complete properties of that node too.
        """
        quads: dict[Quad, None] = {}
        text = piece.text
        while (node := _named_node(text)) and not _COUNTED.search(text):
            end = node.end()
            contents = [b""]
            for begin, end in _children(text, node.end()):
                contents.append(text[begin:end])
            last = TOKEN.search(text, end)
            inner = (
                TOKEN.search(text, last.end()) if last and last[2] and not last[1] and not last[4] else None
            )
            if last and inner and _named_node(inner[0]):
                empty = inner[0] if inner[4] else b"%b</%b>" % (inner[0], inner[2])
                contents.append(b"%b%b</%b>" % (last[0], empty, last[2]))
            for content in contents:
                quads.update(dict.fromkeys(self._read_if_good(b"%b%b</%b>" % (node[0], content, node[2]))))
            text = text[inner.start() :] if inner else b""
        return list(quads)

    def _read_if_good(self, text: bytes) -> list[Quad]:
        try:
            return self.read(text)
        except SyntaxError:
            return []

    def _pieces(self) -> list[Piece]:
        place = TextPlace().after(self._text[: self._start])
        pieces, end = [], self._start
        for start, stop in _nodes(self._text, self._start):
            place = place.after(self._text[end:start])
            pieces.append(Piece(self._text[start:stop], place))
            place, end = place.after(self._text[start:stop]), stop
        return pieces


def has_forbidden(text: bytes) -> bool:
    """Return whether there are control characters, which the parser takes for parts of names."""
    import numpy as np

    signs = np.frombuffer(text, np.uint8)
    return int(np.count_nonzero(signs < ord(" "))) > sum(times(sign, text) for sign in (b"\t", b"\n", b"\r"))


def ends_early(text: bytes) -> bool:
    """Return whether an element is still open at the end, which the parser accepts."""
    depth = 0
    for token in TOKEN.finditer(text):
        if token[2] and not token[4]:
            depth += -1 if token[1] else 1
    return depth > 0


def _nodes(text: bytes, start: int) -> list[tuple[int, int]]:
    """Return where each node element begins and ends, as far as a damaged text shows it."""
    scan, read_up_to = _Scan(start), start
    for token in TOKEN.finditer(text, start):
        if text[read_up_to : token.start()].strip():
            scan.take_text()
        read_up_to = token.end()
        if token[2] is not None and token[1]:
            scan.take_end(token[2], token.end())
        elif token[2] is not None:
            scan.take_start(token)
    return scan.nodes(len(text))


class _Scan:
    """Goes through the tags of a document with faults, and knows which nodes were whole."""

    def __init__(self, start: int) -> None:
        self._nodes: list[tuple[int, int, bool]] = []
        """Each with whether it is a node beyond doubt: a property never has rdf:about."""
        self._stack: list[_Open] = []
        self._begun = start
        self._is_certain = False

    def nodes(self, end: int) -> list[tuple[int, int]]:
        """Return all nodes, the last up to the end of the text if it is open."""
        if self._stack:
            self._note(end)
        return [(begin, end) for begin, end, _ in self._nodes]

    def take_text(self) -> None:
        """Note text between two tags."""
        if self._stack:
            self._stack[-1].fill()

    def take_start(self, token: re.Match[bytes]) -> None:
        """A start tag, or an empty element."""
        stack = self._stack
        is_node = token[2].endswith(b":Description") or _ABOUT.search(token[3]) is not None
        if stack and stack[-1].is_full:
            stack.pop()  # a property that lost its end
        if stack and not stack[-1].holds_nodes and is_node:
            self._note(token.start())  # a node that did
            stack.clear()
        if stack:
            stack[-1].fill()
        else:
            self._begun, self._is_certain = token.start(), is_node
        if not token[4]:
            is_property = bool(stack) and not stack[-1].holds_nodes
            stack.append(_Open(token[2], token[3], is_property=is_property))
        elif not stack:
            self._note(token.end())

    def take_end(self, name: bytes, end: int) -> None:
        """An end tag: of the innermost open element of that name, so that nested ones keep their places."""
        stack = self._stack
        open_names = [each.name for each in reversed(stack)]
        if name in open_names:
            del stack[len(stack) - 1 - open_names.index(name) :]
            if not stack:
                self._note(end)
        elif not stack and not name.endswith(b"RDF"):
            # The start of a node is lost, so these are its properties, and perhaps more than those.
            while self._nodes and not self._nodes[-1][2]:
                self._nodes.pop()

    def _note(self, end: int) -> None:
        self._nodes.append((self._begun, end, self._is_certain))


def _named_node(text: bytes) -> re.Match[bytes] | None:
    """The start tag that a text begins with, if it is of a node with a name of its own."""
    node = TOKEN.match(text)
    return node if node and node[2] and not node[1] and _IDENTITY.search(node[3]) else None


def _children(text: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Yield the places of complete children, up to the first tag that may belong elsewhere."""
    stack: list[bytes] = []
    begun = skipped = start
    for token in TOKEN.finditer(text, start):
        slash, name, empty = token[1], token[2], token[4]
        if token.start() < skipped:
            continue
        if token[5]:
            bad = None if stack else _BAD_BUT_WHOLE.match(text, token.start())
            if bad is None:
                return
            skipped = bad.end()
            continue
        if name is None:
            continue
        if slash:
            if not stack or stack.pop() != name:
                return
        else:
            if len(stack) == 1 and _lost_its_end(text[begun : token.start()]):
                stack.clear()
            begun = begun if stack else token.start()
            if not empty:
                stack.append(name)
        if not stack:
            yield begun, token.end()


def _lost_its_end(begun: bytes) -> bool:
    """Return whether a property has text, after which no element can stand in it."""
    tag, _, content = begun.partition(b">")
    return bool(content.strip()) and b"parseType" not in tag and b"<" not in content


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
